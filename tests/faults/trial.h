/* One execution of a program in which something fails, and what may be said of any such:
 * it neither crashes nor hangs nor leaks, its rows are whole and true, a file that was
 * there before is as it was or replaced by whole rows, and nothing else is left. */
#ifndef GPUBENCH_TESTS_TRIAL_H
#define GPUBENCH_TESTS_TRIAL_H

#include <stddef.h>

enum { TRIAL_ARGUMENTS = 40, TRIAL_ROWS = 256, TRIAL_HANGS_S = 180 };

/* The columns of a row that matter here. */
typedef struct trial_row {
    char key[256]; /* case, variant, dtype, params, mode and run */
    char status[16], mode[8];
    char flags[600], median[40], samples[24];
} trial_row;

typedef struct trial_rows {
    trial_row rows[TRIAL_ROWS];
    size_t count;
    char problem[300]; /* empty: the file is a header and whole rows */
} trial_rows;

typedef struct trial {
    char folder[128];  /* "out" and "tmp" are made in it; rows go to out/rows.csv */
    const char *arguments[TRIAL_ARGUMENTS];
    const char *fault; /* FAULT of the environment, or NULL */
    int from_cases;    /* FAULT_FROM=cases */
    int is_signal;     /* SIGTERM instead of a call that fails */
    struct fault_uses *uses; /* NULL, or where to put what the program called */
    /* what came out */
    int status; /* exit status, or 128 + the signal */
    int fired;  /* the fault happened */
    char *out, *err; /* standard output and error, to free */
    char *file;      /* what rows.csv holds, NULL without it; to free */
    trial_rows rows;
    char problem[700]; /* empty: nothing is wrong */
} trial;

/* The file that stands in rows.csv before; a run that fails must leave it. */
extern const char trial_earlier[];

/* Executes it in a fresh folder with the earlier file, and looks at what any execution
 * has to keep to. */
void trial_run(trial *one);

/* Whether the signal ended it, or a process that it started for a run. */
int trial_was_ended(const trial *one);

/* Says what is wrong, unless something was before. */
void trial_complain(trial *one, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Does the file still hold what it held before? */
int trial_kept_earlier(const trial *one);

void trial_read_rows(const char *path, trial_rows *rows);
char *trial_read(const char *path); /* to free; NULL: no such file */
void trial_free(trial *one);

#endif
