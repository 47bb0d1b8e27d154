/*
 * norm.cuh - what the CUDA norm variants share: their functions, as norm.cu's
 * table names them, and the arguments with typed pointers.
 */
#ifndef NORM_CUH
#define NORM_CUH

#include "norm.h"
#include "../common/row.cuh"

int norm_naive_forward_run(const void *args, void *workspace, void *state, kernel_stream stream);
int norm_naive_backward_run(const void *args, void *workspace, void *state, kernel_stream stream);

int norm_vectorized_forward_run(const void *args, void *workspace, void *state,
                                kernel_stream stream);
size_t norm_vectorized_backward_workspace_bytes(const void *args);
int norm_vectorized_backward_run(const void *args, void *workspace, void *state,
                                 kernel_stream stream);

/* norm.h's arguments for kernels. A pointer that is NULL is how a kernel knows
 * what it is: mean (layernorm), residual or dsum (fused). */
template <typename T> struct norm_forward_rows {
    int64_t rows, width;
    float inverse_width;
    const T *x, *residual, *weight, *bias;
    T *y, *sum;
    float *mean, *rstd;
};

template <typename T> norm_forward_rows<T> norm_typed(const norm_forward_args &a)
{
    bool layer = a.kind == NORM_LAYER;
    return {.rows = a.shape.rows,
            .width = a.shape.width,
            .inverse_width = 1.0f / static_cast<float>(a.shape.width),
            .x = static_cast<const T *>(a.x),
            .residual = static_cast<const T *>(a.residual),
            .weight = static_cast<const T *>(a.weight),
            .bias = layer ? static_cast<const T *>(a.bias) : nullptr,
            .y = static_cast<T *>(a.y),
            .sum = static_cast<T *>(a.sum),
            .mean = layer ? a.mean : nullptr,
            .rstd = a.rstd};
}

template <typename T> struct norm_backward_rows {
    int64_t rows, width;
    float inverse_width;
    const T *x, *weight, *dy, *dsum;
    const float *mean, *rstd;
    T *dx, *dweight, *dbias;
};

template <typename T> norm_backward_rows<T> norm_typed(const norm_backward_args &a)
{
    bool layer = a.kind == NORM_LAYER;
    return {.rows = a.shape.rows,
            .width = a.shape.width,
            .inverse_width = 1.0f / static_cast<float>(a.shape.width),
            .x = static_cast<const T *>(a.x),
            .weight = static_cast<const T *>(a.weight),
            .dy = static_cast<const T *>(a.dy),
            .dsum = static_cast<const T *>(a.dsum),
            .mean = layer ? a.mean : nullptr,
            .rstd = a.rstd,
            .dx = static_cast<T *>(a.dx),
            .dweight = static_cast<T *>(a.dweight),
            .dbias = layer ? static_cast<T *>(a.dbias) : nullptr};
}

inline bool norm_is_valid(const norm_shape &s)
{
    return s.rows > 0 && s.width > 0;
}

/* run<T>(args) for the dtype's T, or KERNEL_ERROR_ARGUMENT. */
template <typename Args, typename Run> int norm_dispatch(const Args &args, Run run)
{
    if (!norm_is_valid(args.shape)) return KERNEL_ERROR_ARGUMENT;
    switch (args.dtype) {
    case KERNEL_F32: return run(norm_typed<float>(args));
    case KERNEL_F16: return run(norm_typed<__half>(args));
    case KERNEL_BF16: return run(norm_typed<__nv_bfloat16>(args));
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}

/* The naive kernels for rows that are too wide for the registers. */
template <typename T> int norm_naive_forward(const norm_forward_rows<T> &r, kernel_stream stream);
template <typename T> int norm_naive_backward(const norm_backward_rows<T> &r, kernel_stream stream);

#endif
