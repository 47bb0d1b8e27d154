/*
 * accumulate.cu - the gradients of a step's micro-batches added up, in f32.
 *
 * Bound by memory: of each element 2 or 4 bytes of gradient read, 4 of sum read and 4
 * written; the last writes the gradient. 16 bytes of sums an access.
 */
#include "model.cuh"

#include "../common/row.cuh"

namespace {

constexpr int THREADS = 256, EACH = 4;

template <typename T>
__global__ void __launch_bounds__(THREADS) accumulate_kernel(model_accumulate a)
{
    int64_t first = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) * EACH;
    if (first >= a.count) return;
    T *gradients = static_cast<T *>(a.gradients) + first;
    float4 *sums = reinterpret_cast<float4 *>(a.sums + first);
    float sum[EACH] = {}, gradient[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) gradient[i] = row_get(gradients, i);
    if (!a.is_first) row_access<float, EACH>::unpack(*sums, sum);
#pragma unroll
    for (int i = 0; i < EACH; i++) sum[i] += gradient[i];
    if (!a.is_last) {
        *sums = row_access<float, EACH>::pack(sum);
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) row_set(gradients, i, sum[i]);
}

template <typename T> int launch(const model_accumulate &a, kernel_stream stream)
{
    static_assert(MODEL_TENSOR_ALIGNMENT % EACH == 0, "all tensors end with a whole access");
    int64_t blocks = ceil_div(a.count, THREADS * EACH);
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    accumulate_kernel<T><<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

} // namespace

int model_accumulate_run(const model_accumulate &a, kernel_stream stream)
{
    switch (a.dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return launch<float>(a, stream);
    case KERNEL_F16: return launch<__half>(a, stream);
    case KERNEL_BF16: return launch<__nv_bfloat16>(a, stream);
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
