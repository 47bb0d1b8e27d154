/* For what is compiled with the toolkit's headers and linked with the substitute for the CUDA
 * runtime: the toolkit's structure of a device is another than the substitute's. */
#ifndef GPUBENCH_TESTS_DESCRIBE_H
#define GPUBENCH_TESTS_DESCRIBE_H

#include "../fake_cupti/device.h"

#include <string.h>

/* The name and the UUID stand at the front of both structures. */
static cudaError_t describe(struct cudaDeviceProp *properties, int device)
{
    cudaError_t code = cudaGetDeviceProperties(properties, device);
    memset((char *)properties + sizeof properties->name + sizeof properties->uuid, 0,
           sizeof *properties - sizeof properties->name - sizeof properties->uuid);
    properties->totalGlobalMem = (size_t)1 << 30;
    properties->l2CacheSize = 1 << 20;
    be_of_9_0(properties);
    return code;
}

#define cudaGetDeviceProperties describe

#endif
