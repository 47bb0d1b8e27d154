/* Which use of which call fails: the variable FAULT of the environment says it as
 * "CALL N KIND", where the N-th use of CALL in a process is meant. KIND is
 *   once   that use, in the first process that comes so far
 *   on     that use and all later ones, in each process
 *   lost   once, and the context is lost (of CUDA's calls only)
 * FAULT_MARK names a file that is made when it happens. */
#ifndef GPUBENCH_TESTS_FAULT_H
#define GPUBENCH_TESTS_FAULT_H

#ifdef __cplusplus
extern "C" {
#endif

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
