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
 *             L2 cache made both passes slower there.)
 *
 * Norms and mma_short's attention are put in place before the kernel in front of them has
 * ended (launch.cuh). Predicted: 1 to 1.5 us of a forward pass of 4 sequences of 128 tokens,
 * 768 wide, in bf16. On an H200, both ways in turn: best 46.5 and 44.5 us (45.8 to 47.6, 44.1
 * to 45.1), graph 41.8 and 42.0: between a graph's kernels there is nothing to save for them.
 *
 * Dropped: forward products of our own, put in place as early, that load their weights
 * meanwhile (wgmma, tiles of 128 rows and 96 columns, a ring of six stages, the depth of the
 * 32 tiles of projection and down shared by clusters of four). Predicted: graph 37 to 38 us.
 * They verified, and with all four of them best took 54.7 us instead of 45.2 and graph 53.4
 * instead of 42.1. The likely reason, not yet tested: each of 128 blocks fetches 344 KB of x
 * and weight for itself, 44 MB out of the L2 cache in a kernel, where cuBLASLt's kernels (up
 * 8.7 us, down 8.7, qkv 6.8, projection 5.3) are clusters of two to eight blocks, which can
 * share what they fetch.
 *
 * Teaches what fusing is worth in a whole: counting operands, a forward pass of
 * `best` moves 26 widths a token beside the weights, `unfused` 56 and its scores,
 * which at context 1024 are 96 more. Bound by the tensor cores at thousands of
 * tokens, by launches and by reading the weights at hundreds.
 *
 * A pass is a list of parts (block.h). Their descriptions come from the block's
 * table; part.cuh makes a tool for each and runs it with that.
 */
#include <new>

#include "block.cuh"
#include "block.h"
#include "../common/capture.cuh"
#include "../common/device.cuh"
#include "../part/part.cuh"

namespace {

/* ---- how a variant does its parts ------------------------------------------------ */

struct unfused_way {
    static const part_way_cuda &parts() { return part_unfused_cuda; }
    static constexpr bool ADAPTS = false;
};

struct best_way {
    static const part_way_cuda &parts() { return part_best_cuda; }
    static constexpr bool ADAPTS = true; /* heads to what the tensor cores take */
};

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
bool attends_in_place(const block_shape &s, kernel_dtype dtype)
{
    attention_forward_args forward = {};
    attention_backward_args backward = {};
    forward.dtype = backward.dtype = dtype;
    forward.shape = backward.shape = attention_of(s, s.width / s.heads);
    forward.qkv_strides = backward.qkv_strides = strides_in_rows(s, 3);
    forward.out_strides = backward.out_strides = strides_in_rows(s, 1);
    return part_attends_on_tensor_cores(forward) && part_attends_on_tensor_cores(backward);
}

/* The head_dim that attention gets: the block's own if a tensor-core variant
 * takes it or none takes a wider one. */
int64_t padded_dim(const block_shape &s, kernel_dtype dtype)
{
    int64_t own = s.width / s.heads;
    for (int64_t dim : {own, int64_t(64), int64_t(128)}) {
        attention_forward_args args = {};
        args.shape = attention_of(s, dim);
        args.dtype = dtype;
        if (dim >= own && part_attends_on_tensor_cores(args)) return dim;
    }
    return own;
}

block_layout layout_of(const block_shape &s, kernel_dtype dtype, bool adapts)
{
    if (!adapts) return block_own_layout(&s);
    return {attends_in_place(s, dtype), padded_dim(s, dtype)};
}

/* ---- passes -------------------------------------------------------------------------- */

constexpr int MOST_PARTS = BLOCK_BACKWARD_PARTS;

struct block_state {
    block_layout layout;
    cublasHandle_t handle;
    part_tool tools[MOST_PARTS];
};

template <typename Args> constexpr int PARTS = 0;
template <> constexpr int PARTS<block_forward_args> = BLOCK_FORWARD_PARTS;
template <> constexpr int PARTS<block_backward_args> = BLOCK_BACKWARD_PARTS;

part_args describe(const block_forward_args &a, int index, const block_layout &layout)
{
    return block_forward_describe(&a, index, &layout);
}

part_args describe(const block_backward_args &a, int index, const block_layout &layout)
{
    return block_backward_describe(&a, index, &layout);
}

bool moves_heads(const block_forward_args &, int part)
{
    return part_moves_heads(block_forward_rows[part].kind);
}

bool moves_heads(const block_backward_args &, int part)
{
    return part_moves_heads(block_backward_rows[part].kind);
}

template <typename Args>
bool is_valid_call(const Args &a)
{
    return block_is_valid(&a.shape) && a.part >= BLOCK_WHOLE && a.part < PARTS<Args>;
}

template <typename Args, typename Way>
const char *unsupported(const void *args)
{
    const Args &a = *static_cast<const Args *>(args);
    if (const char *reason = device_products_unsupported(a.dtype)) return reason;
    if (!is_valid_call(a) || a.part == BLOCK_WHOLE || !moves_heads(a, a.part)) return nullptr;
    return layout_of(a.shape, a.dtype, Way::ADAPTS).in_place
               ? "no such part: attention reads qkv and writes merged"
               : nullptr;
}

/* Calls function(index, part) for the parts that args name, until one fails. */
template <typename Args, typename Function>
int for_each_part(const Args &args, const block_layout &layout, Function function)
{
    int begin = args.part == BLOCK_WHOLE ? 0 : args.part;
    int end = args.part == BLOCK_WHOLE ? PARTS<Args> : args.part + 1;
    for (int i = begin; i < end; i++) {
        if (layout.in_place && moves_heads(args, i)) continue;
        int error = function(i, describe(args, i, layout));
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
    for_each_part(a, layout_of(a.shape, a.dtype, Way::ADAPTS), [&](int, const part_args &p) {
        size_t bytes = part_workspace_bytes_cuda(p, Way::parts());
        if (bytes > most) most = bytes;
        return KERNEL_OK;
    });
    return most;
}

void release(void *state)
{
    block_state *s = static_cast<block_state *>(state);
    for (part_tool &tool : s->tools) part_release_cuda(&tool);
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
    s->layout = layout_of(a.shape, a.dtype, Way::ADAPTS);
    int error = cublas_error(cublasCreate(&s->handle));
    if (!error)
        error = for_each_part(a, s->layout, [&](int i, const part_args &p) {
            return part_prepare_cuda(p, Way::parts(), s->handle, &s->tools[i]);
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
    return for_each_part(a, s.layout, [&](int i, const part_args &p) {
        return part_run_cuda(p, s.tools[i], s.handle, workspace, stream);
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
    auto enqueue = [&](cudaStream_t stream) {
        return run<Args, best_way>(args, s->workspace, s->parts, stream);
    };
    return capture_graph(enqueue, enqueue, &s->graph);
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

template <typename Args>
int run_graph(const void *args, void *, void *state, kernel_stream stream)
{
    const graph_state &s = *static_cast<const graph_state *>(state);
    auto enqueue = [&](kernel_stream on) {
        return run<Args, best_way>(args, s.workspace, s.parts, on);
    };
    return capture_launch(s.graph, enqueue, stream);
}

/* ---- tables -------------------------------------------------------------------------------- */

constexpr unsigned DTYPES = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                            KERNEL_DTYPE_BIT(KERNEL_BF16);

constexpr const char UNFUSED_NOTE[] = "naive parts; a kernel for each bias, residual and layout";
constexpr const char BEST_NOTE[] = "best parts; biases, GELU and residuals inside the products";
constexpr const char GRAPH_NOTE[] = "best, captured once in a CUDA graph";

template <typename Args>
constexpr kernel_variant ROWS[] = {
    {.name = "unfused",
     .note = UNFUSED_NOTE,
     .dtypes = DTYPES,
     .min_compute_capability = 75,
     .deterministic = 1,
     .unsupported = device_products_unsupported<Args>,
     .workspace_bytes = workspace_bytes<Args, unfused_way>,
     .prepare = prepare<Args, unfused_way>,
     .release = release,
     .run = run<Args, unfused_way>},
    {.name = "best",
     .note = BEST_NOTE,
     .dtypes = DTYPES,
     .min_compute_capability = 75,
     .unsupported = unsupported<Args, best_way>,
     .workspace_bytes = workspace_bytes<Args, best_way>,
     .prepare = prepare<Args, best_way>,
     .release = release,
     .run = run<Args, best_way>},
    {.name = "graph",
     .note = GRAPH_NOTE,
     .dtypes = DTYPES,
     .min_compute_capability = 75,
     .unsupported = unsupported<Args, best_way>,
     .prepare = prepare_graph<Args>,
     .release = release_graph,
     .run = run_graph<Args>},
};

template <typename Args>
constexpr kernel_table TABLE = {ROWS<Args>, sizeof ROWS<Args> / sizeof *ROWS<Args>};

} // namespace

block_layout block_layout_cuda(const block_shape &shape, kernel_dtype dtype, bool adapts)
{
    return layout_of(shape, dtype, adapts);
}

extern "C" {
const kernel_table block_forward_cuda = TABLE<block_forward_args>;
const kernel_table block_backward_cuda = TABLE<block_backward_args>;
}
