/* One process of a race: started, watched, and ended with all that it started. */
#ifndef GPUBENCH_COMPARE_RACE_PROCESS_H
#define GPUBENCH_COMPARE_RACE_PROCESS_H

#include <signal.h>

struct race_command {
    const char *const *argv; /* ends with NULL; argv[0] is the program's path */
    const char *log;         /* takes its standard output and standard error */
    const char *temporary;   /* its TMPDIR */
    double limit_s;
};

enum race_ending {
    RACE_EXITED,      /* code is its status */
    RACE_CRASHED,     /* code is the signal */
    RACE_NOT_STARTED, /* code is errno */
    RACE_LOST,        /* the system does not tell how it ended; code is errno */
    RACE_TIMED_OUT,
    RACE_INTERRUPTED, /* code is the signal that this process was sent */
};

struct race_ended {
    enum race_ending ending;
    int code;
};

/* Seconds of a clock that is never set. Where it cannot be read: what it told before, or NAN
 * if that is nothing. */
double race_now_s(void);

/* Signals that end a program wait while a race is on: race_run_process takes them,
 * hands them on to its process, waits for it and says so. Both are called once. */
void race_hold_signals(sigset_t *before);
void race_release_signals(const sigset_t *before);

/* The process is in a group of its own, which ends with it. */
struct race_ended race_run_process(const struct race_command *command);

#endif
