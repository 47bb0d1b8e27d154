/* For what is compiled with the toolkit's headers and linked with the substitute for the CUDA
 * runtime: the toolkit's structure of a device is another than the substitute's. */
#ifndef GPUBENCH_TESTS_DESCRIBE_H
#define GPUBENCH_TESTS_DESCRIBE_H

#include <cuda_runtime_api.h>

#include <string.h>

/* The name and the UUID stand at the front of both structures. */
static cudaError_t describe(struct cudaDeviceProp *properties, int device)
{
    cudaError_t code = cudaGetDeviceProperties(properties, device);
    memset((char *)properties + sizeof properties->name + sizeof properties->uuid, 0,
           sizeof *properties - sizeof properties->name - sizeof properties->uuid);
    properties->totalGlobalMem = (size_t)1 << 30;
    properties->major = 9;
    properties->multiProcessorCount = 132;
    properties->l2CacheSize = 1 << 20;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->sharedMemPerBlock = 49152;
    properties->sharedMemPerMultiprocessor = 233472;
    properties->sharedMemPerBlockOptin = 232448;
    return code;
}

#define cudaGetDeviceProperties describe

#endif
