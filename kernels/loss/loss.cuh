/*
 * loss.cuh - what the CUDA loss variants share: their functions, as loss.cu's
 * tables name them, the arguments with typed pointers, and the rows' targets.
 */
#ifndef LOSS_CUH
#define LOSS_CUH

#include <math.h>

#include "loss.h"
#include "../common/row.cuh"

size_t loss_naive_workspace_bytes(const void *args);
int loss_naive_forward_run(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_naive_backward_run(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_naive_forward_backward_run(const void *args, void *workspace, void *state,
                                    kernel_stream stream);

int loss_fused_forward_run(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_fused_backward_run(const void *args, void *workspace, void *state, kernel_stream stream);
int loss_fused_forward_backward_run(const void *args, void *workspace, void *state,
                                    kernel_stream stream);

/* loss.h's arguments for kernels. */
template <typename T> struct loss_rows {
    int64_t rows;
    int classes;
    const T *logits;
    const int32_t *targets;
    const float *dloss;
    float *loss, *lse;
    T *dlogits;
    int *error;

    __device__ __forceinline__ int64_t first(int64_t row) const { return row * classes; }

    __device__ __forceinline__ bool is_class(int target) const
    {
        return target >= 0 && target < classes;
    }

    /* Apart from the uses below, none of which needs it to have happened, so
     * that a kernel's loads do not wait behind its branch. */
    __device__ __forceinline__ void report(int target) const
    {
        if (error && !is_class(target)) *error = KERNEL_ERROR_INDEX;
    }

    /* NaN, and so is the loss, if the target is no class. */
    __device__ __forceinline__ float target_logit(int64_t row, int target) const
    {
        return is_class(target) ? row_get(logits + first(row), target) : NAN;
    }

    /* What a row's gradient is scaled by. */
    __device__ __forceinline__ float scale(int target, float row_dloss) const
    {
        return is_class(target) ? row_dloss : NAN;
    }
};

template <typename T> loss_rows<T> loss_typed(const loss_args &a)
{
    return {a.shape.rows,
            static_cast<int>(a.shape.classes),
            static_cast<const T *>(a.logits),
            a.targets,
            a.dloss,
            a.loss,
            a.lse,
            static_cast<T *>(a.dlogits),
            a.error};
}

inline bool loss_is_valid(const loss_shape &s)
{
    return s.rows > 0 && s.classes > 0 && s.classes <= INT32_MAX && row_fits_grid(s.rows);
}

/* run(rows) for the dtype's T, or KERNEL_ERROR_ARGUMENT. */
template <typename Run> int loss_dispatch(const void *args, Run run)
{
    const loss_args &a = *static_cast<const loss_args *>(args);
    if (!loss_is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F32: return run(loss_typed<float>(a));
    case KERNEL_F16: return run(loss_typed<__half>(a));
    case KERNEL_BF16: return run(loss_typed<__nv_bfloat16>(a));
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

#endif
