/* faults "PLAN..." PROGRAMS [all]  makes each call that a plan's programs use fail at its
 * first use, its second and so on, until a run passes untouched, and looks at what came of
 * it. Of a call that is used hundreds of times not each use fails: of those behind the
 * first FAULT_EACH (of the environment; else 4) as many again do, evenly spread; without
 * `all` one use of each. By FAULT_WORKERS processes at a time, else one a processor; with
 * FAULT_ONLY only of calls that begin so, as "nccl". Prints TAP, and how many faults were injected into which call. */
#define _GNU_SOURCE
#include "fault.h"
#include "outcome.h"
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
    char call[56];
    long uses; /* without a fault */
} unit;

/* What the processes that share the work tell. */
typedef struct totals {
    int next;               /* unit to take */
    int faults[MOST_UNITS]; /* injected */
    int failures;
} totals;

static unit units[MOST_UNITS];
static size_t unit_count;
static totals *shared;
static healthy without[MOST_SCENARIOS];
static char folder[] = "/tmp/gpubench-faults.XXXXXX";
static char repository[256];
static const char *programs;
static int tries_all;
static long each = 4, most_workers;
static const char *only = "";

/* A word of a scenario's command line: '@' stands for a file of the repository, '%' for
 * one beside the programs. */
static const char *expand(const char *word, char *text, size_t capacity)
{
    if (*word != '@' && *word != '%')
        return word;
    snprintf(text, capacity, "%s/%s", *word == '@' ? repository : programs, word + 1);
    return text;
}

static void prepare(trial *one, const scenario *of, int worker)
{
    static char words[TRIAL_ARGUMENTS][512];
    size_t i;
    memset(one, 0, sizeof *one);
    snprintf(one->folder, sizeof one->folder, "%s/%d", folder, worker);
    for (i = 0; of->arguments[i]; i++)
        one->arguments[i] = expand(of->arguments[i], words[i], sizeof words[i]);
    one->from_cases = of->from_cases;
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

/* Whether the fault happened. */
static int try_use(size_t number, const char *kind, long use, int worker)
{
    const unit *of = &units[number];
    char fault[128];
    trial one;
    prepare(&one, of->of, worker);
    snprintf(fault, sizeof fault, "%s %ld %s", of->call, use, kind);
    one.fault = fault;
    one.is_signal = !strcmp(kind, "signal");
    trial_run(&one);
    shared->faults[number] += one.fired;
    look_at_outcome(&one, of->of, &without[of->of - scenarios], strcmp(kind, "on") != 0);
    if (one.problem[0])
        show_failure(&one, of);
    trial_free(&one);
    return one.fired;
}

/* Each of the first uses, then with steps in which the known ones are `each` more. */
static void try_all(size_t number, const char *kind, int worker)
{
    long use = 1, step = (units[number].uses - each) / each;
    while (try_use(number, kind, use, worker) || use <= units[number].uses)
        use += use >= each && step > 1 ? step : 1;
}

/* Which one it is differs from call to call. Of what is used in a loop that goes by time
 * the last ones may not be reached. */
static void try_one(size_t number, const char *kind, int worker)
{
    long uses = units[number].uses;
    (void)try_use(number, kind, 1 + (long)(number * 7) % (uses > 100 ? uses / 2 : uses), worker);
}

static void try_unit(size_t number, int worker)
{
    const scenario *of = units[number].of;
    const char *const *kind;
    for (kind = tries_all ? of->kinds : of->few; *kind; kind++) {
        if (tries_all)
            try_all(number, *kind, worker);
        else
            try_one(number, *kind, worker);
    }
}

static void work(int worker)
{
    for (;;) {
        size_t number = (size_t)__atomic_fetch_add(&shared->next, 1, __ATOMIC_SEQ_CST);
        if (number >= unit_count)
            return;
        try_unit(number, worker);
    }
}

static void share_work(void)
{
    long workers = most_workers > 0 ? most_workers : sysconf(_SC_NPROCESSORS_ONLN), i;
    int status;
    fflush(stdout);
    for (i = 1; i < workers; i++)
        if (fork() == 0) {
            work((int)i);
            fflush(stdout);
            _exit(0);
        }
    work(0);
    while (wait(&status) > 0)
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            shared->failures++;
}

/* Without a fault everything is measured, which is what the others are held against; what
 * it calls is what shall fail. */
static void add_units(const scenario *of)
{
    healthy *fine = &without[of - scenarios];
    fault_uses uses;
    trial one;
    size_t i;
    prepare(&one, of, 0);
    one.uses = &uses;
    trial_run(&one);
    if (!look_at_healthy(&one, of)) {
        printf("# %s without a fault: status %d, %s\n# %.2000s\n", of->name, one.status, one.problem,
               one.err ? one.err : "");
        shared->failures++;
    }
    *fine = (healthy){one.rows, one.out, one.file, one.status};
    one.out = one.file = NULL;
    for (i = 0; i < FAULT_CALLS && uses.of[i].call[0] && !one.problem[0]; i++)
        if (unit_count < MOST_UNITS && !strncmp(uses.of[i].call, only, strlen(only))) {
            units[unit_count] = (unit){.of = of, .uses = uses.of[i].most};
            strcpy(units[unit_count++].call, uses.of[i].call);
        }
    trial_free(&one);
}

/* By call, over all scenarios, in the order in which they were first tried; the sum. */
static long print_counts(void)
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
    return all;
}

/* How many faults were injected. */
static long try_plan(const char *plan, int number)
{
    long faults;
    size_t i;
    memset(shared, 0, sizeof *shared);
    unit_count = 0;
    for (i = 0; i < scenario_count; i++)
        if (!strcmp(scenarios[i].plan, plan) && (scenarios[i].few || tries_all))
            add_units(&scenarios[i]);
    if (unit_count == 0)
        shared->failures++;
    share_work();
    faults = print_counts();
    printf("# %6ld faults injected, %d of them with a wrong outcome\n", faults, shared->failures);
    printf("%sok %d - %s: every call fails in turn\n", shared->failures > 0 ? "not " : "", number, plan);
    return faults;
}

int main(int argc, char **argv)
{
    char command[64], *plan, *behind;
    int failures = 0, plans = 0;
    long faults = 0;
    if (argc < 3 || !mkdtemp(folder) || !getcwd(repository, sizeof repository))
        return 2;
    programs = argv[2];
    tries_all = argc > 3 && !strcmp(argv[3], "all");
    if (getenv("FAULT_EACH"))
        each = strtol(getenv("FAULT_EACH"), NULL, 10);
    if (getenv("FAULT_ONLY"))
        only = getenv("FAULT_ONLY");
    if (getenv("FAULT_WORKERS"))
        most_workers = strtol(getenv("FAULT_WORKERS"), NULL, 10);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (plan = strtok_r(argv[1], " ", &behind); plan; plan = strtok_r(NULL, " ", &behind)) {
        faults += try_plan(plan, ++plans);
        failures += shared->failures;
    }
    printf("1..%d\n# %ld faults in all, %d with a wrong outcome\n", plans, faults, failures);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failures > 0;
}
