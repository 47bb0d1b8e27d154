/*
 * optimizer.cu - the tables of CUDA optimizer variants, and the table of
 * slices that the multi_tensor ones walk.
 *
 * adamw, sgd
 * 1. per_tensor        per_tensor.cu: a launch an operation and tensor
 * 2. fused_per_tensor  fused.cu: a launch a tensor
 * 3. multi_tensor      fused.cu: one launch
 * clip_norm
 * 4. per_tensor        clip.cu: two launches a tensor, and one
 * 5. fused_per_tensor  clip.cu: a launch a tensor, and one
 * 6. multi_tensor      clip.cu: one launch
 * clip_scale
 * 7. per_tensor        clip.cu: a launch a tensor
 * 8. multi_tensor      clip.cu: one launch
 *
 * What each one teaches and what bounds it stands in its file.
 */
#include <stdlib.h>

#include "optimizer.cuh"

/* ---- the table of slices ----------------------------------------------- */

static optimizer_tensor tensor_at(const optimizer_list &list, int64_t index, bool gradient_only)
{
    const optimizer_tensor &t = list.tensors[index];
    return gradient_only ? optimizer_gradient_only(t) : t;
}

static int64_t count_slices(const optimizer_list &list, size_t element_bytes, int elements,
                            bool gradient_only)
{
    int64_t count = 0;
    for (int64_t i = 0; i < list.count; i++) {
        optimizer_tensor t = tensor_at(list, i, gradient_only);
        count += optimizer_slice_count(t, optimizer_head(t, element_bytes, elements));
    }
    return count;
}

static void list_slices(const optimizer_list &list, size_t element_bytes, int elements,
                        bool gradient_only, optimizer_tensor *slices)
{
    for (int64_t i = 0; i < list.count; i++) {
        optimizer_tensor t = tensor_at(list, i, gradient_only);
        int head = optimizer_head(t, element_bytes, elements);
        int64_t count = optimizer_slice_count(t, head);
        for (int64_t n = 0; n < count; n++)
            *slices++ = optimizer_slice_at(t, element_bytes, head, n);
    }
}

static int grid_blocks(int blocks_per_sm, unsigned *blocks)
{
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) *blocks = static_cast<unsigned>(multiprocessors * blocks_per_sm);
    return error;
}

/* Device memory of the table, filled from `slices`. Waits, because a memset and a
 * copy from pageable memory may return before they are done, and run's stream may
 * be one that does not wait for the default stream. */
static int upload(const optimizer_tensor *slices, optimizer_table *table)
{
    size_t slice_bytes = table->count * sizeof *slices;
    int error = cudaMalloc(&table->slices, slice_bytes ? slice_bytes : 1);
    if (!error) error = cudaMalloc(&table->partials, table->blocks * sizeof(double));
    if (!error) error = cudaMalloc(&table->arrived, sizeof(unsigned));
    if (!error) error = cudaMemset(table->arrived, 0, sizeof(unsigned));
    if (!error) error = cudaMemcpy(table->slices, slices, slice_bytes, cudaMemcpyHostToDevice);
    if (!error) error = cudaStreamSynchronize(nullptr);
    return error;
}

int optimizer_make_table(const optimizer_list &list, size_t element_bytes, int elements,
                         bool gradient_only, int blocks_per_sm, void **state)
{
    int64_t count = count_slices(list, element_bytes, elements, gradient_only);
    if (!row_fits_grid(count)) return KERNEL_ERROR_ARGUMENT;
    optimizer_table *table = static_cast<optimizer_table *>(calloc(1, sizeof *table));
    size_t slice_bytes = count * sizeof(optimizer_tensor);
    optimizer_tensor *slices =
        static_cast<optimizer_tensor *>(malloc(slice_bytes ? slice_bytes : 1));
    int error = table && slices ? KERNEL_OK : KERNEL_ERROR_MEMORY;
    if (!error) error = grid_blocks(blocks_per_sm, &table->blocks);
    if (!error) {
        table->count = count;
        list_slices(list, element_bytes, elements, gradient_only, slices);
        error = upload(slices, table);
    }
    free(slices);
    if (error)
        optimizer_multi_tensor_release(table);
    else
        *state = table;
    return error;
}

void optimizer_multi_tensor_release(void *state)
{
    optimizer_table *table = static_cast<optimizer_table *>(state);
    if (!table) return;
    cudaFree(table->slices);
    cudaFree(table->partials);
    cudaFree(table->arrived);
    free(table);
}

/* ---- variants ---------------------------------------------------------- */

static constexpr unsigned FLOATS = KERNEL_DTYPE_BIT(KERNEL_F32) | KERNEL_DTYPE_BIT(KERNEL_F16) |
                                   KERNEL_DTYPE_BIT(KERNEL_BF16);

/* An operation a launch would be nine kernels that each ask whether to do nothing. */
static const char *has_scaler(const void *args)
{
    return static_cast<const optimizer_adamw_args *>(args)->scaler ? "takes no loss scale" : nullptr;
}

static const kernel_variant adamw_rows[] = {
    {.name = "per_tensor", .note = "eight launches a tensor, an operation each", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .unsupported = has_scaler,
     .workspace_bytes = optimizer_adamw_per_tensor_workspace_bytes,
     .run = optimizer_adamw_per_tensor_run},
    {.name = "fused_per_tensor", .note = "one launch a tensor", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .run = optimizer_adamw_fused_per_tensor_run},
    {.name = "multi_tensor", .note = "one launch over a table of slices of all tensors",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .prepare = optimizer_adamw_multi_tensor_prepare, .release = optimizer_multi_tensor_release,
     .run = optimizer_adamw_multi_tensor_run},
};

static const kernel_variant sgd_rows[] = {
    {.name = "per_tensor", .note = "three launches a tensor, an operation each", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .run = optimizer_sgd_per_tensor_run},
    {.name = "fused_per_tensor", .note = "one launch a tensor", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .run = optimizer_sgd_fused_per_tensor_run},
    {.name = "multi_tensor", .note = "one launch over a table of slices of all tensors",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .prepare = optimizer_sgd_multi_tensor_prepare, .release = optimizer_multi_tensor_release,
     .run = optimizer_sgd_multi_tensor_run},
};

static const kernel_variant clip_norm_rows[] = {
    {.name = "per_tensor",
     .note = "a reduction in two launches for each tensor, then one over them", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1,
     .workspace_bytes = optimizer_norm_per_tensor_workspace_bytes,
     .run = optimizer_norm_per_tensor_run},
    {.name = "fused_per_tensor", .note = "one launch a tensor, then one over all sums",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .workspace_bytes = optimizer_norm_fused_per_tensor_workspace_bytes,
     .run = optimizer_norm_fused_per_tensor_run},
    {.name = "multi_tensor", .note = "one launch, whose last block adds up", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1,
     .prepare = optimizer_norm_multi_tensor_prepare, .release = optimizer_multi_tensor_release,
     .run = optimizer_norm_multi_tensor_run},
};

static const kernel_variant clip_scale_rows[] = {
    {.name = "per_tensor", .note = "one launch a tensor", .dtypes = FLOATS,
     .min_compute_capability = 75, .deterministic = 1, .run = optimizer_scale_per_tensor_run},
    {.name = "multi_tensor", .note = "one launch over a table of slices of all tensors",
     .dtypes = FLOATS, .min_compute_capability = 75, .deterministic = 1,
     .prepare = optimizer_scale_multi_tensor_prepare, .release = optimizer_multi_tensor_release,
     .run = optimizer_scale_multi_tensor_run},
};

extern "C" {
const kernel_table optimizer_adamw_cuda = {adamw_rows, sizeof adamw_rows / sizeof *adamw_rows};
const kernel_table optimizer_sgd_cuda = {sgd_rows, sizeof sgd_rows / sizeof *sgd_rows};
const kernel_table optimizer_clip_norm_cuda = {clip_norm_rows,
                                               sizeof clip_norm_rows / sizeof *clip_norm_rows};
const kernel_table optimizer_clip_scale_cuda = {clip_scale_rows,
                                                sizeof clip_scale_rows / sizeof *clip_scale_rows};
}
