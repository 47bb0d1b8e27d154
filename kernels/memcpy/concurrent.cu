/*
 * concurrent.cu - two things at once: copies in both directions, and a
 * copy beside a kernel.
 *
 * 1. serial        one after the other, on the stream that run gets: what is
 *                  gained is held against this.
 * 2. overlapped    one of the two on a second stream, which forks from the
 *                  given one and joins it again by events, so that whoever
 *                  times the given stream times both, and a capture into a
 *                  graph takes both. The copy engines work one direction each,
 *                  beside the multiprocessors. Bound by the longer of the two,
 *                  and by what they share: the link's protocol and the host's
 *                  memory. A fork and a join cost some microseconds.
 * 3. copy_alone    overlap only: the copy without the kernel.
 * 4. kernel_alone  overlap only: the kernel (compute.cu) without the copy.
 */
#include "memcpy.cuh"

#include <cuda_runtime_api.h>

#include <new>

namespace {

/* ---- the second stream ------------------------------------------------------------- */

struct second_stream {
    cudaStream_t stream;
    cudaEvent_t fork, join;
};

void release_second_stream(void *state)
{
    second_stream *s = static_cast<second_stream *>(state);
    if (s->join) (void)cudaEventDestroy(s->join);
    if (s->fork) (void)cudaEventDestroy(s->fork);
    if (s->stream) (void)cudaStreamDestroy(s->stream);
    delete s;
}

int prepare_second_stream(const void *, void **state)
{
    second_stream *s = new (std::nothrow) second_stream();
    if (!s) return KERNEL_ERROR_MEMORY;
    cudaError_t error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming);
    if (error == cudaSuccess)
        *state = s;
    else
        release_second_stream(s);
    return error;
}

/* Makes what is enqueued on `after` from now on wait for what `before` has. */
cudaError_t order(cudaStream_t before, cudaEvent_t event, cudaStream_t after)
{
    cudaError_t error = cudaEventRecord(event, before);
    return error == cudaSuccess ? cudaStreamWaitEvent(after, event, 0) : error;
}

/* Enqueues aside on the second stream and the rest on the given one. Joins them
 * also after an error, lest work goes on that the caller does not know of. */
template <typename Aside, typename Rest>
int run_overlapped(void *state, kernel_stream stream, Aside aside, Rest rest)
{
    const second_stream &second = *static_cast<const second_stream *>(state);
    int error = order(stream, second.fork, second.stream);
    if (error) return error;
    error = aside(second.stream);
    if (!error) error = rest(stream);
    int joined = order(second.stream, second.join, stream);
    return error ? error : joined;
}

int enqueue_copy(const memcpy_args &a, cudaMemcpyKind kind, kernel_stream stream)
{
    return cudaMemcpyAsync(a.dst, a.src, a.bytes, kind, stream);
}

/* ---- both directions --------------------------------------------------------------- */

int run_bidirectional_serial(const void *args, void *, void *, kernel_stream stream)
{
    const auto &a = *static_cast<const memcpy_bidirectional_args *>(args);
    int error = enqueue_copy(a.h2d, cudaMemcpyHostToDevice, stream);
    return error ? error : enqueue_copy(a.d2h, cudaMemcpyDeviceToHost, stream);
}

int run_bidirectional_overlapped(const void *args, void *, void *state, kernel_stream stream)
{
    const auto &a = *static_cast<const memcpy_bidirectional_args *>(args);
    return run_overlapped(
        state, stream,
        [&a](kernel_stream s) { return enqueue_copy(a.d2h, cudaMemcpyDeviceToHost, s); },
        [&a](kernel_stream s) { return enqueue_copy(a.h2d, cudaMemcpyHostToDevice, s); });
}

/* ---- a copy beside a kernel -------------------------------------------------------- */

int enqueue_kernel(const memcpy_overlap_args &a, kernel_stream stream)
{
    return memcpy_compute(a.results, memcpy_overlap_results(a.copy.bytes), stream);
}

int run_copy_alone(const void *args, void *, void *, kernel_stream stream)
{
    const auto &a = *static_cast<const memcpy_overlap_args *>(args);
    return enqueue_copy(a.copy, cudaMemcpyHostToDevice, stream);
}

int run_kernel_alone(const void *args, void *, void *, kernel_stream stream)
{
    return enqueue_kernel(*static_cast<const memcpy_overlap_args *>(args), stream);
}

int run_overlap_serial(const void *args, void *workspace, void *state, kernel_stream stream)
{
    int error = run_copy_alone(args, workspace, state, stream);
    return error ? error : run_kernel_alone(args, workspace, state, stream);
}

int run_overlap_overlapped(const void *args, void *, void *state, kernel_stream stream)
{
    const auto &a = *static_cast<const memcpy_overlap_args *>(args);
    return run_overlapped(
        state, stream,
        [&a](kernel_stream s) { return enqueue_copy(a.copy, cudaMemcpyHostToDevice, s); },
        [&a](kernel_stream s) { return enqueue_kernel(a, s); });
}

/* ---- tables ------------------------------------------------------------------------ */

using run_function = int(const void *, void *, void *, kernel_stream);

constexpr unsigned BYTES = KERNEL_DTYPE_BIT(KERNEL_DTYPE_COUNT) - 1;

constexpr kernel_variant on_one_stream(const char *name, const char *note, run_function *run)
{
    return {.name = name, .note = note, .dtypes = BYTES, .deterministic = 1, .run = run};
}

constexpr kernel_variant on_two_streams(const char *name, const char *note, run_function *run)
{
    return {.name = name, .note = note, .dtypes = BYTES, .deterministic = 1,
            .prepare = prepare_second_stream, .release = release_second_stream, .run = run};
}

const kernel_variant bidirectional_rows[] = {
    on_one_stream("serial", "h2d, then d2h", run_bidirectional_serial),
    on_two_streams("overlapped", "h2d and d2h on two streams", run_bidirectional_overlapped),
};

const kernel_variant overlap_rows[] = {
    on_one_stream("copy_alone", "h2d without the kernel", run_copy_alone),
    on_one_stream("kernel_alone", "the kernel without the copy", run_kernel_alone),
    on_one_stream("serial", "h2d, then the kernel", run_overlap_serial),
    on_two_streams("overlapped", "h2d and the kernel on two streams", run_overlap_overlapped),
};

} // namespace

extern "C" {
const kernel_table memcpy_bidirectional_cuda = {
    bidirectional_rows, sizeof bidirectional_rows / sizeof *bidirectional_rows};
const kernel_table memcpy_overlap_cuda = {overlap_rows, sizeof overlap_rows / sizeof *overlap_rows};
}
