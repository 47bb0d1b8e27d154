/*
 * block.cu - the transformer block, composed of the other operations' variants
 * and of linear.cuh's products.
 *
 * 1. unfused  What a first version does: naive norms, attention with its scores
 *             in memory, cublasGemmEx, and a kernel each for every bias, GELU,
 *             residual, bias gradient and change of layout.
 * 2. best     The best parts: vectorized norms, attention in one kernel on the
 *             tensor cores, cuBLASLt with bias, GELU and residual inside the
 *             products and their algorithms found by trial. Attention reads
 *             heads where the qkv layer wrote them and writes rows for the
 *             projection, so nothing is split or merged. A head_dim that the
 *             tensor-core attention does not take is padded while heads are
 *             split, which costs less than scores in memory.
 * 3. graph    best, captured once into a CUDA graph. At 512 tokens the parts
 *             take microseconds and the gaps between their launches count. (A
 *             second branch of the graph that prefetched the weights into the
 *             L2 cache made both passes slower there, by 4 to 11 %.)
 *
 * Teaches what fusing is worth in a whole: counting operands, a forward pass of
 * `best` moves 26 widths a token beside the weights, `unfused` 56 and its scores,
 * which at context 1024 are 96 more. Bound by the tensor cores at thousands of
 * tokens, by launches and by reading the weights at hundreds.
 *
 * A pass is a list of parts (block.h). describe() says what a part is, as
 * another operation's arguments; prepare makes a tool for it, run uses that.
 */
#include "block.cuh"

#include <math.h>
#include <string.h>

#include <new>
#include <variant>

#include "../attention.h"
#include "../norm.h"
#include "device.cuh"
#include "linear.cuh"

namespace {

/* ---- how a variant does its parts ------------------------------------------------ */

/* Names of other operations' variants, the first that takes the shape counts. */
struct preferences {
    const char *norm[3];
    const char *attention_f32[4], *attention_half[6];
};

constexpr preferences UNFUSED = {{"naive"}, {"naive_cublas", "naive"}, {"naive_cublas", "naive"}};
constexpr preferences BEST = {{"vectorized", "naive"},
                              {"tiled", "naive_cublas", "naive"},
                              {"mma_short", "wgmma", "mma", "naive_cublas", "tiled", "naive"}};
constexpr int TENSOR_CORE_NAMES = 3; /* of BEST.attention_half: what heads are adapted to */

struct unfused_way {
    static constexpr const preferences &NAMES = UNFUSED;
    static constexpr linear_way LINEAR = LINEAR_SEPARATE;
    static constexpr bool ADAPTS = false;
};

struct best_way {
    static constexpr const preferences &NAMES = BEST;
    static constexpr linear_way LINEAR = LINEAR_TIMED;
    static constexpr bool ADAPTS = true;
};

bool takes(const kernel_variant &row, kernel_dtype dtype, const void *args)
{
    return (row.dtypes & KERNEL_DTYPE_BIT(dtype)) &&
           row.min_compute_capability <= device_compute_capability() &&
           !(row.unsupported && row.unsupported(args));
}

/* The first of `most` names (fewer if one is NULL) whose row takes the
 * arguments, or NULL. */
const kernel_variant *find(const kernel_table &table, const char *const *names, int most,
                           kernel_dtype dtype, const void *args)
{
    for (int i = 0; i < most && names[i]; i++)
        for (size_t row = 0; row < table.count; row++)
            if (!strcmp(table.rows[row].name, names[i]) && takes(table.rows[row], dtype, args))
                return &table.rows[row];
    return nullptr;
}

template <int N>
const kernel_variant *find(const kernel_table &table, const char *const (&names)[N],
                           kernel_dtype dtype, const void *args)
{
    return find(table, names, N, dtype, args);
}

/* ---- what a part is ---------------------------------------------------------------- */

struct linear_part {
    linear_problem problem;
    linear_operands operands;
};

using part = std::variant<linear_part, norm_forward_args, norm_backward_args,
                          attention_forward_args, attention_backward_args, block_heads>;

bool is_valid(const block_shape &s)
{
    return s.batch > 0 && s.tokens > 0 && s.width > 0 && s.heads > 0 && s.hidden > 0 &&
           s.width % s.heads == 0 && s.batch <= INT64_MAX / s.tokens;
}

attention_shape attention_of(const block_shape &s, int64_t head_dim)
{
    return {s.batch, s.heads, s.tokens, head_dim, 1};
}

/* Of the heads in rows [batch, tokens, parts, heads, head_dim]. */
attention_strides strides_in_rows(const block_shape &s, int parts)
{
    int64_t row = parts * s.width;
    return {s.tokens * row, s.width / s.heads, row};
}

/* Whether attention takes heads out of the rows of qkv and writes those of
 * merged: if a tensor-core variant does so at the block's own head_dim, and
 * backward too, since that reads what forward left behind. */
bool attends_in_place(const block_shape &s, kernel_dtype dtype, bool adapts)
{
    if (!adapts || dtype == KERNEL_F32) return false;
    attention_forward_args forward = {};
    attention_backward_args backward = {};
    forward.shape = backward.shape = attention_of(s, s.width / s.heads);
    forward.qkv_strides = backward.qkv_strides = strides_in_rows(s, 3);
    forward.out_strides = backward.out_strides = strides_in_rows(s, 1);
    return find(attention_forward_cuda, BEST.attention_half, TENSOR_CORE_NAMES, dtype, &forward) &&
           find(attention_backward_cuda, BEST.attention_half, TENSOR_CORE_NAMES, dtype, &backward);
}

/* The head_dim that attention gets: the block's own if a tensor-core variant
 * takes it or none takes a wider one. */
int64_t padded_dim(const block_shape &s, kernel_dtype dtype, bool adapts)
{
    int64_t own = s.width / s.heads;
    if (!adapts || dtype == KERNEL_F32) return own;
    for (int64_t dim : {own, int64_t(64), int64_t(128)}) {
        attention_forward_args args = {};
        args.shape = attention_of(s, dim);
        args.dtype = dtype;
        if (dim >= own &&
            find(attention_forward_cuda, BEST.attention_half, TENSOR_CORE_NAMES, dtype, &args))
            return dim;
    }
    return own;
}

/* Dimensions and where heads are, for describe(). */
struct layout {
    int64_t rows, width, hidden, head_dim, padded_dim;
    bool in_place; /* no heads by themselves: attention reads qkv and writes merged */
    attention_shape attention;
    attention_strides qkv_strides, out_strides;
    norm_shape norm;
    float q_factor; /* sqrt(padded_dim / head_dim): attention divides by sqrt(padded_dim) */
};

template <typename Args>
layout layout_of(const Args &a, bool adapts)
{
    const block_shape &s = a.shape;
    layout l = {};
    l.rows = s.batch * s.tokens;
    l.width = s.width;
    l.hidden = s.hidden;
    l.head_dim = s.width / s.heads;
    l.padded_dim = padded_dim(s, a.dtype, adapts);
    l.in_place = attends_in_place(s, a.dtype, adapts);
    l.attention = attention_of(s, l.padded_dim);
    if (l.in_place) l.qkv_strides = strides_in_rows(s, 3), l.out_strides = strides_in_rows(s, 1);
    l.norm = {l.rows, s.width};
    l.q_factor = static_cast<float>(
        sqrt(static_cast<double>(l.padded_dim) / static_cast<double>(l.head_dim)));
    return l;
}

template <typename Args>
block_heads heads_part(const Args &a, const layout &l, bool splits, int parts, float first_factor,
                       void *rows, void *first, void *second, void *third)
{
    const block_shape &s = a.shape;
    return {a.dtype, s.batch, s.tokens,     s.heads, l.head_dim, l.padded_dim,
            parts,   first_factor, rows, {first, second, third}, splits};
}

float *as_floats(void *memory)
{
    return static_cast<float *>(memory);
}

/* A library's descriptor takes biases, which it reads, as it takes their
 * gradients, which it writes. */
void *unconst(const void *memory)
{
    return const_cast<void *>(memory);
}

/* What attention reads and writes among the activations, or their gradients. */
struct attention_memory {
    void *q, *k, *v, *out;
};

attention_memory attention_in(void *const *memory, const layout &l)
{
    if (!l.in_place)
        return {memory[BLOCK_Q], memory[BLOCK_K], memory[BLOCK_V], memory[BLOCK_ATTENTION]};
    uint16_t *qkv = static_cast<uint16_t *>(memory[BLOCK_QKV]); /* in place are 16-bit dtypes */
    return {qkv, qkv + l.width, qkv + 2 * l.width, memory[BLOCK_MERGED]};
}

attention_forward_args attention_part(const block_forward_args &a, const layout &l)
{
    attention_memory act = attention_in(a.activations, l);
    return {l.attention, a.dtype, act.q, act.k, act.v, act.out,
            as_floats(a.activations[BLOCK_LSE]), l.qkv_strides, l.out_strides};
}

attention_backward_args attention_part(const block_backward_args &a, const layout &l)
{
    attention_memory act = attention_in(a.activations, l), grad = attention_in(a.gradients, l);
    return {l.attention, a.dtype, act.q, act.k, act.v, act.out, grad.out,
            as_floats(a.activations[BLOCK_LSE]), grad.q, grad.k, grad.v, l.qkv_strides,
            l.out_strides};
}

part describe(const block_forward_args &a, int index, const layout &l)
{
    const void *const *p = a.parameters;
    void *const *act = a.activations;
    int64_t n = l.rows, w = l.width, h = l.hidden;
    switch (index) {
    case BLOCK_FORWARD_NORM1:
        return norm_forward_args{l.norm, NORM_LAYER, a.dtype, a.x, nullptr, p[BLOCK_NORM1_WEIGHT],
                                 p[BLOCK_NORM1_BIAS], act[BLOCK_NORM1], nullptr,
                                 as_floats(act[BLOCK_MEAN1]), as_floats(act[BLOCK_RSTD1])};
    case BLOCK_FORWARD_QKV:
        return linear_part{linear_forward(a.dtype, n, w, 3 * w, LINEAR_BIAS, false),
                           {p[BLOCK_QKV_WEIGHT], act[BLOCK_NORM1], nullptr, act[BLOCK_QKV],
                            unconst(p[BLOCK_QKV_BIAS]), nullptr}};
    case BLOCK_FORWARD_SPLIT:
        return heads_part(a, l, true, 3, l.q_factor, act[BLOCK_QKV], act[BLOCK_Q], act[BLOCK_K],
                          act[BLOCK_V]);
    case BLOCK_FORWARD_ATTENTION: return attention_part(a, l);
    case BLOCK_FORWARD_MERGE:
        return heads_part(a, l, false, 1, 1.0f, act[BLOCK_MERGED], act[BLOCK_ATTENTION], nullptr,
                          nullptr);
    case BLOCK_FORWARD_PROJECTION:
        return linear_part{linear_forward(a.dtype, n, w, w, LINEAR_BIAS, true),
                           {p[BLOCK_PROJECTION_WEIGHT], act[BLOCK_MERGED], a.x, act[BLOCK_MIDDLE],
                            unconst(p[BLOCK_PROJECTION_BIAS]), nullptr}};
    case BLOCK_FORWARD_NORM2:
        return norm_forward_args{l.norm, NORM_LAYER, a.dtype, act[BLOCK_MIDDLE], nullptr,
                                 p[BLOCK_NORM2_WEIGHT], p[BLOCK_NORM2_BIAS], act[BLOCK_NORM2],
                                 nullptr, as_floats(act[BLOCK_MEAN2]), as_floats(act[BLOCK_RSTD2])};
    case BLOCK_FORWARD_UP:
        return linear_part{linear_forward(a.dtype, n, w, h,
                                          act[BLOCK_PRE] ? LINEAR_GELU_AUX_BIAS : LINEAR_GELU_BIAS,
                                          false),
                           {p[BLOCK_UP_WEIGHT], act[BLOCK_NORM2], nullptr, act[BLOCK_HIDDEN],
                            unconst(p[BLOCK_UP_BIAS]), act[BLOCK_PRE]}};
    default:
        return linear_part{linear_forward(a.dtype, n, h, w, LINEAR_BIAS, true),
                           {p[BLOCK_DOWN_WEIGHT], act[BLOCK_HIDDEN], act[BLOCK_MIDDLE], a.y,
                            unconst(p[BLOCK_DOWN_BIAS]), nullptr}};
    }
}

/* A gradient of a layer's input, d = gradient of its output times its weight. */
linear_part input_gradient(const block_backward_args &a, int64_t rows, int64_t in, int64_t out,
                           const void *weight, const void *out_gradient, void *in_gradient)
{
    return {linear_input_gradient(a.dtype, rows, in, out, LINEAR_PLAIN),
            {weight, out_gradient, nullptr, in_gradient, nullptr, nullptr}};
}

/* Gradients of a layer's weight and, if `bias`, of its bias. */
linear_part weight_gradient(const block_backward_args &a, int64_t rows, int64_t in, int64_t out,
                            const void *input, const void *out_gradient, void *weight, void *bias)
{
    return {linear_weight_gradient(a.dtype, rows, in, out, bias ? LINEAR_BGRADB : LINEAR_PLAIN),
            {input, out_gradient, nullptr, weight, bias, nullptr}};
}

part describe_feed_forward(const block_backward_args &a, int index, const layout &l)
{
    const void *const *p = a.parameters;
    void *const *act = a.activations, *const *grad = a.gradients;
    void *const *dp = a.parameter_gradients;
    int64_t n = l.rows, w = l.width, h = l.hidden;
    switch (index) {
    case BLOCK_BACKWARD_DOWN_INPUT:
        return linear_part{linear_input_gradient(a.dtype, n, h, w, LINEAR_DGELU_BGRAD),
                           {p[BLOCK_DOWN_WEIGHT], a.y_gradient, nullptr, grad[BLOCK_PRE],
                            dp[BLOCK_UP_BIAS], act[BLOCK_PRE]}};
    case BLOCK_BACKWARD_DOWN_WEIGHT:
        return weight_gradient(a, n, h, w, act[BLOCK_HIDDEN], a.y_gradient, dp[BLOCK_DOWN_WEIGHT],
                               dp[BLOCK_DOWN_BIAS]);
    case BLOCK_BACKWARD_UP_INPUT:
        return input_gradient(a, n, w, h, p[BLOCK_UP_WEIGHT], grad[BLOCK_PRE], grad[BLOCK_NORM2]);
    case BLOCK_BACKWARD_UP_WEIGHT:
        return weight_gradient(a, n, w, h, act[BLOCK_NORM2], grad[BLOCK_PRE], dp[BLOCK_UP_WEIGHT],
                               nullptr);
    default:
        return norm_backward_args{l.norm, NORM_LAYER, a.dtype, act[BLOCK_MIDDLE],
                                  p[BLOCK_NORM2_WEIGHT], grad[BLOCK_NORM2], a.y_gradient,
                                  as_floats(act[BLOCK_MEAN2]), as_floats(act[BLOCK_RSTD2]),
                                  grad[BLOCK_MIDDLE], dp[BLOCK_NORM2_WEIGHT],
                                  dp[BLOCK_NORM2_BIAS]};
    }
}

part describe(const block_backward_args &a, int index, const layout &l)
{
    const void *const *p = a.parameters;
    void *const *act = a.activations, *const *grad = a.gradients;
    void *const *dp = a.parameter_gradients;
    int64_t n = l.rows, w = l.width;
    switch (index) {
    case BLOCK_BACKWARD_PROJECTION_INPUT:
        return input_gradient(a, n, w, w, p[BLOCK_PROJECTION_WEIGHT], grad[BLOCK_MIDDLE],
                              grad[BLOCK_MERGED]);
    case BLOCK_BACKWARD_PROJECTION_WEIGHT:
        return weight_gradient(a, n, w, w, act[BLOCK_MERGED], grad[BLOCK_MIDDLE],
                               dp[BLOCK_PROJECTION_WEIGHT], dp[BLOCK_PROJECTION_BIAS]);
    case BLOCK_BACKWARD_SPLIT:
        return heads_part(a, l, true, 1, 1.0f, grad[BLOCK_MERGED], grad[BLOCK_ATTENTION], nullptr,
                          nullptr);
    case BLOCK_BACKWARD_ATTENTION: return attention_part(a, l);
    case BLOCK_BACKWARD_MERGE:
        return heads_part(a, l, false, 3, l.q_factor, grad[BLOCK_QKV], grad[BLOCK_Q],
                          grad[BLOCK_K], grad[BLOCK_V]);
    case BLOCK_BACKWARD_QKV_INPUT:
        return input_gradient(a, n, w, 3 * w, p[BLOCK_QKV_WEIGHT], grad[BLOCK_QKV],
                              grad[BLOCK_NORM1]);
    case BLOCK_BACKWARD_QKV_WEIGHT:
        return weight_gradient(a, n, w, 3 * w, act[BLOCK_NORM1], grad[BLOCK_QKV],
                               dp[BLOCK_QKV_WEIGHT], dp[BLOCK_QKV_BIAS]);
    case BLOCK_BACKWARD_NORM1:
        return norm_backward_args{l.norm, NORM_LAYER, a.dtype, a.x, p[BLOCK_NORM1_WEIGHT],
                                  grad[BLOCK_NORM1], grad[BLOCK_MIDDLE],
                                  as_floats(act[BLOCK_MEAN1]), as_floats(act[BLOCK_RSTD1]),
                                  a.x_gradient, dp[BLOCK_NORM1_WEIGHT], dp[BLOCK_NORM1_BIAS]};
    default: return describe_feed_forward(a, index, l);
    }
}

/* ---- tools: what a part needs to run ------------------------------------------------ */

/* One of: a plan, another operation's variant and its state, or nothing. */
struct tool {
    linear_plan plan;
    const kernel_variant *variant;
    void *state;
};

const kernel_variant *variant_of(const norm_forward_args &a, const preferences &names)
{
    return find(norm_forward_cuda, names.norm, a.dtype, &a);
}

const kernel_variant *variant_of(const norm_backward_args &a, const preferences &names)
{
    return find(norm_backward_cuda, names.norm, a.dtype, &a);
}

template <typename Args>
const kernel_variant *attention_variant(const kernel_table &table, const Args &a,
                                        const preferences &names)
{
    return a.dtype == KERNEL_F32 ? find(table, names.attention_f32, a.dtype, &a)
                                 : find(table, names.attention_half, a.dtype, &a);
}

const kernel_variant *variant_of(const attention_forward_args &a, const preferences &names)
{
    return attention_variant(attention_forward_cuda, a, names);
}

const kernel_variant *variant_of(const attention_backward_args &a, const preferences &names)
{
    return attention_variant(attention_backward_cuda, a, names);
}

/* Bytes of workspace of a part. */
template <typename Args>
size_t part_workspace_bytes(const Args &args, const preferences &names)
{
    const kernel_variant *variant = variant_of(args, names);
    return variant && variant->workspace_bytes ? variant->workspace_bytes(&args) : 0;
}

size_t part_workspace_bytes(const linear_part &p, const preferences &)
{
    return linear_workspace_bytes(p.problem.m > p.problem.n ? p.problem.m : p.problem.n);
}

size_t part_workspace_bytes(const block_heads &, const preferences &)
{
    return 0;
}

template <typename Args>
int prepare_part(const Args &args, const preferences &names, linear_way, cublasHandle_t, tool *t)
{
    t->variant = variant_of(args, names);
    if (!t->variant) return KERNEL_ERROR_ARGUMENT;
    return t->variant->prepare ? t->variant->prepare(&args, &t->state) : KERNEL_OK;
}

int prepare_part(const linear_part &p, const preferences &, linear_way way, cublasHandle_t handle,
                 tool *t)
{
    return linear_plan_create(handle, p.problem, way, &t->plan);
}

int prepare_part(const block_heads &, const preferences &, linear_way, cublasHandle_t, tool *)
{
    return KERNEL_OK;
}

template <typename Args>
int run_part(const Args &args, const tool &t, cublasHandle_t, void *workspace,
             kernel_stream stream)
{
    return t.variant->run(&args, workspace, t.state, stream);
}

int run_part(const linear_part &p, const tool &t, cublasHandle_t handle, void *workspace,
             kernel_stream stream)
{
    return linear_run(handle, t.plan, p.operands, workspace, stream);
}

int run_part(const block_heads &move, const tool &, cublasHandle_t, void *, kernel_stream stream)
{
    return block_move_heads(move, stream);
}

/* ---- passes -------------------------------------------------------------------------- */

constexpr int MOST_PARTS = BLOCK_BACKWARD_PARTS;

struct block_state {
    cublasHandle_t handle;
    tool tools[MOST_PARTS];
};

template <typename Args> constexpr int PARTS = 0;
template <> constexpr int PARTS<block_forward_args> = BLOCK_FORWARD_PARTS;
template <> constexpr int PARTS<block_backward_args> = BLOCK_BACKWARD_PARTS;

template <typename Args>
bool is_valid_call(const Args &a)
{
    return is_valid(a.shape) && a.part >= BLOCK_WHOLE && a.part < PARTS<Args>;
}

bool moves_heads(const block_forward_args &, int part)
{
    return part == BLOCK_FORWARD_SPLIT || part == BLOCK_FORWARD_MERGE;
}

bool moves_heads(const block_backward_args &, int part)
{
    return part == BLOCK_BACKWARD_SPLIT || part == BLOCK_BACKWARD_MERGE;
}

template <typename Args, typename Way>
const char *unsupported(const void *args)
{
    const Args &a = *static_cast<const Args *>(args);
    if (const char *reason = device_products_unsupported(a.dtype)) return reason;
    if (!is_valid_call(a) || !moves_heads(a, a.part)) return nullptr;
    return attends_in_place(a.shape, a.dtype, Way::ADAPTS)
               ? "no such part: attention reads qkv and writes merged"
               : nullptr;
}

/* Calls function(index, part) for the parts that args name, until one fails. */
template <typename Args, typename Function>
int for_each_part(const Args &args, bool adapts, Function function)
{
    int begin = args.part == BLOCK_WHOLE ? 0 : args.part;
    int end = args.part == BLOCK_WHOLE ? PARTS<Args> : args.part + 1;
    const layout l = layout_of(args, adapts);
    for (int i = begin; i < end; i++) {
        if (l.in_place && moves_heads(args, i)) continue;
        int error = function(i, describe(args, i, l));
        if (error) return error;
    }
    return KERNEL_OK;
}

/* Parts run one after the other, so they share the largest's workspace. */
template <typename Args, typename Way>
size_t workspace_bytes(const void *args)
{
    const Args &a = *static_cast<const Args *>(args);
    size_t most = 0;
    if (!is_valid_call(a)) return 0;
    for_each_part(a, Way::ADAPTS, [&](int, const part &p) {
        size_t bytes =
            std::visit([](const auto &one) { return part_workspace_bytes(one, Way::NAMES); }, p);
        if (bytes > most) most = bytes;
        return KERNEL_OK;
    });
    return most;
}

void release(void *state)
{
    block_state *s = static_cast<block_state *>(state);
    for (tool &t : s->tools) {
        linear_plan_destroy(&t.plan);
        if (t.state && t.variant->release) t.variant->release(t.state);
    }
    if (s->handle) cublasDestroy(s->handle);
    delete s;
}

template <typename Args, typename Way>
int prepare(const void *args, void **state)
{
    const Args &a = *static_cast<const Args *>(args);
    if (!is_valid_call(a) || unsupported<Args, Way>(args)) return KERNEL_ERROR_ARGUMENT;
    block_state *s = new (std::nothrow) block_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = cublas_error(cublasCreate(&s->handle));
    if (!error)
        error = for_each_part(a, Way::ADAPTS, [&](int i, const part &p) {
            return std::visit(
                [&](const auto &one) {
                    return prepare_part(one, Way::NAMES, Way::LINEAR, s->handle, &s->tools[i]);
                },
                p);
        });
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

template <typename Args, typename Way>
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const Args &a = *static_cast<const Args *>(args);
    const block_state &s = *static_cast<const block_state *>(state);
    if (!is_valid_call(a) || unsupported<Args, Way>(args)) return KERNEL_ERROR_ARGUMENT;
    return for_each_part(a, Way::ADAPTS, [&](int i, const part &p) {
        return std::visit(
            [&](const auto &one) {
                return run_part(one, s.tools[i], s.handle, workspace, stream);
            },
            p);
    });
}

/* ---- the same in a graph ---------------------------------------------------------------- */

/* The workspace is the state's own, because the graph holds its address. */
struct graph_state {
    void *parts; /* best's state: the graph's kernels use what it owns */
    void *workspace;
    cudaGraphExec_t graph;
};

void release_graph(void *state)
{
    graph_state *s = static_cast<graph_state *>(state);
    if (s->graph) cudaGraphExecDestroy(s->graph);
    if (s->workspace) cudaFree(s->workspace);
    if (s->parts) release(s->parts);
    delete s;
}

template <typename Args>
int capture(const void *args, graph_state *s)
{
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return error;
    /* Once outside: what a first launch loads cannot be loaded while capturing. */
    int code = run<Args, best_way>(args, s->workspace, s->parts, stream);
    if (!code) code = cudaStreamSynchronize(stream);
    if (!code) code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (!code) {
        code = run<Args, best_way>(args, s->workspace, s->parts, stream);
        error = cudaStreamEndCapture(stream, &graph);
        if (!code) code = error;
    }
    if (!code) code = cudaGraphInstantiate(&s->graph, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return code;
}

template <typename Args>
int prepare_graph(const void *args, void **state)
{
    graph_state *s = new (std::nothrow) graph_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = prepare<Args, best_way>(args, &s->parts);
    if (!error) error = cudaMalloc(&s->workspace, workspace_bytes<Args, best_way>(args) + 1);
    if (!error) error = capture<Args>(args, s);
    if (error)
        release_graph(s);
    else
        *state = s;
    return error;
}

/* A stream that is being captured takes no graph; there the parts are run, which
 * comes to the same. */
template <typename Args>
int run_graph(const void *args, void *, void *state, kernel_stream stream)
{
    const graph_state &s = *static_cast<const graph_state *>(state);
    cudaStreamCaptureStatus status;
    cudaError_t error = cudaStreamIsCapturing(stream, &status);
    if (error != cudaSuccess) return error;
    if (status == cudaStreamCaptureStatusNone) return cudaGraphLaunch(s.graph, stream);
    return run<Args, best_way>(args, s.workspace, s.parts, stream);
}

/* ---- tables -------------------------------------------------------------------------------- */

constexpr unsigned DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_BF16);

constexpr const char UNFUSED_NOTE[] = "naive parts; a kernel for each bias, residual and layout";
constexpr const char BEST_NOTE[] = "best parts; biases, GELU and residuals inside the products";
constexpr const char GRAPH_NOTE[] = "best, captured once in a CUDA graph";

/* In the order of kernel_variant's members: name, note, dtypes, compute
 * capability, deterministic, unsupported, workspace_bytes, prepare, release,
 * run. */
template <typename Args>
constexpr kernel_variant ROWS[] = {
    {"unfused", UNFUSED_NOTE, DTYPES, 75, 1, device_products_unsupported<Args>,
     workspace_bytes<Args, unfused_way>, prepare<Args, unfused_way>, release,
     run<Args, unfused_way>},
    {"best", BEST_NOTE, DTYPES, 75, 0, unsupported<Args, best_way>,
     workspace_bytes<Args, best_way>, prepare<Args, best_way>, release, run<Args, best_way>},
    {"graph", GRAPH_NOTE, DTYPES, 75, 0, unsupported<Args, best_way>, nullptr,
     prepare_graph<Args>, release_graph, run_graph<Args>},
};

template <typename Args>
constexpr kernel_table TABLE = {ROWS<Args>, sizeof ROWS<Args> / sizeof *ROWS<Args>};

} // namespace

extern "C" {
const kernel_table block_forward_cuda = TABLE<block_forward_args>;
const kernel_table block_backward_cuda = TABLE<block_backward_args>;
}
