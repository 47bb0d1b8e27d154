/*
 * optimizer.cuh - what the CUDA optimizer variants share: their functions, as
 * optimizer.cu's tables name them, AdamW's factors, and the cutting of tensors
 * into slices, one a block.
 */
#ifndef OPTIMIZER_CUH
#define OPTIMIZER_CUH

#include <math.h>

#include "optimizer.h"
#include "../common/row.cuh"

size_t optimizer_adamw_per_tensor_workspace_bytes(const void *args);
int optimizer_adamw_per_tensor_run(const void *args, void *workspace, void *state,
                                   kernel_stream stream);
int optimizer_sgd_per_tensor_run(const void *args, void *workspace, void *state,
                                 kernel_stream stream);

int optimizer_adamw_fused_per_tensor_run(const void *args, void *workspace, void *state,
                                         kernel_stream stream);
int optimizer_sgd_fused_per_tensor_run(const void *args, void *workspace, void *state,
                                       kernel_stream stream);

int optimizer_adamw_multi_tensor_prepare(const void *args, void **state);
int optimizer_adamw_multi_tensor_run(const void *args, void *workspace, void *state,
                                     kernel_stream stream);
int optimizer_sgd_multi_tensor_prepare(const void *args, void **state);
int optimizer_sgd_multi_tensor_run(const void *args, void *workspace, void *state,
                                   kernel_stream stream);

size_t optimizer_norm_per_tensor_workspace_bytes(const void *args);
int optimizer_norm_per_tensor_run(const void *args, void *workspace, void *state,
                                  kernel_stream stream);
size_t optimizer_norm_fused_per_tensor_workspace_bytes(const void *args);
int optimizer_norm_fused_per_tensor_run(const void *args, void *workspace, void *state,
                                        kernel_stream stream);
int optimizer_norm_multi_tensor_prepare(const void *args, void **state);
int optimizer_norm_multi_tensor_run(const void *args, void *workspace, void *state,
                                    kernel_stream stream);

int optimizer_scale_per_tensor_run(const void *args, void *workspace, void *state,
                                   kernel_stream stream);
int optimizer_scale_multi_tensor_prepare(const void *args, void **state);
int optimizer_scale_multi_tensor_run(const void *args, void *workspace, void *state,
                                     kernel_stream stream);

/* Releases what any of the prepare functions made. */
void optimizer_multi_tensor_release(void *state);

constexpr int OPTIMIZER_THREADS = 256;

/* Four halves as one access of 8 bytes, beside float4s of the f32 state. */
template <typename T> struct row_access<T, 4> {
    using raw = uint2;
    using pair = row_pair<T>;
    static __device__ __forceinline__ void unpack(raw value, float (&out)[4])
    {
        pair::unpack(value.x, out[0], out[1]);
        pair::unpack(value.y, out[2], out[3]);
    }
    static __device__ __forceinline__ raw pack(const float (&in)[4])
    {
        return make_uint2(pair::pack(in[0], in[1]), pair::pack(in[2], in[3]));
    }
};

/* ---- AdamW ------------------------------------------------------------- */

/* The settings with everything that does not depend on the element worked out
 * in double. */
struct optimizer_adamw_factors {
    float beta1, beta2, rest1, rest2; /* rest = 1 - beta */
    float decay;                      /* 1 - learning_rate * weight_decay */
    float rate;                       /* learning_rate / (1 - beta1^t) */
    float root;                       /* 1 / sqrt(1 - beta2^t) */
    float epsilon;
};

inline optimizer_adamw_factors optimizer_factors_of(const optimizer_adamw &s)
{
    double beta1 = s.beta1, beta2 = s.beta2, rate = s.learning_rate;
    double step = static_cast<double>(s.step);
    return {s.beta1,
            s.beta2,
            static_cast<float>(1 - beta1),
            static_cast<float>(1 - beta2),
            static_cast<float>(1 - rate * s.weight_decay),
            static_cast<float>(rate / (1 - pow(beta1, step))),
            static_cast<float>(1 / sqrt(1 - pow(beta2, step))),
            s.epsilon};
}

__device__ __forceinline__ float optimizer_scale_at(const float *gradient_scale)
{
    return gradient_scale ? *gradient_scale : 1.0f;
}

/* ---- checks ------------------------------------------------------------ */

inline bool optimizer_is_valid(const optimizer_adamw_args &a)
{
    return a.list.count > 0 && a.settings.step >= 1;
}

inline bool optimizer_is_valid(const optimizer_sgd_args &a)
{
    return a.list.count > 0;
}

inline bool optimizer_is_valid(const optimizer_clip_args &a)
{
    return a.list.count > 0;
}

/* Variant::run<T>(args, more...) for the dtype's T, or KERNEL_ERROR_ARGUMENT. */
template <typename Variant, typename Args, typename... More>
int optimizer_dispatch(const Args &args, More... more)
{
    if (!optimizer_is_valid(args)) return KERNEL_ERROR_ARGUMENT;
    switch (args.dtype) {
    case KERNEL_F32: return Variant::template run<float>(args, more...);
    case KERNEL_F16: return Variant::template run<__half>(args, more...);
    case KERNEL_BF16: return Variant::template run<__nv_bfloat16>(args, more...);
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

/* ---- slices ------------------------------------------------------------ */

/* Elements of a slice: 32 KiB of f32. A block's start and its table entry are
 * small beside it, and the smallest model still has 12,000 slices. */
constexpr int OPTIMIZER_SLICE = 8192;

/* The only members that a clipping touches: NULL pointers take no part in
 * finding the alignment. */
inline optimizer_tensor optimizer_gradient_only(const optimizer_tensor &t)
{
    return {t.count, nullptr, t.gradient, nullptr, nullptr, nullptr};
}

/* Whether element `index` of each array that is there starts an access of
 * `elements` elements. */
inline __host__ __device__ bool optimizer_is_aligned(const optimizer_tensor &t,
                                                     size_t element_bytes, int elements, int index)
{
    size_t narrow = element_bytes * elements, wide = sizeof(float) * elements;
    auto apart = [index](const void *pointer, size_t element, size_t access) {
        return pointer ? (reinterpret_cast<uintptr_t>(pointer) + index * element) % access : 0;
    };
    /* No short circuit: the members of a table's slice are loaded together. */
    return (apart(t.parameter, element_bytes, narrow) | apart(t.gradient, element_bytes, narrow) |
            apart(t.master, sizeof(float), wide) | apart(t.first, sizeof(float), wide) |
            apart(t.second, sizeof(float), wide)) == 0;
}

/* Elements before the first that is aligned in every array, 0 where there is
 * none: such tensors move one element at a time. They are a slice of their
 * own, so that the others are aligned. */
inline int optimizer_head(const optimizer_tensor &t, size_t element_bytes, int elements)
{
    for (int head = 0; head < elements; head++)
        if (optimizer_is_aligned(t, element_bytes, elements, head)) return head;
    return 0;
}

inline int64_t optimizer_slice_count(const optimizer_tensor &t, int head)
{
    if (t.count <= head) return t.count > 0;
    return (head > 0) + ceil_div(t.count - head, OPTIMIZER_SLICE);
}

inline __host__ __device__ float *optimizer_advance(float *pointer, int64_t elements)
{
    return pointer ? pointer + elements : nullptr;
}

inline __host__ __device__ void *optimizer_advance(void *pointer, int64_t bytes)
{
    return pointer ? static_cast<char *>(pointer) + bytes : nullptr;
}

/* Slice `index` as a tensor of its own. */
inline __host__ __device__ optimizer_tensor optimizer_slice_at(const optimizer_tensor &t,
                                                               size_t element_bytes, int head,
                                                               int64_t index)
{
    bool is_head = head > 0 && index == 0;
    int64_t begin = is_head ? 0 : head + (index - (head > 0)) * OPTIMIZER_SLICE;
    int64_t limit = is_head ? head : OPTIMIZER_SLICE, left = t.count - begin;
    int64_t bytes = begin * static_cast<int64_t>(element_bytes);
    return {left < limit ? left : limit,
            optimizer_advance(t.parameter, bytes),
            optimizer_advance(t.gradient, bytes),
            optimizer_advance(t.master, begin),
            optimizer_advance(t.first, begin),
            optimizer_advance(t.second, begin)};
}

/* ---- the table of all slices ------------------------------------------- */

/* What prepare makes, for one launch over every tensor. */
struct optimizer_table {
    optimizer_tensor *slices; /* device memory, as are the next two */
    double *partials;         /* [blocks] */
    unsigned *arrived;        /* blocks that are done; 0 between runs */
    int64_t count;
    unsigned blocks; /* of a grid that stays on the device */
};

/* A table over the list's tensors, aligned for `elements` an access; memory
 * for a grid of blocks_per_sm. KERNEL_OK, KERNEL_ERROR_ARGUMENT,
 * KERNEL_ERROR_MEMORY or a cudaError_t. */
int optimizer_make_table(const optimizer_list &list, size_t element_bytes, int elements,
                         bool gradient_only, int blocks_per_sm, void **state);

#endif
