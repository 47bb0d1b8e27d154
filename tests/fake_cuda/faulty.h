/* For programs in which calls are made to fail. */
#ifndef FAKE_CUDA_FAULTY_H
#define FAKE_CUDA_FAULTY_H

#include "cuda_runtime_api.h"

/* As after a kernel that wrote where it must not, which the call that returns this is
 * the first to tell. */
cudaError_t fake_lose_context(void);

/* A program may define it: what a function of the driver or of NVML is to answer; 0: as
 * it would. */
int faulty_call(const char *call) __attribute__((weak));

#endif
