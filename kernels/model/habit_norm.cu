/*
 * habit_norm.cu - the habit `norm`, variant `to_host`: each tensor's norm is copied to
 * the host as soon as it is there, as a loop over `grad.norm().item()` does; the host
 * adds the squares and sends the scale. Bound by the waiting: 148 round trips for
 * GPT-2 124M, some 10 us each, in which the device does next to nothing.
 */
#include <math.h>
#include <new>

#include "habits.cuh"
#include "model.cuh"

namespace {

/* The step in two pieces, and between them the tensors whose norms are wanted. */
struct to_host_state {
    model_args passes_args, adamw_args;
    void *passes, *adamw;
    model_ops clip;
};

const kernel_variant &of_one_tensor()
{
    return *kernel_find(&optimizer_clip_norm_cuda, "fused_per_tensor");
}

optimizer_clip_args one_tensor(const optimizer_clip_args &all, int64_t index)
{
    optimizer_clip_args one = all;
    one.list = {all.list.tensors + index, 1};
    return one;
}

size_t workspace_bytes(const void *args)
{
    return model_workspace_bytes_cuda(args, model_best_cuda()) +
           model_workspace_bytes_cuda(args, [] {
               model_way_cuda way = model_best_cuda();
               way.clip[0] = "fused_per_tensor"; /* of all tensors: enough for each */
               return way;
           }());
}

void release(void *state)
{
    to_host_state *s = static_cast<to_host_state *>(state);
    if (s->passes) model_release_cuda(s->passes);
    if (s->adamw) model_release_cuda(s->adamw);
    model_ops_destroy(&s->clip);
    delete s;
}

int prepare(const void *args, void **state)
{
    to_host_state *s = new (std::nothrow) to_host_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    model_args clip = *static_cast<const model_args *>(args);
    s->passes_args = s->adamw_args = clip;
    s->passes_args.phases = MODEL_FORWARD | MODEL_LOSS | MODEL_BACKWARD;
    s->adamw_args.phases = clip.phases = MODEL_UPDATE;
    s->adamw_args.components = 1u << MODEL_ADAMW;
    clip.components = 1u << MODEL_CLIP;
    int error = model_ops_create(&clip, &s->clip);
    if (!error) error = model_prepare_cuda(&s->passes_args, model_best_cuda(), &s->passes);
    if (!error) error = model_prepare_cuda(&s->adamw_args, model_best_cuda(), &s->adamw);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

/* The norm of one tensor, on the host. */
int norm_of(const optimizer_clip_args &one, void *workspace, kernel_stream stream, float *norm)
{
    int error = of_one_tensor().run(&one, workspace, nullptr, stream);
    if (!error)
        error = cudaMemcpyAsync(norm, one.norm, sizeof *norm, cudaMemcpyDeviceToHost, stream);
    return error ? error : cudaStreamSynchronize(stream);
}

int clip_by_host(const optimizer_clip_args &clip, void *workspace, kernel_stream stream)
{
    double sum = 0;
    int error = KERNEL_OK;
    for (int64_t i = 0; i < clip.list.count && !error; i++) {
        float norm = 0;
        error = norm_of(one_tensor(clip, i), workspace, stream, &norm);
        sum += static_cast<double>(norm) * static_cast<double>(norm);
    }
    float norm = static_cast<float>(sqrt(sum));
    double factor = static_cast<double>(clip.max_norm) / (sqrt(sum) + 1e-6);
    float scale = factor >= 1 ? 1.0f : static_cast<float>(factor);
    if (!error)
        error = cudaMemcpyAsync(clip.norm, &norm, sizeof norm, cudaMemcpyHostToDevice, stream);
    if (!error)
        error = cudaMemcpyAsync(clip.scale, &scale, sizeof scale, cudaMemcpyHostToDevice, stream);
    return error;
}

int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    to_host_state *s = static_cast<to_host_state *>(state);
    s->adamw_args.settings = static_cast<const model_args *>(args)->settings;
    int error = model_run_cuda(&s->passes_args, workspace, s->passes, stream);
    if (!error) error = clip_by_host(s->clip.list[0].as.clip, workspace, stream);
    return error ? error : model_run_cuda(&s->adamw_args, workspace, s->adamw, stream);
}

} // namespace

kernel_variant model_norm_to_host_row()
{
    return {.name = "to_host", .note = "each tensor's norm copied to the host, which waits",
            .dtypes = MODEL_HABIT_DTYPES & ~KERNEL_DTYPE_BIT(KERNEL_F16), /* no loss scale */
            .min_compute_capability = 75,
            .unsupported = model_unsupported_cuda, .workspace_bytes = workspace_bytes,
            .prepare = prepare, .release = release, .run = run};
}
