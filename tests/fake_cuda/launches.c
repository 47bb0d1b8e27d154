/* What the host's half of a compiled kernel calls. There is no device to run the other half: a
 * launch takes its time on the stream, and writes nothing. */
#include "inside.h"

#include <string.h>

enum { MOST_NESTED = 8 };

/* Between the two halves of <<<...>>>. */
typedef struct configuration {
    dim3 blocks, threads;
    size_t shared_bytes;
    cudaStream_t stream;
} configuration;

static _Thread_local configuration pushed[MOST_NESTED];
static _Thread_local unsigned depth;

unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, size_t shared_bytes,
                                     cudaStream_t stream)
{
    if (depth == MOST_NESTED)
        return 1;
    pushed[depth++] = (configuration){blocks, threads, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *blocks, dim3 *threads, size_t *shared_bytes,
                                       void *stream)
{
    const configuration *last;
    if (depth == 0)
        return cudaErrorInvalidConfiguration;
    last = &pushed[--depth];
    *blocks = last->blocks;
    *threads = last->threads;
    *shared_bytes = last->shared_bytes;
    *(cudaStream_t *)stream = last->stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)(uintptr_t)function;
    return cudaSuccess;
}

static int is_empty(dim3 size)
{
    return size.x == 0 || size.y == 0 || size.z == 0;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    (void)kernel;
    (void)arguments;
    (void)shared_bytes;
    if (is_empty(blocks) || is_empty(threads))
        return fake_answer_locked(cudaErrorInvalidConfiguration);
    return fake_launch(stream, FAKE_EMPTY_KERNEL_US, 0);
}

/* The part of the configuration up to the stream is as the runtime documents it. */
cudaError_t cudaLaunchKernelExC(const void *given, const void *function, void **arguments)
{
    const configuration *how = (const configuration *)given;
    return __cudaLaunchKernel((cudaKernel_t)(uintptr_t)function, how->blocks, how->threads,
                              arguments, how->shared_bytes, how->stream);
}

cudaError_t cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                 int threads, size_t shared_bytes,
                                                                 unsigned flags)
{
    (void)function, (void)threads, (void)shared_bytes, (void)flags;
    *blocks = 2;
    return fake_answer_locked(cudaSuccess);
}

/* No kernel has written to it. */
cudaError_t cudaMemcpyFromSymbol(void *destination, const void *symbol, size_t bytes, size_t offset,
                                 int kind)
{
    cudaError_t code = cudaDeviceSynchronize();
    (void)symbol, (void)offset, (void)kind;
    if (code == cudaSuccess)
        memset(destination, 0, bytes);
    return code;
}

/* ---- what a program announces before it starts ---- */

static void *registered;

void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    return &registered;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
                            const char *name, int most_threads, void *thread, void *block,
                            dim3 *threads, dim3 *blocks, int *warp_size)
{
    (void)handle, (void)host_function, (void)device_function, (void)name, (void)most_threads;
    (void)thread, (void)block, (void)threads, (void)blocks, (void)warp_size;
}

void __cudaRegisterVar(void **handle, char *host_variable, char *device_address, const char *name,
                       int is_external, size_t bytes, int is_constant, int is_global)
{
    (void)handle, (void)host_variable, (void)device_address, (void)name;
    (void)is_external, (void)bytes, (void)is_constant, (void)is_global;
}
