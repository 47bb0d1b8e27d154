/*
 * habit_pauses.cu - the habits `evaluation` and `checkpoint`: what a loop does beside its
 * steps.
 *
 * evaluation   Forward and loss of MODEL_EVALUATED batches in front of a row of steps,
 *              their losses read at its end; or steps only. An evaluation every N steps
 *              costs steps / N of what it costs here. The loss is the step's own, with the
 *              logits' gradient. Bound by the forward passes.
 * checkpoint   1. in_loop    In front of a row of steps the parameters are copied to the
 *                            host and written to a file (which has no name, and is gone
 *                            afterwards). The device waits for the disk.
 *              2. by_thread  Copied in the stream's order, written by a thread while the
 *                            steps run; behind them the host waits for the file. Hidden
 *                            where the steps take longer than the disk.
 *              3. none       Steps only.
 *              Bound by the disk: 0.2 to 0.7 GB for GPT-2 124M.
 */
#include <new>
#include <string.h>

#include "checkpoint.h"
#include "habits.cuh"
#include "loader.h"
#include "model.cuh"

namespace {

enum class pause { EVALUATION, FILE_IN_LOOP, FILE_BY_THREAD, NONE };

struct pauses_state {
    void *step, *evaluation;
    model_args args; /* what a file or an evaluation is of */
    float *losses;   /* page-locked, of an evaluation */
    void *copy;      /* page-locked, of the parameters */
    cudaEvent_t copied;
    int device;
    loader *writer;
};

void release(void *state)
{
    pauses_state *s = static_cast<pauses_state *>(state);
    loader_close(s->writer);
    cudaDeviceSynchronize();
    if (s->copied) cudaEventDestroy(s->copied);
    if (s->copy) cudaFreeHost(s->copy);
    if (s->losses) cudaFreeHost(s->losses);
    if (s->evaluation) model_release_cuda(s->evaluation);
    if (s->step) model_release_cuda(s->step);
    delete s;
}

/* A loader_make: the file, when its copy has come. */
int write_copy(void *context, int64_t, void *memory, char reason[LOADER_REASON])
{
    const pauses_state *s = static_cast<const pauses_state *>(context);
    char why[SAFETENSORS_REASON] = "";
    cudaError_t error = cudaSetDevice(s->device);
    if (error == cudaSuccess) error = cudaEventSynchronize(s->copied);
    int code = error == cudaSuccess ? model_checkpoint_write_scratch(&s->args.shape, s->args.dtype,
                                                                     memory, why)
                                    : -1;
    if (error != cudaSuccess) strncpy(why, cudaGetErrorString(error), sizeof why - 1);
    memcpy(reason, why, LOADER_REASON - 1);
    return code;
}

int prepare_writer(pauses_state *s, int threads)
{
    model_plan plan = model_plan_of(&s->args);
    int error = cudaMallocHost(&s->copy, plan.bytes[MODEL_VALUES]);
    if (!error) error = cudaEventCreateWithFlags(&s->copied, cudaEventDisableTiming);
    if (!error) error = cudaGetDevice(&s->device);
    if (error) return error;
    s->writer = loader_open(threads, 1, &s->copy, write_copy, s);
    return s->writer ? KERNEL_OK : KERNEL_ERROR_MEMORY;
}

int prepare_evaluation(pauses_state *s)
{
    s->args.phases = MODEL_FORWARD | MODEL_LOSS;
    int error = cudaMallocHost(&s->losses, MODEL_EVALUATED * sizeof *s->losses);
    return error ? error : model_habit_prepare(&s->args, &s->evaluation);
}

template <pause PAUSE>
int prepare(const void *args, void **state)
{
    pauses_state *s = new (std::nothrow) pauses_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->args = *static_cast<const model_args *>(args);
    int error = model_habit_prepare(args, &s->step);
    if (!error && PAUSE == pause::EVALUATION) error = prepare_evaluation(s);
    if (!error && PAUSE == pause::FILE_IN_LOOP) error = prepare_writer(s, 0);
    if (!error && PAUSE == pause::FILE_BY_THREAD) error = prepare_writer(s, 1);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

/* ---- running ----------------------------------------------------------------------------- */

int evaluate(pauses_state *s, void *workspace, kernel_stream stream)
{
    model_plan plan = model_plan_of(&s->args);
    const float *results = static_cast<float *>(model_memory(&s->args, &plan, MODEL_RESULTS));
    int error = KERNEL_OK;
    for (int i = 0; i < MODEL_EVALUATED && !error; i++) {
        error = model_run_cuda(&s->args, workspace, s->evaluation, stream);
        if (!error)
            error = cudaMemcpyAsync(&s->losses[i], results + MODEL_RESULT_LOSS, sizeof(float),
                                    cudaMemcpyDeviceToHost, stream);
    }
    return error ? error : static_cast<int>(cudaStreamSynchronize(stream));
}

/* Steps move the parameters only behind the copy. */
int begin_file(pauses_state *s, kernel_stream stream)
{
    model_plan plan = model_plan_of(&s->args);
    int error = cudaMemcpyAsync(s->copy, model_memory(&s->args, &plan, MODEL_VALUES),
                                plan.bytes[MODEL_VALUES], cudaMemcpyDeviceToHost, stream);
    if (!error) error = cudaEventRecord(s->copied, stream);
    if (!error) loader_allow(s->writer, 1);
    return error;
}

int await_file(pauses_state *s)
{
    if (!loader_take(s->writer)) return kernel_fail("%s", loader_reason(s->writer));
    loader_give_back(s->writer);
    return KERNEL_OK;
}

template <pause PAUSE>
int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    pauses_state *s = static_cast<pauses_state *>(state);
    int error = PAUSE == pause::EVALUATION ? evaluate(s, workspace, stream)
                : s->writer                ? begin_file(s, stream)
                                           : static_cast<int>(KERNEL_OK);
    if (!error && PAUSE == pause::FILE_IN_LOOP) error = await_file(s);
    for (int i = 0; i < s->args.habit->steps && !error; i++)
        error = model_run_cuda(args, workspace, s->step, stream);
    return !error && PAUSE == pause::FILE_BY_THREAD ? await_file(s) : error;
}

template <pause PAUSE>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = MODEL_HABIT_DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = model_habit_workspace, .prepare = prepare<PAUSE>,
            .release = release, .run = run<PAUSE>};
}

} // namespace

const kernel_variant model_evaluation_rows[2] = {
    row<pause::EVALUATION>("10_batches", "an evaluation in front of the steps"),
    row<pause::NONE>("none", "steps only"),
};

const kernel_variant model_checkpoint_rows[3] = {
    row<pause::FILE_IN_LOOP>("in_loop", "the parameters written in front of the steps"),
    row<pause::FILE_BY_THREAD>("by_thread", "a copy of them written while the steps run"),
    row<pause::NONE>("none", "steps only"),
};
