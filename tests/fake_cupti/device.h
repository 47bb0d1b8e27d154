/* What substitutes tell of a device: a multiprocessor of compute capability 9.0, 132 times. For
 * what is compiled with the toolkit's headers. */
#ifndef GPUBENCH_TESTS_DEVICE_H
#define GPUBENCH_TESTS_DEVICE_H

#include <cuda_runtime_api.h>

static void be_of_9_0(struct cudaDeviceProp *properties)
{
    properties->major = 9;
    properties->multiProcessorCount = 132;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->sharedMemPerBlock = 49152;
    properties->sharedMemPerMultiprocessor = 233472;
    properties->sharedMemPerBlockOptin = 232448;
    properties->reservedSharedMemPerBlock = 1024;
}

#endif
