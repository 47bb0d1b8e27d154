/*
 * cuda13.h - what llm.c's trainer, whose files stay as they are, calls of CUDA 12 and CUDA 13
 * has no more: advice about managed memory, which the latter gives to a place instead of a
 * device's number. Included in front of each of its files.
 */
#ifndef LLMC_CUDA13_H
#define LLMC_CUDA13_H

#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000
static inline cudaError_t cudaMemAdvise(const void *memory, size_t bytes, cudaMemoryAdvise advice,
                                        int device)
{
    cudaMemLocation place = {};
    place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    place.id = device == cudaCpuDeviceId ? 0 : device;
    return cudaMemAdvise(memory, bytes, advice, place);
}
#endif

#endif
