/*
 * launch.cuh - a launch that need not wait for the end of the kernel before it.
 */
#ifndef KERNEL_LAUNCH_CUH
#define KERNEL_LAUNCH_CUH

#include <cuda_runtime.h>

#include "device.cuh"

/* Launches a kernel whose threads call ptx_wait_for_kernel_before in front of everything
 * that another kernel may have written or still reads. From 9.0 on it is put in place while
 * the kernel before it in the stream runs out (programmatic dependent launch), also
 * in a graph that captures it. */
template <typename... Parameters>
cudaError_t launch_early(void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                         size_t shared_bytes, cudaStream_t stream, Parameters... arguments)
{
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = device_compute_capability() >= 90 ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

#endif
