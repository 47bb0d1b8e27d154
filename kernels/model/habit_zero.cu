/*
 * habit_zero.cu - the habit `zero`: what happens to the gradients' memory before a step.
 *
 * 1. driver       Memory of each gradient's size is given back and taken again by cudaFree
 *                 and cudaMalloc. The first cudaFree waits for the step before.
 * 2. pool         The same from a pool that keeps its memory, in the stream's order: two
 *                 calls a tensor, of which the device sees nothing.
 * 3. memset       The gradients are set to zero: one more pass over their memory.
 * 4. overwritten  Left alone: the products that make them write all of them.
 *
 * The step's own gradients stay where they are: 1 and 2 give back and take memory beside
 * them, so that what is measured is the asking and the waiting. Ten steps in a row, since
 * waiting for the step before costs nothing where there is none.
 */
#include <new>
#include <stdlib.h>

#include "habits.cuh"
#include "model.cuh"

namespace {

struct zero_state {
    void *step;
    void **blocks; /* [tensors]; NULL: nothing is taken */
    int64_t tensors;
    cudaMemPool_t pool; /* NULL: the driver's own */
};

int give_back(const zero_state &s, int64_t i, kernel_stream stream)
{
    void *block = s.blocks[i];
    s.blocks[i] = nullptr;
    if (!block) return KERNEL_OK;
    return s.pool ? cudaFreeAsync(block, stream) : cudaFree(block);
}

int take(const zero_state &s, int64_t i, size_t bytes, kernel_stream stream)
{
    return s.pool ? cudaMallocFromPoolAsync(&s.blocks[i], bytes, s.pool, stream)
                  : cudaMalloc(&s.blocks[i], bytes);
}

size_t bytes_of(const model_args &a, int64_t tensor)
{
    parameters_tensor t = model_tensor_at(&a.shape, tensor);
    return static_cast<size_t>(parameters_elements(&t)) *
           kernel_dtype_bytes(model_storage(a.dtype));
}

/* All are given back before the first is taken, as by a loop that forgets gradients. */
int renew(const model_args &a, const zero_state &s, kernel_stream stream)
{
    int error = KERNEL_OK;
    for (int64_t i = 0; i < s.tensors && !error; i++) error = give_back(s, i, stream);
    for (int64_t i = 0; i < s.tensors && !error; i++) error = take(s, i, bytes_of(a, i), stream);
    return error;
}

void release(void *state)
{
    zero_state *s = static_cast<zero_state *>(state);
    cudaDeviceSynchronize();
    for (int64_t i = 0; s->blocks && i < s->tensors; i++) give_back(*s, i, nullptr);
    cudaDeviceSynchronize();
    if (s->pool) cudaMemPoolDestroy(s->pool);
    free(s->blocks);
    if (s->step) model_release_cuda(s->step);
    delete s;
}

/* A pool that gives nothing back to the driver on its own. */
int make_pool(zero_state *s)
{
    cudaMemPoolProps properties = {};
    uint64_t keeps = UINT64_MAX;
    int device, error = cudaGetDevice(&device);
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    if (!error) error = cudaMemPoolCreate(&s->pool, &properties);
    return error ? error : static_cast<int>(cudaMemPoolSetAttribute(
                               s->pool, cudaMemPoolAttrReleaseThreshold, &keeps));
}

enum class way { DRIVER, POOL, MEMSET, OVERWRITTEN };

template <way WAY>
int prepare(const void *args, void **state)
{
    const model_args &a = *static_cast<const model_args *>(args);
    zero_state *s = new (std::nothrow) zero_state();
    int error = s ? model_habit_prepare(args, &s->step) : static_cast<int>(KERNEL_ERROR_MEMORY);
    if (!error && (WAY == way::DRIVER || WAY == way::POOL)) {
        s->tensors = model_tensor_count(&a.shape);
        s->blocks = static_cast<void **>(calloc(static_cast<size_t>(s->tensors), sizeof(void *)));
        if (!s->blocks) error = KERNEL_ERROR_MEMORY;
    }
    if (!error && WAY == way::POOL) error = make_pool(s);
    if (!error && s->blocks) error = renew(a, *s, nullptr);
    if (!error)
        *state = s;
    else if (s)
        release(s);
    return error;
}

template <way WAY>
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args &a = *static_cast<const model_args *>(args);
    zero_state *s = static_cast<zero_state *>(state);
    model_plan plan = model_plan_of(&a);
    void *gradients = model_memory(&a, &plan, MODEL_GRADIENTS);
    int error = KERNEL_OK;
    for (int i = 0; i < a.habit->steps && !error; i++) {
        if (WAY == way::MEMSET)
            error = cudaMemsetAsync(gradients, 0, plan.bytes[MODEL_GRADIENTS], stream);
        if (s->blocks) error = renew(a, *s, stream);
        if (!error) error = model_run_cuda(args, workspace, s->step, stream);
    }
    return error;
}

template <way WAY>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = model_habit_workspace, .prepare = prepare<WAY>,
            .release = release, .run = run<WAY>};
}

} // namespace

const kernel_variant model_zero_rows[4] = {
    row<way::DRIVER>("driver", "a gradient's memory given back and taken again, by the driver"),
    row<way::POOL>("pool", "given back and taken again, from a pool that keeps it"),
    row<way::MEMSET>("memset", "gradients set to zero before each step"),
    row<way::OVERWRITTEN>("overwritten", "gradients written by the products that make them"),
};
