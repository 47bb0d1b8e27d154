/* What the substitutes for cuBLAS and cuRAND know of those for the CUDA runtime and of each
 * other. They include the toolkit's headers, whose declarations they are held to, so that
 * fake_cuda's own cannot be had beside them. */
#ifndef GPUBENCH_TESTS_FAKE_CUBLAS_INSIDE_H
#define GPUBENCH_TESTS_FAKE_CUBLAS_INSIDE_H

#include <cuda_runtime_api.h>

#include <stdint.h>

/* See fake_cuda/faulty.h. */
int faulty_call(const char *call) __attribute__((weak));

/* Does the program that is linked with them make this call fail? */
static inline int fails(const char *call)
{
    return faulty_call && faulty_call(call) != 0;
}

/* One product of column-major f32 matrices for each of batch: d = alpha a b + beta c. */
typedef struct product {
    int a_is_transposed, b_is_transposed;
    int64_t m, n, k, lda, ldb, ldc, ldd, batch, stride_a, stride_b, stride_d;
    const float *a, *b, *c;
    float *d, alpha, beta;
} product;

/* Enqueues what a library does: it takes us of simulated time, then function is called on a
 * copy of bytes of argument, which stays until the process ends, since a graph may hold it.
 * 0, or -1: the runtime refused it. */
int fake_enqueue_work(cudaStream_t stream, double us, void (*function)(void *argument),
                      const void *argument, size_t bytes);

int fake_enqueue_product(cudaStream_t stream, const product *what);

#endif
