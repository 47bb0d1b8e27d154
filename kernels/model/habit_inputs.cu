/*
 * habit_inputs.cu - the habits `inputs` and `loader`: who makes each step's tokens and
 * targets, from which memory and by which stream they come to the device.
 *
 * 1. pageable     Made within the step in ordinary memory. The copy is staged by the
 *                 driver, and the host waits for the staging.
 * 2. pinned       Made within the step in page-locked memory, from which the device copies
 *                 by itself.
 * 3. overlapped   The same, copied by a stream of its own while the step before runs. A
 *                 batch lies in a place of its own until the step takes it over.
 * 4. prefetched   overlapped, made by a thread before it is wanted (loader.h).
 * 5. resident     The inputs are there already.
 *
 * The habit `loader` is 4 with batches that take milliseconds, made by 0 to 4 threads.
 *
 * Host memory is filled again only when the copy that reads it has been done: the host
 * waits for the copy of the batch before the last, which also keeps it two steps ahead of
 * the device at most. Idle is the time between the event behind a step's last kernel and
 * the one in front of the next step's first command, when its batch is there.
 *
 * A batch of token ids is 4 KB to 64 KB: bound by latency, or by who makes it.
 */
#include <new>
#include <stdlib.h>

#include "batches.h"
#include "habits.cuh"
#include "model.cuh"

namespace {

constexpr int SLOTS = 6; /* batches that are there before they are wanted, at most */
constexpr int AHEAD = 2; /* batches whose copies may be on their way */
constexpr int MOST_STEPS = 64;

enum class memory { PAGEABLE, PINNED };

struct inputs_way {
    int threads; /* of the loader; below 0: no inputs */
    memory host;
    bool overlaps;
};

struct inputs_state {
    inputs_way way;
    void *step;
    model_batches batches;
    loader *source;
    void *slots[SLOTS];
    char *staged[SLOTS];          /* on the device, where copies overlap */
    cudaStream_t copies;
    cudaEvent_t copied[SLOTS];    /* from the slot */
    cudaEvent_t used[SLOTS];      /* from where it was staged */
    cudaEvent_t ends[MOST_STEPS + 1], begins[MOST_STEPS]; /* of steps; ends[0]: of the start */
    int steps;                    /* of the last run */
    int64_t number;               /* of the next batch */
};

void destroy(cudaEvent_t event)
{
    if (event) cudaEventDestroy(event);
}

void release(void *state)
{
    inputs_state *s = static_cast<inputs_state *>(state);
    loader_close(s->source);
    cudaDeviceSynchronize(); /* copies may read the slots */
    for (int i = 0; i < SLOTS; i++) {
        destroy(s->copied[i]), destroy(s->used[i]);
        if (s->staged[i]) cudaFree(s->staged[i]);
        if (s->way.host == memory::PINNED && s->slots[i]) cudaFreeHost(s->slots[i]);
        if (s->way.host == memory::PAGEABLE) free(s->slots[i]);
    }
    for (cudaEvent_t event : s->ends) destroy(event);
    for (cudaEvent_t event : s->begins) destroy(event);
    if (s->copies) cudaStreamDestroy(s->copies);
    free(s->batches.text);
    if (s->step) model_release_cuda(s->step);
    delete s;
}

/* ---- making ---------------------------------------------------------------------------- */

/* Tokens and targets, from one to the other. */
int copy_batch(const model_args &a, char *other, bool leaves, cudaMemcpyKind kind,
               kernel_stream stream)
{
    model_plan plan = model_plan_of(&a);
    const model_buffer buffers[] = {MODEL_TOKENS, MODEL_TARGETS};
    size_t half = static_cast<size_t>(model_rows(&a.shape)) * sizeof(int32_t);
    int error = KERNEL_OK;
    for (model_buffer buffer : buffers) {
        void *own = model_memory(&a, &plan, buffer);
        if (!error)
            error = cudaMemcpyAsync(leaves ? other : own, leaves ? own : other, half, kind, stream);
        other += half;
    }
    return error;
}

int make_slot(inputs_state *s, int slot, size_t bytes)
{
    void *host = nullptr, *device = nullptr;
    int error = KERNEL_OK;
    if (s->way.host == memory::PINNED)
        error = cudaMallocHost(&host, bytes);
    else if (!(host = malloc(bytes)))
        error = KERNEL_ERROR_MEMORY;
    s->slots[slot] = host;
    if (!error && s->way.overlaps) error = cudaMalloc(&device, bytes);
    s->staged[slot] = static_cast<char *>(device);
    if (!error) error = cudaEventCreateWithFlags(&s->copied[slot], cudaEventDisableTiming);
    if (!error) error = cudaEventCreateWithFlags(&s->used[slot], cudaEventDisableTiming);
    return error;
}

int open_loader(inputs_state *s, const model_args &a)
{
    s->batches = {nullptr, model_rows(&a.shape), a.shape.vocabulary, a.habit->batch_ms};
    size_t bytes = model_batch_bytes(&s->batches);
    s->batches.text = static_cast<int32_t *>(malloc(bytes));
    if (!s->batches.text) return KERNEL_ERROR_MEMORY;
    int error = copy_batch(a, reinterpret_cast<char *>(s->batches.text), true,
                           cudaMemcpyDeviceToHost, nullptr);
    if (!error) error = cudaStreamSynchronize(nullptr);
    if (!error && s->way.overlaps)
        error = cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking);
    for (int i = 0; i < SLOTS && !error; i++) error = make_slot(s, i, bytes);
    if (error) return error;
    s->source = loader_open(s->way.threads, SLOTS, s->slots, model_batch_make, &s->batches);
    return s->source ? KERNEL_OK : KERNEL_ERROR_MEMORY;
}

int make_events(inputs_state *s, int steps)
{
    int error = cudaEventCreate(&s->ends[0]);
    for (int i = 0; i < steps && !error; i++) {
        error = cudaEventCreate(&s->ends[i + 1]);
        if (!error) error = cudaEventCreate(&s->begins[i]);
    }
    return error;
}

int prepare(const void *args, void **state, inputs_way way)
{
    const model_args &a = *static_cast<const model_args *>(args);
    if (a.habit->steps > MOST_STEPS) return KERNEL_ERROR_ARGUMENT;
    inputs_state *s = new (std::nothrow) inputs_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->way = way;
    int error = make_events(s, a.habit->steps);
    if (!error && way.threads >= 0) error = open_loader(s, a);
    if (!error) error = model_habit_prepare(args, &s->step);
    if (error)
        release(s);
    else
        *state = s;
    return error;
}

/* ---- running ----------------------------------------------------------------------------- */

/* To where it is staged, behind what read the batch before it there; then `stream` waits. */
int stage(inputs_state *s, int slot, const void *batch, kernel_stream stream)
{
    int error = cudaStreamWaitEvent(s->copies, s->used[slot], 0);
    if (!error)
        error = cudaMemcpyAsync(s->staged[slot], batch, model_batch_bytes(&s->batches),
                                cudaMemcpyHostToDevice, s->copies);
    if (!error) error = cudaEventRecord(s->copied[slot], s->copies);
    return error ? error : static_cast<int>(cudaStreamWaitEvent(stream, s->copied[slot], 0));
}

/* The next batch into the step's own inputs. What is before `begin` the step waits for. */
int load(inputs_state *s, const model_args &a, cudaEvent_t begin, kernel_stream stream)
{
    int slot = static_cast<int>(s->number % SLOTS), error = KERNEL_OK;
    if (s->number >= AHEAD) {
        error = cudaEventSynchronize(s->copied[(s->number - AHEAD) % SLOTS]);
        loader_give_back(s->source);
    }
    char *batch = error ? nullptr : static_cast<char *>(loader_take(s->source));
    if (error) return error;
    if (!batch) return kernel_fail("%s", loader_reason(s->source));
    s->number++;
    if (s->way.overlaps) error = stage(s, slot, batch, stream);
    if (!error) error = cudaEventRecord(begin, stream);
    if (error) return error;
    if (s->way.overlaps) {
        error = copy_batch(a, s->staged[slot], false, cudaMemcpyDeviceToDevice, stream);
        return error ? error : static_cast<int>(cudaEventRecord(s->used[slot], stream));
    }
    error = copy_batch(a, batch, false, cudaMemcpyHostToDevice, stream);
    return error ? error : static_cast<int>(cudaEventRecord(s->copied[slot], stream));
}

/* What the copies' stream does belongs to the run: it begins behind its start. */
int begin_run(inputs_state *s, const model_args &a, kernel_stream stream)
{
    s->steps = a.habit->steps;
    int error = cudaEventRecord(s->ends[0], stream);
    if (!error && s->copies) error = cudaStreamWaitEvent(s->copies, s->ends[0], 0);
    if (s->source) loader_allow(s->source, s->steps);
    return error;
}

int run(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const model_args &a = *static_cast<const model_args *>(args);
    inputs_state *s = static_cast<inputs_state *>(state);
    int error = begin_run(s, a, stream);
    for (int i = 0; i < s->steps && !error; i++) {
        error = s->source ? load(s, a, s->begins[i], stream)
                          : static_cast<int>(cudaEventRecord(s->begins[i], stream));
        if (!error) error = model_run_cuda(args, workspace, s->step, stream);
        if (!error) error = cudaEventRecord(s->ends[i + 1], stream);
    }
    return error;
}

template <int THREADS, memory HOST, bool OVERLAPS, unsigned DTYPES = MODEL_HABIT_DTYPES>
constexpr kernel_variant row(const char *name, const char *note)
{
    return {.name = name, .note = note, .dtypes = DTYPES,
            .min_compute_capability = 75, .unsupported = model_unsupported_cuda,
            .workspace_bytes = model_habit_workspace,
            .prepare = [](const void *args, void **state) {
                return prepare(args, state, {THREADS, HOST, OVERLAPS});
            },
            .release = release, .run = run};
}

/* Seconds of waiting, which are the same for any dtype. */
constexpr unsigned WAITING = KERNEL_DTYPE_BIT(KERNEL_BF16);

} // namespace

const kernel_variant model_inputs_rows[5] = {
    row<0, memory::PAGEABLE, false>("pageable", "made in the step, in ordinary memory"),
    row<0, memory::PINNED, false>("pinned", "made in the step, in page-locked memory"),
    row<0, memory::PINNED, true>("overlapped", "pinned, copied by a stream of its own"),
    row<1, memory::PINNED, true>("prefetched", "overlapped, made ahead by a thread"),
    row<-1, memory::PAGEABLE, false>("resident", "the inputs are there already"),
};

const kernel_variant model_loader_rows[5] = {
    row<0, memory::PINNED, true, WAITING>("0_threads", "each batch made in its step"),
    row<1, memory::PINNED, true, WAITING>("1_thread", "made ahead by one thread"),
    row<2, memory::PINNED, true, WAITING>("2_threads", "made ahead, two at a time"),
    row<4, memory::PINNED, true, WAITING>("4_threads", "made ahead, four at a time"),
    row<-1, memory::PAGEABLE, false, WAITING>("resident", "the inputs are there already"),
};

/* The device has done all of the run. A time that cannot be had counts as none. */
double model_inputs_idle(const void *state)
{
    const inputs_state *s = static_cast<const inputs_state *>(state);
    double milliseconds = 0;
    for (int i = 0; i < s->steps; i++) {
        float gap = 0;
        if (cudaEventElapsedTime(&gap, s->ends[i], s->begins[i]) == cudaSuccess)
            milliseconds += static_cast<double>(gap);
    }
    return s->steps ? milliseconds * 1e3 / s->steps : 0;
}
