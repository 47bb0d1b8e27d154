/*
 * peer.cu - copies from the current device to another one.
 *
 * 1. peer         cudaMemcpyPeerAsync with peer access: a copy engine writes to
 *                 the other device's memory. Bound by the link between them.
 * 2. peer_kernel  a kernel that loads here and stores there, 16 bytes an access.
 * 3. staged       cudaMemcpyPeerAsync without peer access: the driver copies to
 *                 the host and from there, in pieces. Bound by both links and
 *                 the host's memory.
 *
 * What belongs to the other device is taken and given back while that is the
 * current one, and the device of before is current again afterwards.
 */
#include "memcpy.cuh"

#include <cuda_runtime_api.h>

#include <new>

namespace {

/* ---- the two devices --------------------------------------------------------------- */

struct device_pair {
    int here, there; /* there: -1 if no such other device is visible */
};

enum { MOST_DEVICES = 64 };

const memcpy_peer_args &args_of(const void *args)
{
    return *static_cast<const memcpy_peer_args *>(args);
}

cudaError_t find_pair(const void *args, device_pair *pair)
{
    int count = 0, hop = args_of(args).hop;
    cudaError_t error = cudaGetDevice(&pair->here);
    if (error == cudaSuccess) error = cudaGetDeviceCount(&count);
    pair->there = hop > 0 && hop < count && count <= MOST_DEVICES ? (pair->here + hop) % count : -1;
    return error;
}

/* Does work while the other device is the current one. */
template <typename Work>
cudaError_t do_there(const device_pair &pair, Work work)
{
    cudaError_t error = cudaSetDevice(pair.there);
    if (error == cudaSuccess) error = work();
    cudaError_t back = cudaSetDevice(pair.here);
    return error != cudaSuccess ? error : back;
}

/* An error in asking is prepare's to meet again, and to report. */
const char *why_not_staged(const void *args)
{
    device_pair pair;
    if (find_pair(args, &pair) != cudaSuccess || pair.there >= 0) return nullptr;
    return args_of(args).hop == 1 ? "needs two GPUs" : "needs more GPUs";
}

const char *why_not_peer(const void *args)
{
    device_pair pair;
    int forth = 1, back = 1;
    const char *reason = why_not_staged(args);
    if (reason || find_pair(args, &pair) != cudaSuccess) return reason;
    if (cudaDeviceCanAccessPeer(&forth, pair.here, pair.there) != cudaSuccess ||
        cudaDeviceCanAccessPeer(&back, pair.there, pair.here) != cudaSuccess)
        return nullptr;
    return forth && back ? nullptr : "no peer access between these GPUs";
}

/* ---- peer access, which is the devices' and not a row's ------------------------------ */

/* Rows that are prepared and need it, of each pair. */
int access_holders[MOST_DEVICES][MOST_DEVICES];

int &holders_of(const device_pair &pair) { return access_holders[pair.here][pair.there]; }

void disable_access(const device_pair &pair)
{
    (void)cudaDeviceDisablePeerAccess(pair.there);
    (void)do_there(pair, [&pair] { return cudaDeviceDisablePeerAccess(pair.here); });
}

/* Both ways, so that either device's copy engine may do the work. */
cudaError_t enable_access(const device_pair &pair)
{
    cudaError_t error = cudaDeviceEnablePeerAccess(pair.there, 0);
    if (error != cudaSuccess) return error;
    error = do_there(pair, [&pair] { return cudaDeviceEnablePeerAccess(pair.here, 0); });
    if (error != cudaSuccess) disable_access(pair);
    return error;
}

cudaError_t take_access(const device_pair &pair)
{
    cudaError_t error = holders_of(pair) == 0 ? enable_access(pair) : cudaSuccess;
    if (error == cudaSuccess) holders_of(pair)++;
    return error;
}

void drop_access(const device_pair &pair)
{
    if (--holders_of(pair) == 0) disable_access(pair);
}

/* ---- state ------------------------------------------------------------------------- */

struct peer_state {
    memcpy_peer output; /* first: the caller sees the state as this */
    device_pair devices;
    void *poison; /* bytes of 0xff, here */
    size_t bytes;
    bool has_access;
};

int copy_there(const peer_state &s, const void *src, kernel_stream stream)
{
    return cudaMemcpyPeerAsync(s.output.dst, s.devices.there, src, s.devices.here, s.bytes, stream);
}

/* By a copy, because a memset of the other device's memory may need access. */
int poison_output(const memcpy_peer *output, kernel_stream stream)
{
    const peer_state &s = *reinterpret_cast<const peer_state *>(output);
    return copy_there(s, s.poison, stream);
}

void release_peer(void *state)
{
    peer_state *s = static_cast<peer_state *>(state);
    if (s->output.dst)
        (void)do_there(s->devices, [s] { return cudaFree(s->output.dst); });
    if (s->poison) (void)cudaFree(s->poison);
    if (s->has_access) drop_access(s->devices);
    delete s;
}

/* Waits, because a memset may return before it is done, and the stream that copies
 * from the poison may be one that does not wait for the default stream. */
cudaError_t fill_state(peer_state *s, const void *args, bool with_access)
{
    cudaError_t error = find_pair(args, &s->devices);
    s->output.from = s->devices.here;
    s->output.to = s->devices.there;
    if (error == cudaSuccess && s->devices.there < 0) error = cudaErrorInvalidDevice;
    if (error == cudaSuccess && with_access) {
        error = take_access(s->devices);
        s->has_access = error == cudaSuccess;
    }
    if (error == cudaSuccess) error = cudaMalloc(&s->poison, s->bytes);
    if (error == cudaSuccess) error = cudaMemset(s->poison, 0xff, s->bytes);
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error == cudaSuccess)
        error = do_there(s->devices, [s] { return cudaMalloc(&s->output.dst, s->bytes); });
    return error;
}

template <bool WITH_ACCESS>
int prepare_peer(const void *args, void **state)
{
    peer_state *s = new (std::nothrow) peer_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    s->output.poison = poison_output;
    s->bytes = args_of(args).copy.bytes;
    cudaError_t error = fill_state(s, args, WITH_ACCESS);
    if (error == cudaSuccess)
        *state = s;
    else
        release_peer(s);
    return error;
}

/* ---- rows -------------------------------------------------------------------------- */

int run_peer(const void *args, void *, void *state, kernel_stream stream)
{
    return copy_there(*static_cast<const peer_state *>(state), args_of(args).copy.src, stream);
}

int run_peer_kernel(const void *args, void *, void *state, kernel_stream stream)
{
    memcpy_args a = args_of(args).copy;
    a.dst = static_cast<const peer_state *>(state)->output.dst;
    return memcpy_copy_by_kernel(&a, stream);
}

constexpr unsigned BYTES = KERNEL_DTYPE_BIT(KERNEL_DTYPE_COUNT) - 1;

/* The columns after note: dtypes, lowest compute capability, deterministic,
 * unsupported, workspace_bytes, prepare, release, run. */
const kernel_variant peer_rows[] = {
    {.name = "peer", .note = "cudaMemcpyPeerAsync with peer access", .dtypes = BYTES,
     .deterministic = 1, .unsupported = why_not_peer, .prepare = prepare_peer<true>,
     .release = release_peer, .run = run_peer},
    {.name = "peer_kernel", .note = "16-byte stores to the other device's memory", .dtypes = BYTES,
     .deterministic = 1, .unsupported = why_not_peer, .prepare = prepare_peer<true>,
     .release = release_peer, .run = run_peer_kernel},
};

const kernel_variant staged_rows[] = {
    {.name = "staged", .note = "cudaMemcpyPeerAsync without peer access, through the host",
     .dtypes = BYTES, .deterministic = 1, .unsupported = why_not_staged,
     .prepare = prepare_peer<false>, .release = release_peer, .run = run_peer},
};

} // namespace

extern "C" {
int memcpy_peer_devices(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

const kernel_table memcpy_peer_cuda = {peer_rows, sizeof peer_rows / sizeof *peer_rows};
const kernel_table memcpy_staged_cuda = {staged_rows, sizeof staged_rows / sizeof *staged_rows};
}
