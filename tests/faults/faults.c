/* faults PLAN PROGRAMS [all]  makes each call of a plan fail at its first use, its second
 * and so on, until a run passes untouched, and looks at what came of it. Of a call that is
 * used hundreds of times not each use fails: the steps grow, without `all` sooner.
 * Prints TAP, and how many faults were injected into which call. */
#define _GNU_SOURCE
#include "plans.h"
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_UNITS = 4000, SHOWN = 12 };

/* One call of one scenario. */
typedef struct unit {
    const scenario *of;
    const char *call;
} unit;

/* What the processes that share the work tell. */
typedef struct totals {
    int next;                /* unit to take */
    int faults[MOST_UNITS];  /* injected */
    int failures;
} totals;

static unit units[MOST_UNITS];
static size_t unit_count;
static totals *shared;
static trial_rows healthy[MOST_SCENARIOS]; /* of each scenario, without a fault */
static char *said[MOST_SCENARIOS];         /* and its standard output */
static int status_of[MOST_SCENARIOS];
static char folder[] = "/tmp/gpubench-faults.XXXXXX";
static char repository[256];
static int tries_all;

static void prepare(trial *one, const scenario *of, const char *programs, int worker)
{
    static char program[512], files[TRIAL_ARGUMENTS][512];
    size_t i;
    memset(one, 0, sizeof *one);
    snprintf(one->folder, sizeof one->folder, "%s/%d", folder, worker);
    snprintf(program, sizeof program, "%s/%s", programs, of->arguments[0]);
    one->arguments[0] = program;
    for (i = 1; of->arguments[i]; i++) {
        one->arguments[i] = of->arguments[i];
        if (of->arguments[i][0] != '@') /* a file of the repository */
            continue;
        snprintf(files[i], sizeof files[i], "%s/%s", repository, of->arguments[i] + 1);
        one->arguments[i] = files[i];
    }
    one->from_cases = of->from_cases;
}

/* ---- what is right of the rows ---- */

static const trial_row *find_row(const trial_rows *rows, const char *key)
{
    size_t i;
    for (i = 0; i < rows->count; i++)
        if (!strcmp(rows->rows[i].key, key))
            return &rows->rows[i];
    return NULL;
}

/* Without graphs there is no graph mode, and without the framework's kernels no cold one. */
static int says_why_unsupported(const trial_row *row)
{
    return !strcmp(row->mode, "graph") || strstr(row->flags, "the_driver_takes_no_kernel");
}

/* A row of what failed says so and has no numbers, any other has them. 1 if it failed,
 * which what is unsupported did not. */
static int look_at_row(trial *one, const trial_row *row)
{
    if (!strcmp(row->status, "ok")) {
        if (!(strtod(row->median, NULL) > 0) || !*row->samples)
            trial_complain(one, "%s is ok without numbers", row->key);
        return 0;
    }
    if (*row->median || *row->samples)
        trial_complain(one, "%s is %s and has numbers", row->key, row->status);
    if (!strstr(row->flags, "reason=") && !strstr(row->flags, "needed_bytes="))
        trial_complain(one, "%s is %s without a reason", row->key, row->status);
    if (strcmp(row->status, "failed") != 0 && strcmp(row->status, "oom") != 0 &&
        (strcmp(row->status, "unsupported") != 0 || !says_why_unsupported(row)))
        trial_complain(one, "%s is %s: %s", row->key, row->status, row->flags);
    return strcmp(row->status, "unsupported") != 0;
}

/* Status 1 may also be of what has no row. */
static int says_what_failed(const trial *one)
{
    return strstr(one->err, ": not traced: ") || strstr(one->err, ": ended early with status ");
}

static void look_at_rows(trial *one, const trial_rows *wanted, int is_once)
{
    size_t i, failed = 0;
    for (i = 0; i < one->rows.count; i++)
        failed += (size_t)look_at_row(one, &one->rows.rows[i]);
    for (i = 0; i < wanted->count && is_once; i++)
        if (!find_row(&one->rows, wanted->rows[i].key))
            trial_complain(one, "no row of %s", wanted->rows[i].key);
    if (is_once && one->rows.count != wanted->count)
        trial_complain(one, "%zu rows instead of %zu", one->rows.count, wanted->count);
    if (is_once && failed > 1)
        trial_complain(one, "%zu rows failed of one fault", failed);
    if (one->status == 0 && (failed > 0 || one->rows.count != wanted->count))
        trial_complain(one, "exit status 0 with %zu rows, %zu of them failed", one->rows.count,
                       failed);
    if (one->status == 1 && failed == 0 && !says_what_failed(one))
        trial_complain(one, "exit status 1, and no row failed");
}

/* A verdict is what it is without the fault, or there is none and that is said. */
static void look_at_verdict(trial *one, size_t which)
{
    if (one->status != 2 && (one->status != status_of[which] || strcmp(one->out, said[which]) != 0))
        trial_complain(one, "exit status %d and %zu bytes said, instead of %d and %zu", one->status,
                       strlen(one->out), status_of[which], strlen(said[which]));
    if (one->status == 2 && scenarios[which].writes_file && !trial_kept_earlier(one))
        trial_complain(one, "the earlier file is gone");
}

static void look_at_outcome(trial *one, size_t which, int is_once)
{
    if (scenarios[which].says_the_same)
        look_at_verdict(one, which);
    else if (trial_kept_earlier(one) && one->status != 2)
        trial_complain(one, "exit status %d and no rows", one->status);
    else if (!trial_kept_earlier(one) && one->rows.problem[0])
        trial_complain(one, "rows.csv: %s", one->rows.problem);
    else if (!trial_kept_earlier(one))
        look_at_rows(one, &healthy[which], is_once && one->status != 2);
}

/* ---- the work ---- */

static void show_failure(const trial *one, const unit *of)
{
    int failures = __atomic_add_fetch(&shared->failures, 1, __ATOMIC_SEQ_CST);
    if (failures > SHOWN && !tries_all)
        return;
    printf("# %s, FAULT='%s': %s\n#   status %d; %.900s\n", of->of->name, one->fault, one->problem,
           one->status, one->err ? one->err : "");
    fflush(stdout);
}

/* The next use that is to fail: the first few one by one, then in growing steps. */
static long after(long number)
{
    return tries_all ? number < 6 ? number + 1 : 2 * number : 5 * number;
}

static void try_unit(size_t number, const char *programs, int worker)
{
    const unit *of = &units[number];
    const char *const *kind;
    for (kind = tries_all ? of->of->kinds : of->of->few; *kind; kind++) {
        long use = 1;
        int fired = 1;
        for (; fired; use = after(use)) {
            char fault[128];
            trial one;
            prepare(&one, of->of, programs, worker);
            snprintf(fault, sizeof fault, "%s %ld %s", of->call, use, *kind);
            one.fault = fault;
            trial_run(&one);
            fired = one.fired;
            if (fired)
                shared->faults[number]++;
            look_at_outcome(&one, (size_t)(of->of - scenarios), strcmp(*kind, "on") != 0);
            if (one.problem[0])
                show_failure(&one, of);
            trial_free(&one);
        }
    }
}

static void work(const char *programs, int worker)
{
    for (;;) {
        size_t number = (size_t)__atomic_fetch_add(&shared->next, 1, __ATOMIC_SEQ_CST);
        if (number >= unit_count)
            return;
        try_unit(number, programs, worker);
    }
}

static void share_work(const char *programs)
{
    long workers = sysconf(_SC_NPROCESSORS_ONLN), i;
    int status;
    fflush(stdout);
    for (i = 1; i < workers; i++)
        if (fork() == 0) {
            work(programs, (int)i);
            fflush(stdout);
            _exit(0);
        }
    work(programs, 0);
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            shared->failures++;
}

/* Without a fault everything is measured, which is what the others are held against. */
static int is_healthy(size_t number, const char *programs)
{
    trial one;
    int fine;
    prepare(&one, &scenarios[number], programs, 0);
    trial_run(&one);
    healthy[number] = one.rows;
    said[number] = one.out;
    one.out = NULL;
    status_of[number] = one.status;
    if (!scenarios[number].says_the_same)
        look_at_rows(&one, &one.rows, 1);
    fine = (one.status == 0 || (one.status == 1 && scenarios[number].says_the_same)) && !one.problem[0];
    if (!fine)
        printf("# %s without a fault: status %d, %s\n# %.2000s\n", scenarios[number].name, one.status,
               one.problem, one.err ? one.err : "");
    trial_free(&one);
    return fine;
}

static void add_units(const scenario *of)
{
    const char *const *call;
    for (call = of->calls; *call && unit_count < MOST_UNITS; call++)
        units[unit_count++] = (unit){of, *call};
}

/* By call, over all scenarios, in the order in which they were first tried. */
static void print_counts(void)
{
    size_t i, j;
    long all = 0;
    for (i = 0; i < unit_count; i++) {
        long sum = 0;
        for (j = 0; j < i && strcmp(units[j].call, units[i].call) != 0;)
            j++;
        if (j < i)
            continue;
        for (j = i; j < unit_count; j++)
            sum += strcmp(units[j].call, units[i].call) ? 0 : shared->faults[j];
        if (sum > 0)
            printf("# %6ld %s\n", sum, units[i].call);
        all += sum;
    }
    printf("# %6ld faults injected, %d of them with a wrong outcome\n", all, shared->failures);
}

int main(int argc, char **argv)
{
    int failed;
    size_t i;
    char command[64];
    if (argc < 3 || !mkdtemp(folder))
        return 2;
    if (!getcwd(repository, sizeof repository))
        return 2;
    tries_all = argc > 3 && !strcmp(argv[3], "all");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].plan, argv[1]) != 0 || (!scenarios[i].few && !tries_all))
            continue;
        if (is_healthy(i, argv[2]))
            add_units(&scenarios[i]);
        else
            shared->failures++;
    }
    share_work(argv[2]);
    print_counts();
    failed = shared->failures > 0;
    printf("%sok 1 - %s: every call fails in turn\n1..1\n", failed ? "not " : "", argv[1]);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
