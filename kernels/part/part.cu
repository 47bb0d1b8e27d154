/*
 * part.cu - parts on the GPU: see part.cuh.
 */
#include "part.cuh"

#include <string.h>

#include "../block/block.cuh"
#include "../common/device.cuh"

const part_way_cuda part_unfused_cuda = {
    .norm = {"naive"},
    .attention_f32 = {"naive_cublas", "naive"},
    .attention_half = {"naive_cublas", "naive"},
    .linear = LINEAR_SEPARATE,
};

const part_way_cuda part_best_cuda = {
    .norm = {"vectorized", "naive"},
    .attention_f32 = {"tiled", "naive_cublas", "naive"},
    .attention_half = {"mma_short", "wgmma", "mma", "naive_cublas", "tiled", "naive"},
    .linear = LINEAR_TIMED,
};

namespace {

constexpr int TENSOR_CORE_NAMES = 3; /* of part_best_cuda.attention_half */

/* ---- other operations' variants ---------------------------------------------------- */

bool takes(const kernel_variant &row, kernel_dtype dtype, const void *args)
{
    return (row.dtypes & KERNEL_DTYPE_BIT(dtype)) &&
           row.min_compute_capability <= device_compute_capability() &&
           !(row.unsupported && row.unsupported(args));
}

/* Of a list of names, at most `most` of them and up to the first NULL. */
struct name_list {
    const char *const *names;
    int most;
};

template <int N>
name_list list_of(const char *const (&names)[N])
{
    return {names, N};
}

/* The first of the names whose row takes the arguments, or NULL. */
const kernel_variant *find(const kernel_table &table, name_list list, kernel_dtype dtype,
                           const void *args)
{
    for (int i = 0; i < list.most && list.names[i]; i++) {
        const kernel_variant *row = kernel_find(&table, list.names[i]);
        if (row && takes(*row, dtype, args)) return row;
    }
    return nullptr;
}

name_list attention_names(const part_way_cuda &way, kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return list_of(way.attention_f32);
    case KERNEL_F16:
    case KERNEL_BF16: return list_of(way.attention_half);
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return {nullptr, 0};
}

/* The variant that does the part; NULL where none takes it or none is asked. */
const kernel_variant *variant_of(const part_args &p, const part_way_cuda &way)
{
    switch (p.kind) {
    case PART_NORM: return find(norm_forward_cuda, list_of(way.norm), p.dtype, &p.as);
    case PART_NORM_GRADIENT: return find(norm_backward_cuda, list_of(way.norm), p.dtype, &p.as);
    case PART_ATTENTION:
        return find(attention_forward_cuda, attention_names(way, p.dtype), p.dtype, &p.as);
    case PART_ATTENTION_GRADIENT:
        return find(attention_backward_cuda, attention_names(way, p.dtype), p.dtype, &p.as);
    case PART_LINEAR:
    case PART_INPUT_GRADIENT:
    case PART_WEIGHT_GRADIENT:
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return nullptr;
}

/* ---- products ------------------------------------------------------------------------ */

linear_epilogue epilogue_of(const part_args &p)
{
    switch (p.kind) {
    case PART_LINEAR:
        if (p.with_gelu) return p.as.linear.pre ? LINEAR_GELU_AUX_BIAS : LINEAR_GELU_BIAS;
        return p.with_bias ? LINEAR_BIAS : LINEAR_PLAIN;
    case PART_INPUT_GRADIENT: return p.with_gelu ? LINEAR_DGELU_BGRAD : LINEAR_PLAIN;
    case PART_WEIGHT_GRADIENT: return p.with_bias ? LINEAR_BGRADB : LINEAR_PLAIN;
    case PART_NORM:
    case PART_NORM_GRADIENT:
    case PART_ATTENTION:
    case PART_ATTENTION_GRADIENT:
    case PART_SPLIT:
    case PART_MERGE: break;
    }
    return LINEAR_PLAIN;
}

linear_problem problem_of(const part_args &p)
{
    const part_layer &l = *part_layer_of(&p);
    linear_epilogue epilogue = epilogue_of(p);
    if (p.kind == PART_LINEAR)
        return linear_forward(p.dtype, l.rows, l.in, l.out, epilogue, p.with_residual);
    if (p.kind == PART_INPUT_GRADIENT)
        return linear_input_gradient(p.dtype, l.rows, l.in, l.out, epilogue);
    linear_problem problem = linear_weight_gradient(p.dtype, l.rows, l.in, l.out, epilogue);
    problem.adds_c = p.with_residual;
    return problem;
}

/* The library's descriptor takes what an epilogue reads, biases and GELU's
 * input, as it takes what another writes. */
void *unconst(const void *memory)
{
    return const_cast<void *>(memory);
}

linear_operands operands_of(const part_args &p)
{
    if (p.kind == PART_LINEAR) {
        const part_linear &l = p.as.linear;
        return {.a = l.weight, .b = l.x, .c = l.residual, .d = l.y, .bias = unconst(l.bias),
                .aux = l.pre};
    }
    if (p.kind == PART_INPUT_GRADIENT) {
        const part_input_gradient &g = p.as.input_gradient;
        return {.a = g.weight, .b = g.y_gradient, .d = g.x_gradient,
                .bias = g.pre_bias_gradient, .aux = unconst(g.pre)};
    }
    const part_weight_gradient &g = p.as.weight_gradient;
    return {.a = g.x, .b = g.y_gradient, .c = g.residual, .d = g.weight_gradient,
            .bias = g.bias_gradient};
}

} // namespace

/* ---- what others call ------------------------------------------------------------------ */

const kernel_variant *part_find_variant(const kernel_table &table, const char *const *names,
                                        int most, kernel_dtype dtype, const void *args)
{
    return find(table, {names, most}, dtype, args);
}

bool part_attends_on_tensor_cores(const attention_forward_args &args)
{
    name_list names = {part_best_cuda.attention_half, TENSOR_CORE_NAMES};
    return find(attention_forward_cuda, names, args.dtype, &args) != nullptr;
}

bool part_attends_on_tensor_cores(const attention_backward_args &args)
{
    name_list names = {part_best_cuda.attention_half, TENSOR_CORE_NAMES};
    return find(attention_backward_cuda, names, args.dtype, &args) != nullptr;
}

size_t part_workspace_bytes_cuda(const part_args &part, const part_way_cuda &way)
{
    if (part_layer_of(&part)) {
        linear_problem problem = problem_of(part);
        return linear_workspace_bytes(problem.m > problem.n ? problem.m : problem.n);
    }
    const kernel_variant *variant = variant_of(part, way);
    return variant && variant->workspace_bytes ? variant->workspace_bytes(&part.as) : 0;
}

int part_prepare_cuda(const part_args &part, const part_way_cuda &way, cublasHandle_t handle,
                      part_tool *tool)
{
    if (part_moves_heads(part.kind)) return KERNEL_OK;
    if (part_layer_of(&part))
        return linear_plan_create(handle, problem_of(part), way.linear, &tool->plan);
    tool->variant = variant_of(part, way);
    if (!tool->variant) return KERNEL_ERROR_ARGUMENT;
    return tool->variant->prepare ? tool->variant->prepare(&part.as, &tool->state) : KERNEL_OK;
}

void part_release_cuda(part_tool *tool)
{
    linear_plan_destroy(&tool->plan);
    if (tool->state && tool->variant->release) tool->variant->release(tool->state);
    *tool = {};
}

int part_run_cuda(const part_args &part, const part_tool &tool, cublasHandle_t handle,
                  void *workspace, kernel_stream stream)
{
    if (part_moves_heads(part.kind)) return block_move_heads(part.as.heads, stream);
    if (part_layer_of(&part))
        return linear_run(handle, tool.plan, operands_of(part), workspace, stream);
    return tool.variant->run(&part.as, workspace, tool.state, stream);
}
