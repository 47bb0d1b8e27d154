/* See outcome.h. */
#include "outcome.h"

#include <stdlib.h>
#include <string.h>

static int begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static const trial_row *find_row(const trial_rows *rows, const char *key)
{
    size_t i;
    for (i = 0; i < rows->count; i++)
        if (!strcmp(rows->rows[i].key, key))
            return &rows->rows[i];
    return NULL;
}

/* What shares communicators with a case that failed in them goes with it. */
static int went_with_another(const trial_row *row)
{
    return !strcmp(row->status, "skipped") &&
           strstr(row->flags, "its_memory_went_with_the_communicators_when_a_case_beside_it_failed");
}

/* Without graphs there is no graph mode, without the framework's kernels no cold one, and
 * without a library that answers nothing of it. */
static int says_why_unsupported(const trial *one, const trial_row *row)
{
    if (one->fault && begins(one->fault, "cudaGetDeviceCount ") &&
        strstr(row->flags, "no_GPU_is_visible"))
        return 1; /* as that call said */
    return strstr(row->flags, "the_library_does_not_tell_its_version") ||
           !strcmp(row->mode, "graph") || strstr(row->flags, "the_driver_takes_no_kernel");
}

static int is_one_of(const char *status, const char *const *known)
{
    while (*known && strcmp(status, *known) != 0)
        known++;
    return *known != NULL;
}

/* A row of what failed says so and has no numbers, any other has them. 1 if it failed,
 * which what is unsupported did not, nor what is as it is without a fault. */
static int look_at_row(trial *one, const trial_row *row, const trial_row *without)
{
    static const char *const failures[] = {"failed", "oom", NULL};
    if (!strcmp(row->status, "ok")) {
        if (!(strtod(row->median, NULL) > 0) || !*row->samples)
            trial_complain(one, "%s is ok without numbers", row->key);
        return 0;
    }
    if (*row->median || *row->samples)
        trial_complain(one, "%s is %s and has numbers", row->key, row->status);
    if (without && !strcmp(row->status, without->status))
        return 0;
    if (!strstr(row->flags, "reason=") && !strstr(row->flags, "needed_bytes="))
        trial_complain(one, "%s is %s without a reason", row->key, row->status);
    if (went_with_another(row))
        return 0;
    if (!is_one_of(row->status, failures) &&
        (strcmp(row->status, "unsupported") != 0 || !says_why_unsupported(one, row)))
        trial_complain(one, "%s is %s: %s", row->key, row->status, row->flags);
    return strcmp(row->status, "unsupported") != 0;
}

/* Status 1 may also be of what has no row. */
static int says_what_failed(const trial *one)
{
    return strstr(one->err, ": not traced: ") || strstr(one->err, ": ended early with status ");
}

/* What a kernel's library said is the reason of the row that a failed call costs, and each
 * costs one but those that give something back, and cuBLASLt's: the tuner passes over a way
 * or an algorithm that it does not have. */
static void look_at_library(trial *one, size_t failed)
{
    const char *reason = begins(one->fault, "cublas")   ? "cuBLAS_status_14"
                         : begins(one->fault, "curand") ? "cuRAND_status_999"
                                                        : NULL;
    size_t i;
    if (!reason || !one->fired)
        return;
    if (failed == 0 && !begins(one->fault, "cublasLt") && !strstr(one->fault, "Destroy"))
        trial_complain(one, "no row failed");
    for (i = 0; i < one->rows.count && !strstr(one->fault, " lost"); i++)
        if (!strcmp(one->rows.rows[i].status, "failed") && !strstr(one->rows.rows[i].flags, reason))
            trial_complain(one, "%s failed for another reason: %s", one->rows.rows[i].key,
                           one->rows.rows[i].flags);
}

static void look_at_rows(trial *one, const healthy *without, int is_once)
{
    const trial_rows *wanted = &without->rows;
    size_t i, failed = 0;
    for (i = 0; i < one->rows.count; i++)
        failed += (size_t)look_at_row(one, &one->rows.rows[i],
                                      find_row(wanted, one->rows.rows[i].key));
    for (i = 0; i < wanted->count && is_once; i++)
        if (!find_row(&one->rows, wanted->rows[i].key))
            trial_complain(one, "no row of %s", wanted->rows[i].key);
    if (is_once && one->rows.count != wanted->count)
        trial_complain(one, "%zu rows instead of %zu", one->rows.count, wanted->count);
    if (is_once && failed > 1)
        trial_complain(one, "%zu rows failed of one fault", failed);
    look_at_library(one, failed);
    if (one->status == 0 && (failed > 0 || one->rows.count != wanted->count))
        trial_complain(one, "exit status 0 with %zu rows, %zu of them failed", one->rows.count,
                       failed);
    if (one->status == 1 && failed == 0 && without->status == 0 && !says_what_failed(one))
        trial_complain(one, "exit status 1, and no row failed");
}

/* A verdict is what it is without the fault, or there is none and that is said. */
static void look_at_verdict(trial *one, const scenario *of, const healthy *without)
{
    int differs = !of->tells_time && strcmp(one->out, without->out) != 0;
    if (one->status != 2 && (one->status != without->status || differs))
        trial_complain(one, "exit status %d and %zu bytes said, instead of %d and %zu", one->status,
                       strlen(one->out), without->status, strlen(without->out));
    if (one->status == 2 && of->writes_file && !trial_kept_earlier(one))
        trial_complain(one, "the earlier file is gone");
}

/* A signal leaves the earlier file or a whole one; of rows those so far. */
static void look_at_what_is_left(trial *one, const scenario *of, const healthy *without)
{
    size_t i;
    if (trial_kept_earlier(one))
        return;
    if (of->says_the_same && (!one->file || strcmp(one->file, without->file) != 0))
        trial_complain(one, "neither the earlier file nor the whole one");
    if (!of->says_the_same && one->rows.problem[0])
        trial_complain(one, "rows.csv: %s", one->rows.problem);
    for (i = 0; i < one->rows.count && !of->says_the_same; i++) {
        const trial_row *row = &one->rows.rows[i];
        if (look_at_row(one, row, find_row(&without->rows, row->key)))
            trial_complain(one, "%s failed of a signal", row->key);
    }
}

void look_at_outcome(trial *one, const scenario *of, const healthy *without, int is_once)
{
    if (trial_was_ended(one))
        look_at_what_is_left(one, of, without);
    else if (of->says_the_same)
        look_at_verdict(one, of, without);
    else if (trial_kept_earlier(one) && one->status != 2)
        trial_complain(one, "exit status %d and no rows", one->status);
    else if (!trial_kept_earlier(one) && one->rows.problem[0])
        trial_complain(one, "rows.csv: %s", one->rows.problem);
    else if (!trial_kept_earlier(one))
        look_at_rows(one, without, is_once && one->status != 2);
}

int look_at_healthy(trial *one, const scenario *of)
{
    size_t i;
    if (!of->says_the_same && one->rows.problem[0])
        trial_complain(one, "rows.csv: %s", one->rows.problem);
    for (i = 0; i < one->rows.count && !of->says_the_same; i++)
        (void)look_at_row(one, &one->rows.rows[i], &one->rows.rows[i]);
    if (one->status != 0 && !(one->status == 1 && of->says_the_same))
        trial_complain(one, "exit status %d", one->status);
    return !one->problem[0];
}
