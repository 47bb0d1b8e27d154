/*
 * ones.c - of values that are all 1 attention gives 1, whatever the scores: every variant
 * and dtype on a GPU, over a short and a long context. As TAP lines.
 *
 * The suite's values have a mean of 0, and so its sums stay small. Where they grow with every
 * key, tensor cores that add to e4m3's sums with too few bits lose a part of each: a quarter
 * over 16384 keys, which no rounding of the operands explains.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../kernels/attention/attention.h"
#include "../../kernels/common/convert.h"
#include "../../kernels/common/random.h"

static int tests, failures;

/* What an output of 1 may be off by: as the products' operands round, f32's at length as
 * its sums do. Of e4m3 the roundoff of probabilities is as often up as down, and of n
 * normal scores all but 0.0361 sqrt(e / n) of it cancels (suite.h has 0.0361): the output is
 * bf16's. */
static double bound_of(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32: return 1e-5;
    case KERNEL_TF32:
    case KERNEL_F16: return 1e-3;
    case KERNEL_BF16:
    case KERNEL_E4M3: return 6e-3;
    case KERNEL_U8: break;
    }
    return 0;
}

/* count elements on the device: normal ones, or all 1 where seed is 0. */
static void *elements(kernel_dtype dtype, int64_t count, uint64_t seed)
{
    size_t bytes = (size_t)count * kernel_dtype_bytes(dtype);
    float *ones = malloc((size_t)count * sizeof *ones);
    void *host = malloc(bytes), *device = NULL;
    if (!ones || !host) abort();
    for (int64_t i = 0; i < count; i++) ones[i] = 1;
    if (seed)
        random_normal_cpu(host, dtype, count, 0, 1, seed);
    else
        kernel_from_f32(ones, dtype, count, host);
    if (cudaMalloc(&device, bytes) || cudaMemcpy(device, host, bytes, cudaMemcpyDefault)) abort();
    free(ones);
    free(host);
    return device;
}

/* The root mean square of out - 1; infinite where there is none. */
static double error_of(const void *out, kernel_dtype dtype, int64_t count)
{
    size_t bytes = (size_t)count * kernel_dtype_bytes(dtype);
    float *values = malloc((size_t)count * sizeof *values);
    void *host = malloc(bytes);
    double squares = 0;
    if (!values || !host) abort();
    if (cudaMemcpy(host, out, bytes, cudaMemcpyDefault))
        squares = INFINITY;
    else
        kernel_to_f32(host, dtype, count, values);
    for (int64_t i = 0; i < count && isfinite(squares); i++)
        squares += pow((double)values[i] - 1, 2);
    free(values);
    free(host);
    return sqrt(squares / (double)count);
}

static int run(const kernel_variant *variant, const attention_forward_args *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *workspace = NULL, *state = NULL;
    int code = bytes ? (int)cudaMalloc(&workspace, bytes) : 0;
    if (code == 0 && variant->prepare) code = variant->prepare(args, &state);
    if (code == 0) code = variant->run(args, workspace, state, NULL);
    if (code == 0) code = (int)cudaDeviceSynchronize();
    if (variant->release && state) variant->release(state);
    cudaFree(workspace);
    return code;
}

static void check(const kernel_variant *variant, const attention_forward_args *args)
{
    const attention_shape *s = &args->shape;
    int code = run(variant, args);
    double error = error_of(args->out, kernel_result_dtype(args->dtype), s->tokens * s->head_dim);
    int holds = code == 0 && error <= bound_of(args->dtype);
    failures += !holds;
    printf("%sok %d - %s %s of %lld keys, d=%lld causal=%d: off by %.2g of %.2g allowed (%d)\n",
           holds ? "" : "not ", ++tests, variant->name, kernel_dtype_name(args->dtype),
           (long long)s->tokens, (long long)s->head_dim, s->causal, error, bound_of(args->dtype),
           code);
}

static void check_variants(attention_shape shape, kernel_dtype dtype, int capability)
{
    int64_t count = shape.tokens * shape.head_dim;
    attention_forward_args args = {.shape = shape, .dtype = dtype};
    args.q = elements(dtype, count, 1);
    args.k = elements(dtype, count, 2);
    args.v = elements(dtype, count, 0);
    args.out = elements(kernel_result_dtype(dtype), count, 3);
    for (size_t i = 0; i < attention_forward_cuda.count; i++) {
        const kernel_variant *variant = &attention_forward_cuda.rows[i];
        if ((variant->dtypes & KERNEL_DTYPE_BIT(dtype)) &&
            variant->min_compute_capability <= capability &&
            !(variant->unsupported && variant->unsupported(&args)))
            check(variant, &args);
    }
    cudaFree((void *)(uintptr_t)args.q);
    cudaFree((void *)(uintptr_t)args.k);
    cudaFree((void *)(uintptr_t)args.v);
    cudaFree(args.out);
}

int main(void)
{
    static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_TF32, KERNEL_F16, KERNEL_BF16,
                                          KERNEL_E4M3};
    static const attention_shape shapes[] = {
        {1, 1, 1000, 64, 0}, {1, 1, 8200, 64, 0}, {1, 1, 8200, 128, 1}};
    int major, minor;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0))
        return 2;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
            check_variants(shapes[s], dtypes[d], major * 10 + minor);
    printf("1..%d\n", tests);
    return failures > 0;
}
