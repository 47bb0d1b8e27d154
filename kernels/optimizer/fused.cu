/*
 * fused.cu - a whole step of an element in registers: each array is
 * read once and written once.
 *
 * 1. fused_per_tensor  One launch a tensor, a block a slice of 8192 elements.
 *                      Teaches what is left when only the traffic is minimal:
 *                      vectors of a thousand elements each cost a launch and
 *                      leave the device empty.
 * 2. multi_tensor      One launch over the slices of all tensors, from a table
 *                      in device memory that prepare makes once (48 bytes a
 *                      slice beside 229,376 of AdamW). No tail between tensors.
 *
 * Both are bound by memory: 28 bytes a parameter (AdamW) or 20 (SGD), read and
 * written in equal parts. A thread moves 16 bytes an access (8 of bf16 and f16) and
 * issues the loads of two accesses of each array, eight in all, before the
 * first result; a block's four such rounds and four blocks a multiprocessor
 * keep about 128 KiB in flight there.
 */
#include "optimizer.cuh"

namespace {

constexpr int ELEMENTS = 4;      /* an access */
constexpr int IN_FLIGHT = 2;     /* accesses of each array */
constexpr int BLOCKS_PER_SM = 4; /* 64 registers a thread */

/* ---- rules ------------------------------------------------------------- */

struct adamw_rule {
    static constexpr bool HAS_SECOND = true;
    optimizer_adamw_factors f;

    __device__ __forceinline__ bool begin() { return true; }

    __device__ __forceinline__ void operator()(float g, float &value, float &first,
                                               float &second) const
    {
        first = f.beta1 * first + f.rest1 * g;
        second = f.beta2 * second + f.rest2 * g * g;
        value = f.decay * value - f.rate * first / (sqrtf(second) * f.root + f.epsilon);
    }
};

/* By what a loss scale's state says, which only the device knows. f.rate is the learning
 * rate. A rule of its own, so that the others need not ask. */
struct adamw_scaled_rule : adamw_rule {
    const optimizer_scaler *scaler;

    __device__ __forceinline__ bool begin()
    {
        f.rate *= scaler->correction1;
        f.root = scaler->correction2;
        return !scaler->skips;
    }
};

struct sgd_rule {
    static constexpr bool HAS_SECOND = false;
    optimizer_sgd s;

    __device__ __forceinline__ bool begin() { return true; }

    __device__ __forceinline__ void operator()(float g, float &value, float &first, float &) const
    {
        first = s.momentum * first + g;
        value -= s.learning_rate * first;
    }
};

/* ---- one access -------------------------------------------------------- */

/* N elements of a tensor's every array. */
template <typename T, int N> struct access_values {
    typename row_access<T, N>::raw gradient;
    typename row_access<float, N>::raw value, first, second;
};

/* A slice's arrays; value is the f32 parameter itself, or its master. */
template <typename T> struct slice {
    T *parameter;
    const T *gradient;
    float *value, *first, *second;
};

__device__ __forceinline__ float *value_of(const optimizer_tensor &t, float)
{
    return static_cast<float *>(t.parameter);
}

template <typename T>
__device__ __forceinline__ float *value_of(const optimizer_tensor &t, T)
{
    return t.master;
}

/* To be evicted first: a step touches each line once. */
template <int N, typename T>
__device__ __forceinline__ typename row_access<T, N>::raw load(const T *array, int index)
{
    return __ldcs(reinterpret_cast<const typename row_access<T, N>::raw *>(array) + index);
}

template <int N, typename T>
__device__ __forceinline__ void store(T *array, int index, const float (&values)[N])
{
    __stcs(reinterpret_cast<typename row_access<T, N>::raw *>(array) + index,
           row_access<T, N>::pack(values));
}

template <int N, typename Rule, typename T>
__device__ __forceinline__ access_values<T, N> load_access(const slice<T> &s, int index)
{
    access_values<T, N> values;
    values.gradient = load<N>(s.gradient, index);
    values.value = load<N>(s.value, index);
    values.first = load<N>(s.first, index);
    if constexpr (Rule::HAS_SECOND) values.second = load<N>(s.second, index);
    return values;
}

template <int N> __device__ __forceinline__ void store_parameter(float *, int, const float (&)[N])
{
}

template <int N, typename T>
__device__ __forceinline__ void store_parameter(T *parameter, int index, const float (&values)[N])
{
    store<N>(parameter, index, values);
}

template <int N, typename Rule, typename T>
__device__ __forceinline__ void finish_access(const slice<T> &s, int index, float scale,
                                              const Rule &rule, const access_values<T, N> &values)
{
    float gradient[N], value[N], first[N], second[N];
    row_access<T, N>::unpack(values.gradient, gradient);
    row_access<float, N>::unpack(values.value, value);
    row_access<float, N>::unpack(values.first, first);
    if constexpr (Rule::HAS_SECOND) row_access<float, N>::unpack(values.second, second);
#pragma unroll
    for (int i = 0; i < N; i++) rule(scale * gradient[i], value[i], first[i], second[i]);
    store<N>(s.value, index, value);
    store<N>(s.first, index, first);
    if constexpr (Rule::HAS_SECOND) store<N>(s.second, index, second);
    store_parameter<N>(s.parameter, index, value);
}

/* ---- one slice --------------------------------------------------------- */

/* Accesses begin to end, shared out to the block's threads. */
template <int N, int COUNT, typename Rule, typename T>
__device__ __forceinline__ int update_accesses(const slice<T> &s, int begin, int end, float scale,
                                               const Rule &rule)
{
    int index = begin;
    for (; index + (COUNT - 1) * OPTIMIZER_THREADS < end; index += COUNT * OPTIMIZER_THREADS) {
        access_values<T, N> values[COUNT];
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            values[n] = load_access<N, Rule>(s, index + n * OPTIMIZER_THREADS);
#pragma unroll
        for (int n = 0; n < COUNT; n++)
            finish_access<N>(s, index + n * OPTIMIZER_THREADS, scale, rule, values[n]);
    }
    return index;
}

template <typename T, typename Rule>
__device__ __forceinline__ void update_slice(const optimizer_tensor &t, const float *gradient_scale,
                                             const Rule &rule)
{
    slice<T> s = {static_cast<T *>(t.parameter), static_cast<const T *>(t.gradient),
                  value_of(t, T()), t.first, t.second};
    int count = static_cast<int>(t.count), done = 0;
    float scale = optimizer_scale_at(gradient_scale);
    if (optimizer_is_aligned(t, sizeof(T), ELEMENTS, 0)) {
        int accesses = count / ELEMENTS, thread = static_cast<int>(threadIdx.x);
        int next = update_accesses<ELEMENTS, IN_FLIGHT>(s, thread, accesses, scale, rule);
        update_accesses<ELEMENTS, 1>(s, next, accesses, scale, rule);
        done = accesses * ELEMENTS;
    }
    update_accesses<1, 1>(s, done + static_cast<int>(threadIdx.x), count, scale, rule);
}

/* ---- kernels and launches ---------------------------------------------- */

template <typename T, typename Rule>
__global__ void __launch_bounds__(OPTIMIZER_THREADS, BLOCKS_PER_SM)
tensor_kernel(optimizer_tensor t, int head, const float *gradient_scale, Rule rule)
{
    if (!rule.begin()) return;
    update_slice<T>(optimizer_slice_at(t, sizeof(T), head, blockIdx.x), gradient_scale, rule);
}

template <typename T, typename Rule>
__global__ void __launch_bounds__(OPTIMIZER_THREADS, BLOCKS_PER_SM)
table_kernel(const optimizer_tensor *slices, const float *gradient_scale, Rule rule)
{
    if (!rule.begin()) return;
    update_slice<T>(slices[blockIdx.x], gradient_scale, rule);
}

template <typename T, typename Rule>
int launch_tensor(const optimizer_tensor &t, const float *gradient_scale, const Rule &rule,
                  kernel_stream stream)
{
    int head = optimizer_head(t, sizeof(T), ELEMENTS);
    int64_t blocks = optimizer_slice_count(t, head);
    if (blocks == 0) return KERNEL_OK;
    if (!row_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    tensor_kernel<T><<<static_cast<unsigned>(blocks), OPTIMIZER_THREADS, 0, stream>>>(
        t, head, gradient_scale, rule);
    return cudaGetLastError();
}

template <typename T, typename Rule>
int launch_table(const optimizer_table &table, const float *gradient_scale, const Rule &rule,
                 kernel_stream stream)
{
    if (table.count == 0) return KERNEL_OK;
    table_kernel<T><<<static_cast<unsigned>(table.count), OPTIMIZER_THREADS, 0, stream>>>(
        table.slices, gradient_scale, rule);
    return cudaGetLastError();
}

/* use(rule) of what the arguments ask for. */
template <typename Use> int with_rule(const optimizer_adamw_args &a, Use use)
{
    adamw_rule plain = {optimizer_factors_of(a.settings)};
    if (!a.scaler) return use(plain);
    adamw_scaled_rule scaled = {plain, a.scaler};
    scaled.f.rate = a.settings.learning_rate;
    return use(scaled);
}

template <typename Use> int with_rule(const optimizer_sgd_args &a, Use use)
{
    return use(sgd_rule{a.settings});
}

struct fused_per_tensor {
    template <typename T, typename Args> static int run(const Args &a, kernel_stream stream)
    {
        return with_rule(a, [&](const auto &rule) {
            int error = KERNEL_OK;
            for (int64_t i = 0; i < a.list.count && !error; i++)
                error = launch_tensor<T>(a.list.tensors[i], a.gradient_scale, rule, stream);
            return error;
        });
    }
};

struct multi_tensor {
    template <typename T, typename Args>
    static int run(const Args &a, const optimizer_table *table, kernel_stream stream)
    {
        return with_rule(a, [&](const auto &rule) {
            return launch_table<T>(*table, a.gradient_scale, rule, stream);
        });
    }
};

template <typename Args> int prepare(const void *args, void **state)
{
    const Args &a = *static_cast<const Args *>(args);
    return optimizer_make_table(a.list, kernel_dtype_bytes(a.dtype), ELEMENTS, false, BLOCKS_PER_SM,
                                state);
}

} // namespace

int optimizer_adamw_fused_per_tensor_run(const void *args, void *, void *, kernel_stream stream)
{
    return optimizer_dispatch<fused_per_tensor>(*static_cast<const optimizer_adamw_args *>(args),
                                                stream);
}

int optimizer_sgd_fused_per_tensor_run(const void *args, void *, void *, kernel_stream stream)
{
    return optimizer_dispatch<fused_per_tensor>(*static_cast<const optimizer_sgd_args *>(args),
                                                stream);
}

int optimizer_adamw_multi_tensor_prepare(const void *args, void **state)
{
    return prepare<optimizer_adamw_args>(args, state);
}

int optimizer_adamw_multi_tensor_run(const void *args, void *, void *state, kernel_stream stream)
{
    return optimizer_dispatch<multi_tensor>(*static_cast<const optimizer_adamw_args *>(args),
                                            static_cast<const optimizer_table *>(state), stream);
}

int optimizer_sgd_multi_tensor_prepare(const void *args, void **state)
{
    return prepare<optimizer_sgd_args>(args, state);
}

int optimizer_sgd_multi_tensor_run(const void *args, void *, void *state, kernel_stream stream)
{
    return optimizer_dispatch<multi_tensor>(*static_cast<const optimizer_sgd_args *>(args),
                                            static_cast<const optimizer_table *>(state), stream);
}
