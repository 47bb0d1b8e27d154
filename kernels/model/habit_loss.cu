/*
 * habit_loss.cu - the habits `loss` and `launches`: steps in a row, what hands them to the
 * device, and when the host looks at their loss.
 *
 * loss       1. every_step   The loss is copied to ordinary memory after each step, as a
 *                            framework's `.item()` does: the host waits until the device
 *                            has nothing to do, and only then launches the next step.
 *            2. by_event     Copied to page-locked memory, and looked at when the next step
 *                            has been enqueued: every loss is seen, the device waits for none.
 *            3. every_last   Looked at after the last step.
 *            Launch by launch, then from a graph, which leaves the host less to do in the
 *            gap.
 * launches   A step's some 400 launches one by one, or one launch of a graph. A single
 *            step's launches are enqueued before it starts (the gate of gpubench.h);
 *            those of a row of steps must keep up with the device.
 *
 * Bound by launches where a step's kernels take microseconds, by the kernels elsewhere.
 */
#include <new>

#include "habits.cuh"
#include "model.cuh"

namespace {

constexpr int SLOTS = 2; /* of losses on their way */

struct steps_state {
    const kernel_variant *of_model;
    void *inner;
    float *losses; /* page-locked */
    cudaEvent_t copied[SLOTS];
    float last; /* what the host saw */
};

enum class look { EVERY_STEP, BY_EVENT, AFTER_LAST, NEVER };

template <bool IN_GRAPH>
const kernel_variant &of_model()
{
    return *kernel_find(&model_cuda, IN_GRAPH ? "graph" : "best");
}

template <bool IN_GRAPH>
size_t workspace_bytes(const void *args)
{
    const kernel_variant &inner = of_model<IN_GRAPH>();
    return inner.workspace_bytes ? inner.workspace_bytes(args) : 0;
}

void release(void *state)
{
    steps_state *s = static_cast<steps_state *>(state);
    for (cudaEvent_t event : s->copied)
        if (event) cudaEventDestroy(event);
    if (s->losses) cudaFreeHost(s->losses);
    if (s->inner) s->of_model->release(s->inner);
    delete s;
}

template <bool IN_GRAPH>
int prepare(const void *args, void **state)
{
    steps_state *s = new (std::nothrow) steps_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->of_model = &of_model<IN_GRAPH>();
    int error = cudaMallocHost(&s->losses, SLOTS * sizeof *s->losses);
    for (cudaEvent_t &event : s->copied)
        if (!error) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (!error) error = s->of_model->prepare(args, &s->inner);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

const float *loss_of(const model_args &a)
{
    model_plan plan = model_plan_of(&a);
    return static_cast<float *>(model_memory(&a, &plan, MODEL_RESULTS)) + MODEL_RESULT_LOSS;
}

int wait_for_loss(steps_state *s, const model_args &a, kernel_stream stream)
{
    int error = cudaMemcpyAsync(&s->last, loss_of(a), sizeof s->last, cudaMemcpyDeviceToHost,
                                stream);
    return error ? error : cudaStreamSynchronize(stream);
}

int see(steps_state *s, int step)
{
    int error = cudaEventSynchronize(s->copied[step % SLOTS]);
    s->last = s->losses[step % SLOTS];
    return error;
}

/* Sends for this step's loss, and looks at the one before; of the last at once. */
int send_for_loss(steps_state *s, const model_args &a, int step, kernel_stream stream)
{
    int error = cudaMemcpyAsync(&s->losses[step % SLOTS], loss_of(a), sizeof *s->losses,
                                cudaMemcpyDeviceToHost, stream);
    if (!error) error = cudaEventRecord(s->copied[step % SLOTS], stream);
    if (!error && step > 0) error = see(s, step - 1);
    return !error && step == a.habit->steps - 1 ? see(s, step) : error;
}

template <look LOOK>
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args &a = *static_cast<const model_args *>(args);
    steps_state *s = static_cast<steps_state *>(state);
    int error = KERNEL_OK, steps = a.habit->steps;
    for (int step = 0; step < steps && !error; step++) {
        error = s->of_model->run(args, workspace, s->inner, stream);
        bool waits = LOOK == look::EVERY_STEP || (LOOK == look::AFTER_LAST && step == steps - 1);
        if (!error && waits) error = wait_for_loss(s, a, stream);
        if (!error && LOOK == look::BY_EVENT) error = send_for_loss(s, a, step, stream);
    }
    return error;
}

template <bool IN_GRAPH, look LOOK>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = workspace_bytes<IN_GRAPH>, .prepare = prepare<IN_GRAPH>,
            .release = release, .run = run<LOOK>};
}

} // namespace

const kernel_variant model_loss_rows[3] = {
    row<false, look::EVERY_STEP>("every_step", "read back after each step"),
    row<false, look::BY_EVENT>("by_event", "each read when the next step is enqueued"),
    row<false, look::AFTER_LAST>("every_100", "read back after the last of 100 steps"),
};

const kernel_variant model_graph_loss_rows[3] = {
    row<true, look::EVERY_STEP>("every_step", "from a graph, read back after each step"),
    row<true, look::BY_EVENT>("by_event", "from a graph, each read when the next is enqueued"),
    row<true, look::AFTER_LAST>("every_100", "from a graph, after the last of 100 steps"),
};

const kernel_variant model_launches_rows[2] = {
    row<false, look::NEVER>("stream", "launch by launch"),
    row<true, look::NEVER>("graph", "one launch of a graph a step"),
};
