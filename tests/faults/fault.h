/* Which use of which call fails: the variable FAULT of the environment says it as
 * "CALL N KIND", where the N-th use of CALL in a process is meant. KIND is
 *   once   that use, in the first process that comes so far
 *   on     that use and all later ones, in each process
 *   lost   once, and the context is lost (of CUDA's calls only)
 *   signal that use does what it should, in the first process that comes so far, but a
 *          signal is there before: SIGTERM
 * FAULT_MARK names a file that is made when it happens; FAULT_USES one that is there, in which
 * the uses of each call are counted. */
#ifndef GPUBENCH_TESTS_FAULT_H
#define GPUBENCH_TESTS_FAULT_H

#ifdef __cplusplus
extern "C" {
#endif

enum { FAULT_CALLS = 160 };

/* What FAULT_USES holds: of each call that was used its name and the most uses in one
 * process. */
typedef struct fault_uses {
    int taken; /* by a process that counts */
    struct {
        char call[56];
        long most;
    } of[FAULT_CALLS];
} fault_uses;

/* 1 if this use of the call is to fail. Called wherever the call is. */
int fault_now(const char *call);

/* Whether what happens now is the loss of the context; whether what happened goes on. */
int fault_is_loss(void);
int fault_lasts(void);

/* With FAULT_FROM=cases in the environment, uses before this do not count. */
void fault_count_cases(void);

#ifdef __cplusplus
}
#endif
#endif
