/*
 * memcpy.cu - copies and sets of device memory.
 *
 * 1. pinned      h2d, d2h: cudaMemcpyAsync with page-locked host memory: the copy
 *                engine reads it directly. Bound by the link.
 * 2. pageable    h2d, d2h: the same call with malloc's memory: the driver copies
 *                through its own pinned buffers. Bound by that copy.
 * 3. registered  h2d, d2h: the same call with malloc's memory that was page-locked
 *                afterwards (cudaHostRegister): what pinned reaches, for memory
 *                that somebody else allocated.
 * 4. kernel      h2d, d2h: a kernel that reads or writes page-locked host memory
 *                itself, 16 bytes an access. No copy engine has to be started,
 *                and multiprocessors are busy instead. Bound by the link.
 * 5. memcpy      d2d: cudaMemcpyAsync. Bound by device memory, read and written.
 * 6. vectorized  d2d: a kernel with 16 bytes a load and four loads in flight a
 *                thread: how much of the bandwidth plain code reaches.
 * 7. single      d2d: one 16-byte load a thread, as many blocks as that takes, which
 *                come and go. Of 1 GiB on an H200 507 us, cudaMemcpyAsync 504,
 *                vectorized 545.
 * 8. memset      cudaMemsetAsync. Bound by device memory, written.
 * 9. vectorized  set: 16 bytes a store.
 */
#include "memcpy.cuh"

#include <cuda_runtime.h>

namespace {

constexpr int THREADS = 256;
constexpr int IN_FLIGHT = 4;     /* loads a thread issues before it waits */
constexpr int BLOCKS_PER_SM = 8; /* 2048 threads: a full multiprocessor */

/* A range of bytes as words of one size: bytes before the first aligned word,
 * the words, and bytes after the last. */
struct split {
    size_t head, words, tail;
};

split split_range(uintptr_t address, size_t bytes, size_t word_bytes)
{
    size_t to_boundary = (word_bytes - address % word_bytes) % word_bytes;
    size_t head = to_boundary < bytes ? to_boundary : bytes;
    size_t words = (bytes - head) / word_bytes;
    return {head, words, bytes - head - words * word_bytes};
}

__device__ int64_t thread_index()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

__device__ int64_t thread_count()
{
    return static_cast<int64_t>(gridDim.x) * THREADS;
}

/* Grid-stride over the words, LOADS of them before the first is stored; the first
 * threads copy the odd bytes. The head and the tail are shorter than a word, so the
 * smallest grid covers them. */
template <typename Word, int LOADS>
__global__ void __launch_bounds__(THREADS) copy_kernel(char *dst, const char *src, split s)
{
    int64_t i = thread_index(), stride = thread_count(), words = s.words;
    Word *to = reinterpret_cast<Word *>(dst + s.head);
    const Word *from = reinterpret_cast<const Word *>(src + s.head);
    if (i < static_cast<int64_t>(s.head)) dst[i] = src[i];
    size_t tail = s.head + s.words * sizeof(Word);
    if (i < static_cast<int64_t>(s.tail)) dst[tail + i] = src[tail + i];
    for (; i + (LOADS - 1) * stride < words; i += LOADS * stride) {
        Word word[LOADS];
#pragma unroll
        for (int n = 0; n < LOADS; n++) word[n] = from[i + n * stride];
#pragma unroll
        for (int n = 0; n < LOADS; n++) to[i + n * stride] = word[n];
    }
    for (; i < words; i += stride) to[i] = from[i];
}

__global__ void __launch_bounds__(THREADS) set_kernel(char *dst, unsigned pattern, split s)
{
    int64_t i = thread_index(), stride = thread_count(), words = s.words;
    uint4 word = make_uint4(pattern, pattern, pattern, pattern);
    uint4 *to = reinterpret_cast<uint4 *>(dst + s.head);
    if (i < static_cast<int64_t>(s.head)) dst[i] = static_cast<char>(pattern);
    size_t tail = s.head + s.words * sizeof(uint4);
    if (i < static_cast<int64_t>(s.tail)) dst[tail + i] = static_cast<char>(pattern);
    for (; i < words; i += stride) to[i] = word;
}

/* Blocks for so many words: no more than the device runs at once. */
int choose_blocks(size_t words, size_t words_per_thread, unsigned *blocks)
{
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    size_t per_block = THREADS * words_per_thread, most = size_t(multiprocessors) * BLOCKS_PER_SM;
    size_t needed = words / per_block + 1;
    *blocks = static_cast<unsigned>(needed < most ? needed : most);
    return KERNEL_OK;
}

/* Blocks that stay, with IN_FLIGHT loads a thread. */
struct resident {
    static constexpr int LOADS = IN_FLIGHT;
    static int blocks(size_t words, unsigned *count)
    {
        return choose_blocks(words, LOADS, count);
    }
};

/* A thread for every word. */
struct single {
    static constexpr int LOADS = 1;
    static int blocks(size_t words, unsigned *count)
    {
        size_t needed = words / THREADS + 1;
        *count = static_cast<unsigned>(needed);
        return needed <= INT32_MAX ? KERNEL_OK : KERNEL_ERROR_ARGUMENT;
    }
};

template <typename Grid, typename Word>
int launch_copy(const memcpy_args &a, kernel_stream stream)
{
    split s = split_range(reinterpret_cast<uintptr_t>(a.dst), a.bytes, sizeof(Word));
    unsigned blocks;
    int error = Grid::blocks(s.words, &blocks);
    if (error) return error;
    copy_kernel<Word, Grid::LOADS><<<blocks, THREADS, 0, stream>>>(
        static_cast<char *>(a.dst), static_cast<const char *>(a.src), s);
    return cudaGetLastError();
}

/* By the widest word that both addresses reach the boundary of together. */
template <typename Grid>
int copy_by_kernel(const memcpy_args &a, kernel_stream stream)
{
    if (a.bytes == 0) return KERNEL_OK;
    uintptr_t apart = reinterpret_cast<uintptr_t>(a.dst) ^ reinterpret_cast<uintptr_t>(a.src);
    if (apart % sizeof(uint4) == 0) return launch_copy<Grid, uint4>(a, stream);
    if (apart % sizeof(unsigned) == 0) return launch_copy<Grid, unsigned>(a, stream);
    return launch_copy<Grid, char>(a, stream);
}

int run_copy_by_kernel(const void *args, void *, void *, kernel_stream stream)
{
    return memcpy_copy_by_kernel(static_cast<const memcpy_args *>(args), stream);
}

int run_single(const void *args, void *, void *, kernel_stream stream)
{
    return copy_by_kernel<single>(*static_cast<const memcpy_args *>(args), stream);
}

int run_vectorized_set(const void *args, void *, void *, kernel_stream stream)
{
    const memcpy_args &a = *static_cast<const memcpy_args *>(args);
    if (a.bytes == 0) return KERNEL_OK;
    split s = split_range(reinterpret_cast<uintptr_t>(a.dst), a.bytes, sizeof(uint4));
    unsigned blocks, pattern = static_cast<unsigned char>(a.value) * 0x01010101u;
    int error = choose_blocks(s.words, 1, &blocks);
    if (error) return error;
    set_kernel<<<blocks, THREADS, 0, stream>>>(static_cast<char *>(a.dst), pattern, s);
    return cudaGetLastError();
}

template <cudaMemcpyKind KIND>
int run_memcpy(const void *args, void *, void *, kernel_stream stream)
{
    const memcpy_args &a = *static_cast<const memcpy_args *>(args);
    return cudaMemcpyAsync(a.dst, a.src, a.bytes, KIND, stream);
}

int run_memset(const void *args, void *, void *, kernel_stream stream)
{
    const memcpy_args &a = *static_cast<const memcpy_args *>(args);
    return cudaMemsetAsync(a.dst, a.value, a.bytes, stream);
}

/* ---- registered host memory: the source of h2d, the destination of d2h */

const char *why_not_registered(const void *)
{
    int device, supported = 1;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&supported, cudaDevAttrHostRegisterSupported, device) != cudaSuccess)
        return nullptr; /* prepare meets the same error, and reports it */
    return supported ? nullptr : "cudaHostRegister is not supported here";
}

int register_host(void *memory, size_t bytes, void **state)
{
    cudaError_t error =
        cudaHostRegister(memory, memcpy_registered_bytes(bytes), cudaHostRegisterDefault);
    if (error == cudaSuccess) *state = memory;
    return error;
}

int prepare_registered_h2d(const void *args, void **state)
{
    const memcpy_args &a = *static_cast<const memcpy_args *>(args);
    return register_host(const_cast<void *>(a.src), a.bytes, state);
}

int prepare_registered_d2h(const void *args, void **state)
{
    const memcpy_args &a = *static_cast<const memcpy_args *>(args);
    return register_host(a.dst, a.bytes, state);
}

void release_registered(void *state)
{
    (void)cudaHostUnregister(state);
}

/* ---- tables */

using run_function = int(const void *, void *, void *, kernel_stream);

constexpr unsigned BYTES = KERNEL_DTYPE_BIT(KERNEL_DTYPE_COUNT) - 1;

/* A row that takes any bytes and has neither workspace nor state. */
constexpr kernel_variant row(const char *name, const char *note, run_function *run)
{
    return {.name = name, .note = note, .dtypes = BYTES, .deterministic = 1, .run = run};
}

using prepare_function = int(const void *, void **);

constexpr kernel_variant registered_row(prepare_function *prepare, run_function *run)
{
    return {.name = "registered",
            .note = "cudaMemcpyAsync, malloc's host memory after cudaHostRegister", .dtypes = BYTES,
            .deterministic = 1, .unsupported = why_not_registered, .prepare = prepare,
            .release = release_registered, .run = run};
}

constexpr const char PINNED[] = "cudaMemcpyAsync, page-locked host memory";
constexpr const char PAGEABLE[] = "cudaMemcpyAsync, malloc's host memory";
constexpr const char BY_KERNEL[] = "16-byte accesses to page-locked host memory";
constexpr size_t BASIC_ROWS = 2; /* of the tables below, from the first on */

const kernel_variant h2d_rows[] = {
    row("pinned", PINNED, run_memcpy<cudaMemcpyHostToDevice>),
    row("pageable", PAGEABLE, run_memcpy<cudaMemcpyHostToDevice>),
    registered_row(prepare_registered_h2d, run_memcpy<cudaMemcpyHostToDevice>),
    row("kernel", BY_KERNEL, run_copy_by_kernel),
};

const kernel_variant d2h_rows[] = {
    row("pinned", PINNED, run_memcpy<cudaMemcpyDeviceToHost>),
    row("pageable", PAGEABLE, run_memcpy<cudaMemcpyDeviceToHost>),
    registered_row(prepare_registered_d2h, run_memcpy<cudaMemcpyDeviceToHost>),
    row("kernel", BY_KERNEL, run_copy_by_kernel),
};

const kernel_variant d2d_rows[] = {
    row("memcpy", "cudaMemcpyAsync", run_memcpy<cudaMemcpyDeviceToDevice>),
    row("vectorized", "16-byte loads, four in flight a thread", run_copy_by_kernel),
    row("single", "a thread for every 16 bytes", run_single),
};

const kernel_variant memset_rows[] = {
    row("memset", "cudaMemsetAsync", run_memset),
    row("vectorized", "16-byte stores", run_vectorized_set),
};

} // namespace

int memcpy_copy_by_kernel(const memcpy_args *args, kernel_stream stream)
{
    return copy_by_kernel<resident>(*args, stream);
}

extern "C" {
const kernel_table memcpy_h2d_cuda = {h2d_rows, sizeof h2d_rows / sizeof *h2d_rows};
const kernel_table memcpy_h2d_basic_cuda = {h2d_rows, BASIC_ROWS};
const kernel_table memcpy_d2h_cuda = {d2h_rows, sizeof d2h_rows / sizeof *d2h_rows};
const kernel_table memcpy_d2h_basic_cuda = {d2h_rows, BASIC_ROWS};
const kernel_table memcpy_d2d_cuda = {d2d_rows, sizeof d2d_rows / sizeof *d2d_rows};
const kernel_table memcpy_memset_cuda = {memset_rows, sizeof memset_rows / sizeof *memset_rows};
}
