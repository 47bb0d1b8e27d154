/*
 * habit_inputs.cu - the habit `inputs`: a step's tokens and targets are made on the host
 * and copied to the device within the step.
 *
 * 1. pageable   Made in ordinary memory. The copy is staged by the driver, and the host
 *               waits for the staging.
 * 2. pinned     Made in page-locked memory, from which the device copies by itself. The
 *               host may make the next batch meanwhile, but in another buffer: one is
 *               used again only when its copy has been done.
 *
 * Bound by latency: a batch of token ids is 4 KB to 32 KB.
 */
#include <new>
#include <stdlib.h>
#include <string.h>

#include "habits.cuh"
#include "model.cuh"

namespace {

constexpr int SLOTS = 4; /* batches on their way at most */

/* `batch` is what every step is given; making one is copying it to a slot. */
struct inputs_state {
    void *step;
    bool is_pinned;
    char *batch, *slots[SLOTS];
    cudaEvent_t copied[SLOTS];
    int next;
};

size_t workspace_bytes(const void *args)
{
    return model_workspace_bytes_cuda(args, model_best_cuda());
}

void release(void *state)
{
    inputs_state *s = static_cast<inputs_state *>(state);
    cudaDeviceSynchronize(); /* copies may read the slots */
    for (int i = 0; i < SLOTS; i++) {
        if (s->copied[i]) cudaEventDestroy(s->copied[i]);
        if (s->is_pinned && s->slots[i]) cudaFreeHost(s->slots[i]);
        if (!s->is_pinned) free(s->slots[i]);
    }
    free(s->batch);
    if (s->step) model_release_cuda(s->step);
    delete s;
}

size_t half_of(const model_args &a)
{
    return static_cast<size_t>(model_rows(&a.shape)) * sizeof(int32_t);
}

/* Tokens and targets, from one to the other. */
int copy_batch(const model_args &a, char *host, cudaMemcpyKind kind, kernel_stream stream)
{
    model_plan plan = model_plan_of(&a);
    const model_buffer buffers[] = {MODEL_TOKENS, MODEL_TARGETS};
    int error = KERNEL_OK;
    for (model_buffer buffer : buffers) {
        void *device = model_memory(&a, &plan, buffer);
        bool leaves = kind == cudaMemcpyDeviceToHost;
        if (!error)
            error = cudaMemcpyAsync(leaves ? host : device, leaves ? device : host, half_of(a),
                                    kind, stream);
        host += half_of(a);
    }
    return error;
}

int make_slots(inputs_state *s, size_t bytes)
{
    int error = KERNEL_OK;
    for (int i = 0; i < SLOTS && !error; i++) {
        void *memory = nullptr;
        if (s->is_pinned)
            error = cudaMallocHost(&memory, bytes);
        else if (!(memory = malloc(bytes)))
            error = KERNEL_ERROR_MEMORY;
        s->slots[i] = static_cast<char *>(memory);
        if (!error) error = cudaEventCreateWithFlags(&s->copied[i], cudaEventDisableTiming);
    }
    return error;
}

template <bool IS_PINNED>
int prepare(const void *args, void **state)
{
    const model_args &a = *static_cast<const model_args *>(args);
    inputs_state *s = new (std::nothrow) inputs_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->is_pinned = IS_PINNED;
    s->batch = static_cast<char *>(malloc(2 * half_of(a)));
    int error = s->batch ? make_slots(s, 2 * half_of(a)) : KERNEL_ERROR_MEMORY;
    if (!error) error = copy_batch(a, s->batch, cudaMemcpyDeviceToHost, nullptr);
    if (!error) error = cudaStreamSynchronize(nullptr);
    if (!error) error = model_prepare_cuda(args, model_best_cuda(), &s->step);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args &a = *static_cast<const model_args *>(args);
    inputs_state *s = static_cast<inputs_state *>(state);
    int slot = s->next;
    s->next = (slot + 1) % SLOTS;
    int error = cudaEventSynchronize(s->copied[slot]); /* done at once of one never recorded */
    if (error) return error;
    memcpy(s->slots[slot], s->batch, 2 * half_of(a));
    error = copy_batch(a, s->slots[slot], cudaMemcpyHostToDevice, stream);
    if (!error) error = cudaEventRecord(s->copied[slot], stream);
    return error ? error : model_run_cuda(args, workspace, s->step, stream);
}

} // namespace

kernel_variant model_inputs_row(bool is_pinned)
{
    return {.name = is_pinned ? "pinned" : "pageable",
            .note = is_pinned ? "tokens made in page-locked memory and copied in the step"
                              : "tokens made in ordinary memory and copied in the step",
            .dtypes = MODEL_HABIT_DTYPES, .min_compute_capability = 75,
            .unsupported = model_unsupported_cuda, .workspace_bytes = workspace_bytes,
            .prepare = is_pinned ? prepare<true> : prepare<false>, .release = release,
            .run = run};
}
