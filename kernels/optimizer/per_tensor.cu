/*
 * per_tensor.cu - steps as a framework's loop over tensors runs
 * them.
 *
 * 1. per_tensor  A launch for each operation of the formula and each tensor:
 *                eight for AdamW, three for SGD, one more to round a bf16
 *                parameter. Teaches what leaving the registers costs: 80 bytes
 *                a parameter where 28 are needed, and hundreds of launches,
 *                most of them over vectors that take less time than a launch.
 *                Bound by memory for large models, by launches for small.
 */
#include "optimizer.cuh"

namespace {

/* ---- one operation ----------------------------------------------------- */

struct multiply {
    float *x, factor;
    __device__ void operator()(int64_t i) const { x[i] *= factor; }
};

struct add_constant {
    float *x, constant;
    __device__ void operator()(int64_t i) const { x[i] += constant; }
};

struct square_root {
    float *x;
    const float *y;
    __device__ void operator()(int64_t i) const { x[i] = sqrtf(y[i]); }
};

struct add_scaled {
    float *x;
    const float *y;
    float factor;
    __device__ void operator()(int64_t i) const { x[i] += factor * y[i]; }
};

struct add_quotient {
    float *x;
    const float *numerator, *denominator;
    float factor;
    __device__ void operator()(int64_t i) const
    {
        x[i] += factor * numerator[i] / denominator[i];
    }
};

/* A gradient as stored and what it is multiplied by. */
template <typename T> struct scaled_gradient {
    const T *values;
    const float *scale;
    __device__ float operator[](int64_t i) const
    {
        return optimizer_scale_at(scale) * row_get(values, i);
    }
};

template <typename T> struct add_gradient {
    float *x;
    scaled_gradient<T> gradient;
    __device__ void operator()(int64_t i) const { x[i] += gradient[i]; }
};

template <typename T> struct mix_gradient {
    float *x;
    scaled_gradient<T> gradient;
    float weight;
    __device__ void operator()(int64_t i) const { x[i] += weight * (gradient[i] - x[i]); }
};

template <typename T> struct add_square {
    float *x;
    scaled_gradient<T> gradient;
    float factor;
    __device__ void operator()(int64_t i) const { x[i] += factor * gradient[i] * gradient[i]; }
};

template <typename T> struct narrow {
    T *x;
    const float *y;
    __device__ void operator()(int64_t i) const { row_set(x, i, y[i]); }
};

template <typename Operation>
__global__ void __launch_bounds__(OPTIMIZER_THREADS)
elementwise_kernel(Operation operation, int64_t count)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * OPTIMIZER_THREADS + threadIdx.x;
    if (i < count) operation(i);
}

/* ---- launches ---------------------------------------------------------- */

/* Launches operations over one tensor until one fails. */
struct launcher {
    int64_t count;
    kernel_stream stream;
    int error;

    template <typename Operation> void operator()(Operation operation)
    {
        int64_t blocks = ceil_div(count, OPTIMIZER_THREADS);
        if (!row_fits_grid(blocks)) error = KERNEL_ERROR_ARGUMENT;
        if (error || count == 0) return;
        elementwise_kernel<<<static_cast<unsigned>(blocks), OPTIMIZER_THREADS, 0, stream>>>(
            operation, count);
        error = cudaGetLastError();
    }
};

/* What a step updates: the f32 parameter itself, or its master. */
template <typename T> float *value_of(const optimizer_tensor &t)
{
    return t.master;
}

template <> float *value_of<float>(const optimizer_tensor &t)
{
    return static_cast<float *>(t.parameter);
}

void round_parameter(const optimizer_tensor &, launcher &, float) {}

template <typename T> void round_parameter(const optimizer_tensor &t, launcher &launch, T)
{
    launch(narrow<T>{static_cast<T *>(t.parameter), t.master});
}

template <typename T>
int adamw_tensor(const optimizer_tensor &t, const optimizer_adamw_factors &f,
                 const float *gradient_scale, float *root, kernel_stream stream)
{
    launcher launch = {t.count, stream, KERNEL_OK};
    scaled_gradient<T> gradient = {static_cast<const T *>(t.gradient), gradient_scale};
    float *value = value_of<T>(t);
    launch(multiply{value, f.decay});
    launch(mix_gradient<T>{t.first, gradient, f.rest1});
    launch(multiply{t.second, f.beta2});
    launch(add_square<T>{t.second, gradient, f.rest2});
    launch(square_root{root, t.second});
    launch(multiply{root, f.root});
    launch(add_constant{root, f.epsilon});
    launch(add_quotient{value, t.first, root, -f.rate});
    round_parameter(t, launch, T());
    return launch.error;
}

struct adamw {
    template <typename T>
    static int run(const optimizer_adamw_args &a, float *root, kernel_stream stream)
    {
        optimizer_adamw_factors factors = optimizer_factors_of(a.settings);
        int error = KERNEL_OK;
        for (int64_t i = 0; i < a.list.count && !error; i++)
            error = adamw_tensor<T>(a.list.tensors[i], factors, a.gradient_scale, root, stream);
        return error;
    }
};

template <typename T>
int sgd_tensor(const optimizer_tensor &t, const optimizer_sgd &s, const float *gradient_scale,
               kernel_stream stream)
{
    launcher launch = {t.count, stream, KERNEL_OK};
    launch(multiply{t.first, s.momentum});
    launch(add_gradient<T>{t.first, {static_cast<const T *>(t.gradient), gradient_scale}});
    launch(add_scaled{value_of<T>(t), t.first, -s.learning_rate});
    round_parameter(t, launch, T());
    return launch.error;
}

struct sgd {
    template <typename T> static int run(const optimizer_sgd_args &a, kernel_stream stream)
    {
        int error = KERNEL_OK;
        for (int64_t i = 0; i < a.list.count && !error; i++)
            error = sgd_tensor<T>(a.list.tensors[i], a.settings, a.gradient_scale, stream);
        return error;
    }
};

} // namespace

/* The root of the second moment, of the largest tensor. */
size_t optimizer_adamw_per_tensor_workspace_bytes(const void *args)
{
    const optimizer_list &list = static_cast<const optimizer_adamw_args *>(args)->list;
    int64_t largest = 0;
    for (int64_t i = 0; i < list.count; i++)
        if (list.tensors[i].count > largest) largest = list.tensors[i].count;
    return static_cast<size_t>(largest) * sizeof(float);
}

int optimizer_adamw_per_tensor_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    return optimizer_dispatch<adamw>(*static_cast<const optimizer_adamw_args *>(args),
                                     static_cast<float *>(workspace), stream);
}

int optimizer_sgd_per_tensor_run(const void *args, void *, void *, kernel_stream stream)
{
    return optimizer_dispatch<sgd>(*static_cast<const optimizer_sgd_args *>(args), stream);
}
