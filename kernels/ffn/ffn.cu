/*
 * ffn.cu - the feed-forward network on the libraries' products (linear.cuh).
 *
 * 1. cublas    Two products forward and four backward by cublasGemmEx; bias,
 *              GELU, their gradients and the bias sums by kernels of our own.
 *              Teaches what those kernels cost: GELU's reads and writes
 *              [tokens, hidden] at the speed of memory, the more of the whole
 *              the narrower the layers are.
 * 2. cublaslt  The same with the epilogues inside cuBLASLt's products
 *              (GELU_AUX_BIAS or GELU_BIAS, BIAS; DGELU_BGRAD, BGRADB) and the
 *              algorithm of each chosen by timing in prepare. Where the library
 *              has no such epilogue for the shape or dtype (hidden not divisible
 *              by 8, say), or has a slow one, that step falls back to cuBLASLt's
 *              plain product and the kernels of variant 1.
 *
 * Both are bound by the tensor cores (f32: the CUDA cores) at thousands of
 * tokens; at hundreds by reading the weights and by the last wave of tiles.
 *
 * e4m3 is cublaslt's only. Its first product rounds hidden to e4m3 where the library has that
 * with bias and GELU (on 9.0 it has); else a kernel of our own reads bf16 and writes e4m3.
 * Predicted: up to twice bf16's rate where tensor cores bound it, half the time of reading
 * weights where that does. On an H200, in one sitting with bf16 (us; at 8192 tokens and more
 * than 768 wide both at the power limit):
 *
 *     tokens, width   e4m3     bf16
 *     8192, 4096     1709.2   3253.7   1287 TFLOP/s; 1845.9 with sums in full precision
 *     8192, 1600      286.9    514.5   305.9
 *     8192, 768        77.9    116.2    90.0
 *     512, 2560        49.0     83.8
 *     512, 768         16.1     20.0   launches and latencies stay
 *
 * Not deterministic across processes: cublaslt may choose another algorithm.
 */
#include "ffn.h"

#include <new>

#include "../common/device.cuh"
#include "../linear/linear.cuh"

namespace {

constexpr int MOST_STEPS = 4;

/* The handle and one plan per product, in the order of running. */
struct ffn_state {
    cublasHandle_t handle;
    linear_plan steps[MOST_STEPS];
};

bool is_valid(const ffn_shape &s)
{
    return s.tokens > 0 && s.width > 0 && s.hidden > 0;
}

bool is_valid(const ffn_forward_args &a)
{
    bool fits = a.dtype != KERNEL_E4M3 || !a.pre;
    return is_valid(a.shape) && (a.pre == nullptr) == (a.hidden == nullptr) && fits;
}

size_t round_up(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Of the linear steps; what else a pass needs lies behind it. */
size_t step_workspace_bytes(const ffn_shape &s)
{
    return round_up(linear_workspace_bytes(s.width > s.hidden ? s.width : s.hidden));
}

size_t hidden_bytes(const ffn_shape &s, kernel_dtype dtype)
{
    size_t elements, bytes;
    if (__builtin_mul_overflow(static_cast<size_t>(s.tokens), static_cast<size_t>(s.hidden),
                               &elements) ||
        __builtin_mul_overflow(elements, kernel_dtype_bytes(dtype), &bytes) ||
        bytes > SIZE_MAX / 4)
        return SIZE_MAX / 4;
    return round_up(bytes);
}

void *behind(void *workspace, const ffn_shape &s)
{
    return static_cast<char *>(workspace) + step_workspace_bytes(s);
}

/* ---- state -------------------------------------------------------------------- */

void release(void *state)
{
    ffn_state *s = static_cast<ffn_state *>(state);
    for (linear_plan &plan : s->steps) linear_plan_destroy(&plan);
    if (s->handle) cublasDestroy(s->handle);
    delete s;
}

int prepare_steps(const linear_problem *problems, int count, linear_way way, void **state)
{
    ffn_state *s = new (std::nothrow) ffn_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = cublas_error(cublasCreate(&s->handle));
    for (int i = 0; i < count && !error; i++)
        error = linear_plan_create(s->handle, problems[i], way, &s->steps[i]);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

/* ---- forward ------------------------------------------------------------------- */

template <linear_way WAY>
int prepare_forward(const void *args, void **state)
{
    const ffn_forward_args &a = *static_cast<const ffn_forward_args *>(args);
    const ffn_shape &s = a.shape;
    if (!is_valid(a)) return KERNEL_ERROR_ARGUMENT;
    linear_epilogue gelu = a.pre ? LINEAR_GELU_AUX_BIAS : LINEAR_GELU_BIAS;
    linear_problem problems[] = {
        linear_forward(a.dtype, s.tokens, s.width, s.hidden, gelu, false),
        linear_forward(a.dtype, s.tokens, s.hidden, s.width, LINEAR_BIAS, false),
    };
    problems[0].d_dtype = a.dtype; /* what the second product takes */
    return prepare_steps(problems, 2, WAY, state);
}

/* Behind hidden, for e4m3: the first product's bf16, where that cannot do what is left. */
size_t scratch_bytes(const ffn_forward_args &a)
{
    return a.dtype == KERNEL_E4M3 ? hidden_bytes(a.shape, KERNEL_BF16) : 0;
}

size_t forward_workspace_bytes(const void *args)
{
    const ffn_forward_args &a = *static_cast<const ffn_forward_args *>(args);
    if (!is_valid(a)) return 0;
    return step_workspace_bytes(a.shape) + (a.hidden ? 0 : hidden_bytes(a.shape, a.dtype)) +
           scratch_bytes(a);
}

void add_scales(const ffn_scales *scales, linear_operands *first, linear_operands *second)
{
    first->a_scale = &scales->w1.factor;
    first->b_scale = &scales->x.factor;
    first->d_scale = &scales->per_hidden.factor;
    second->a_scale = &scales->w2.factor;
    second->b_scale = &scales->hidden.factor;
}

int run_forward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ffn_forward_args &a = *static_cast<const ffn_forward_args *>(args);
    const ffn_state &s = *static_cast<const ffn_state *>(state);
    if (!is_valid(a) || (a.dtype == KERNEL_E4M3) != (a.scales != nullptr))
        return KERNEL_ERROR_ARGUMENT;
    void *hidden = a.hidden ? a.hidden : behind(workspace, a.shape);
    linear_operands first = {.a = a.w1, .b = a.x, .d = hidden, .bias = const_cast<void *>(a.b1),
                             .aux = a.pre};
    linear_operands second = {.a = a.w2, .b = hidden, .d = a.y,
                              .bias = const_cast<void *>(a.b2)};
    if (a.dtype == KERNEL_E4M3) {
        first.aux = static_cast<char *>(hidden) + hidden_bytes(a.shape, a.dtype);
        add_scales(a.scales, &first, &second);
    }
    int error = linear_run(s.handle, s.steps[0], first, workspace, stream);
    return error ? error : linear_run(s.handle, s.steps[1], second, workspace, stream);
}

/* ---- backward ------------------------------------------------------------------ */

/* The gradient of pre comes out of the first product's epilogue, with db1; db2
 * out of the second's. */
template <linear_way WAY>
int prepare_backward(const void *args, void **state)
{
    const ffn_backward_args &a = *static_cast<const ffn_backward_args *>(args);
    const ffn_shape &s = a.shape;
    if (!is_valid(s)) return KERNEL_ERROR_ARGUMENT;
    const linear_problem problems[] = {
        linear_input_gradient(a.dtype, s.tokens, s.hidden, s.width, LINEAR_DGELU_BGRAD),
        linear_weight_gradient(a.dtype, s.tokens, s.hidden, s.width, LINEAR_BGRADB),
        linear_input_gradient(a.dtype, s.tokens, s.width, s.hidden, LINEAR_PLAIN),
        linear_weight_gradient(a.dtype, s.tokens, s.width, s.hidden, LINEAR_PLAIN),
    };
    return prepare_steps(problems, 4, WAY, state);
}

size_t backward_workspace_bytes(const void *args)
{
    const ffn_backward_args &a = *static_cast<const ffn_backward_args *>(args);
    if (!is_valid(a.shape)) return 0;
    return step_workspace_bytes(a.shape) + hidden_bytes(a.shape, a.dtype);
}

int run_backward(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ffn_backward_args &a = *static_cast<const ffn_backward_args *>(args);
    const ffn_state &s = *static_cast<const ffn_state *>(state);
    if (!is_valid(a.shape)) return KERNEL_ERROR_ARGUMENT;
    void *dpre = behind(workspace, a.shape), *pre = const_cast<void *>(a.pre);
    const linear_operands steps[] = {
        {.a = a.w2, .b = a.dy, .d = dpre, .bias = a.db1, .aux = pre},
        {.a = a.hidden, .b = a.dy, .d = a.dw2, .bias = a.db2},
        {.a = a.w1, .b = dpre, .d = a.dx},
        {.a = a.x, .b = dpre, .d = a.dw1},
    };
    for (int i = 0; i < 4; i++) {
        int error = linear_run(s.handle, s.steps[i], steps[i], workspace, stream);
        if (error) return error;
    }
    return KERNEL_OK;
}

constexpr unsigned PRODUCT_DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_TF32) |
                                    KERNEL_DTYPE_BIT(KERNEL_F16) | KERNEL_DTYPE_BIT(KERNEL_BF16);

/* cuBLASLt's products of e4m3 want what lies in a row to be a multiple of 16. */
const char *forward_unsupported(const void *args)
{
    const ffn_forward_args &a = *static_cast<const ffn_forward_args *>(args);
    if (a.dtype == KERNEL_E4M3 && (a.shape.width % 16 || a.shape.hidden % 16))
        return "e4m3 products need widths that are multiples of 16";
    return device_products_unsupported(a.dtype);
}

} // namespace

static const kernel_variant forward_rows[] = {
    {.name = "cublas", .note = "cublasGemmEx; bias and GELU in kernels of their own",
     .dtypes = PRODUCT_DTYPES, .min_compute_capability = 75, .deterministic = 1,
     .unsupported = device_products_unsupported<ffn_forward_args>,
     .workspace_bytes = forward_workspace_bytes, .prepare = prepare_forward<LINEAR_SEPARATE>,
     .release = release, .run = run_forward},
    {.name = "cublaslt",
     .note = "cuBLASLt, fastest algorithm by trial; fused epilogues where they gain",
     .dtypes = PRODUCT_DTYPES | KERNEL_DTYPE_BIT(KERNEL_E4M3), .min_compute_capability = 75,
     .unsupported = forward_unsupported,
     .workspace_bytes = forward_workspace_bytes, .prepare = prepare_forward<LINEAR_TIMED>,
     .release = release, .run = run_forward},
};

static const kernel_variant backward_rows[] = {
    {.name = "cublas",
     .note = "cublasGemmEx; GELU's gradient and bias sums in kernels of their own",
     .dtypes = PRODUCT_DTYPES, .min_compute_capability = 75, .deterministic = 1,
     .unsupported = device_products_unsupported<ffn_backward_args>,
     .workspace_bytes = backward_workspace_bytes, .prepare = prepare_backward<LINEAR_SEPARATE>,
     .release = release, .run = run_backward},
    {.name = "cublaslt",
     .note = "cuBLASLt, fastest algorithm by trial; fused epilogues where they gain",
     .dtypes = PRODUCT_DTYPES, .min_compute_capability = 75,
     .unsupported = device_products_unsupported<ffn_backward_args>,
     .workspace_bytes = backward_workspace_bytes, .prepare = prepare_backward<LINEAR_TIMED>,
     .release = release, .run = run_backward},
};

extern "C" const kernel_table ffn_forward_cuda = {forward_rows,
                                                  sizeof forward_rows / sizeof *forward_rows};
extern "C" const kernel_table ffn_backward_cuda = {backward_rows,
                                                   sizeof backward_rows / sizeof *backward_rows};
