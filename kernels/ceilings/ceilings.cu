/*
 * ceilings.cu - what a GPU can do at most.
 *
 * Read, write, copy and triad, each in five launch shapes, because none wins on
 * every card; the best of a card is its ceiling:
 *
 * 1. resident    as many blocks as the device runs at once; each thread walks
 *                the array in steps of the whole grid, four 16-byte vectors in
 *                flight.
 * 2. resident8   the same with eight.
 * 3. onepass     a block for every 16 KiB, so that blocks come and go; four
 *                vectors a thread. No loop, but a launch of many blocks.
 * 4. streaming   onepass with accesses marked as used once (ld.global.cs,
 *                st.global.cs), which leave the L2 cache first.
 * 5. single      a block for every 4 KiB; one vector a thread. The fastest to
 *                write, copy and combine on an H200 (1 GiB copied in 502 us, by
 *                onepass in 522) and by far the slowest to read, as each of so
 *                many blocks adds to the sum.
 *
 * Copy also as the runtime does it:
 *
 * 6. memcpy      cudaMemcpyAsync within the device (503 us there).
 *
 * Bound by device memory. To fill it, a multiprocessor must keep some 20 KiB in
 * flight (bandwidth times latency, over the multiprocessors); these ask for 128,
 * single for 32.
 *
 * The product, by the libraries (linear.cuh):
 *
 * 7. cublas      cublasGemmEx with its default algorithm.
 * 8. cublaslt    cuBLASLt, its fastest algorithm found by trial in prepare.
 *
 * Bound by the tensor cores (f32: the CUDA cores), and at 8192 by power.
 */
#include "ceilings.h"

#include <new>

#include "../common/ceil_div.cuh"
#include "../common/cublas.cuh"
#include "../common/device.cuh"
#include "../linear/linear.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int VECTORS_PER_SM = 8192; /* in flight, of 16 bytes: 128 KiB */
constexpr int VECTOR_WORDS = 4;

/* ---- accesses ---------------------------------------------------------------------- */

template <bool STREAMING, typename T>
__device__ __forceinline__ T load(const T *from)
{
    return STREAMING ? __ldcs(from) : *from;
}

template <bool STREAMING, typename T>
__device__ __forceinline__ void store(T *to, T value)
{
    if (STREAMING)
        __stcs(to, value);
    else
        *to = value;
}

/* ---- operations: what is loaded for vector i, what is done with it, the same for
 * a single word at the end, and what a block does when it is through ---------------- */

/* A sum over blocks without a second launch: each adds its own, and the last
 * to arrive delivers the total and leaves zeros for the next run. */
struct grid_sum {
    unsigned total, arrived;
};

/* Of a whole warp. */
__device__ __forceinline__ unsigned add_up_warp(unsigned value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffffu, value);
#else
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
#endif
}

template <bool STREAMING>
struct read_operation {
    using loaded = uint4;
    const uint32_t *b;
    grid_sum *all;
    uint32_t *result;
    unsigned sum;

    __device__ loaded load_vector(int64_t i) const
    {
        return load<STREAMING>(reinterpret_cast<const uint4 *>(b) + i);
    }
    __device__ void use_vector(int64_t, loaded in) { sum += in.x + in.y + in.z + in.w; }
    __device__ void do_word(int64_t i) { sum += b[i]; }

    __device__ void finish() const
    {
        __shared__ unsigned block_sum;
        if (threadIdx.x == 0) block_sum = 0;
        __syncthreads();
        unsigned warp_sum = add_up_warp(sum);
        if (threadIdx.x % 32 == 0) atomicAdd(&block_sum, warp_sum);
        __syncthreads();
        if (threadIdx.x != 0) return;
        atomicAdd(&all->total, block_sum);
        __threadfence(); /* the total is complete once every block has arrived */
        if (atomicAdd(&all->arrived, 1u) + 1 < gridDim.x) return;
        __threadfence(); /* and the total is read after the last arrival */
        *result = atomicExch(&all->total, 0u);
        all->arrived = 0;
    }
};

template <bool STREAMING>
struct write_operation {
    struct loaded {};
    uint32_t *a;
    uint32_t value;

    __device__ loaded load_vector(int64_t) const { return {}; }
    __device__ void use_vector(int64_t i, loaded) const
    {
        store<STREAMING>(reinterpret_cast<uint4 *>(a) + i, make_uint4(value, value, value, value));
    }
    __device__ void do_word(int64_t i) const { a[i] = value; }
    __device__ void finish() const {}
};

template <bool STREAMING>
struct copy_operation {
    using loaded = uint4;
    uint32_t *a;
    const uint32_t *b;

    __device__ loaded load_vector(int64_t i) const
    {
        return load<STREAMING>(reinterpret_cast<const uint4 *>(b) + i);
    }
    __device__ void use_vector(int64_t i, loaded in) const
    {
        store<STREAMING>(reinterpret_cast<uint4 *>(a) + i, in);
    }
    __device__ void do_word(int64_t i) const { a[i] = b[i]; }
    __device__ void finish() const {}
};

template <bool STREAMING>
struct triad_operation {
    struct loaded {
        float4 b, c;
    };
    float *a;
    const float *b, *c;
    float factor;

    __device__ loaded load_vector(int64_t i) const
    {
        return {load<STREAMING>(reinterpret_cast<const float4 *>(b) + i),
                load<STREAMING>(reinterpret_cast<const float4 *>(c) + i)};
    }
    __device__ float combine(float left, float right) const { return fmaf(factor, right, left); }
    __device__ void use_vector(int64_t i, loaded in) const
    {
        store<STREAMING>(reinterpret_cast<float4 *>(a) + i,
                         make_float4(combine(in.b.x, in.c.x), combine(in.b.y, in.c.y),
                                     combine(in.b.z, in.c.z), combine(in.b.w, in.c.w)));
    }
    __device__ void do_word(int64_t i) const { a[i] = combine(b[i], c[i]); }
    __device__ void finish() const {}
};

/* ---- launch shapes ------------------------------------------------------------------ */

/* Thread t of block k starts at vector k * block_span + t, takes IN_FLIGHT
 * vectors `step` apart, and goes on `advance` further. */
struct walk {
    int64_t vectors, block_span, step, advance;
    int tail_words; /* behind the last whole vector */
};

template <int IN_FLIGHT, typename Operation>
__global__ void __launch_bounds__(THREADS) bandwidth_kernel(Operation operation, walk w)
{
    int64_t i = blockIdx.x * w.block_span + threadIdx.x;
    for (; i + (IN_FLIGHT - 1) * w.step < w.vectors; i += w.advance) {
        typename Operation::loaded in[IN_FLIGHT];
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++) in[n] = operation.load_vector(i + n * w.step);
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; n++) operation.use_vector(i + n * w.step, in[n]);
    }
    for (int n = 0; n < IN_FLIGHT && i + n * w.step < w.vectors; n++)
        operation.use_vector(i + n * w.step, operation.load_vector(i + n * w.step));
    if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < w.tail_words)
        operation.do_word(w.vectors * VECTOR_WORDS + threadIdx.x);
    operation.finish();
}

/* Blocks of a resident grid: 2048 threads a multiprocessor with four vectors
 * each, half as many with eight, whose registers leave no room for more. */
int resident_blocks(int64_t in_flight, int64_t *blocks)
{
    int device, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    *blocks = multiprocessors * (VECTORS_PER_SM / (THREADS * in_flight));
    return error;
}

template <bool RESIDENT_GRID, int VECTORS_IN_FLIGHT, bool STREAMING_ACCESS>
struct launch_shape {
    static constexpr bool RESIDENT = RESIDENT_GRID, STREAMING = STREAMING_ACCESS;
    static constexpr int IN_FLIGHT = VECTORS_IN_FLIGHT;
};

using resident = launch_shape<true, 4, false>;
using resident8 = launch_shape<true, 8, false>;
using onepass = launch_shape<false, 4, false>;
using streaming = launch_shape<false, 4, true>;
using single = launch_shape<false, 1, false>;

template <typename Shape, typename Operation>
int launch(Operation operation, int64_t words, kernel_stream stream)
{
    constexpr int64_t SPAN = int64_t(THREADS) * Shape::IN_FLIGHT;
    int64_t vectors = words / VECTOR_WORDS;
    int64_t blocks = ceil_div(vectors, SPAN), most = INT32_MAX;
    int error = Shape::RESIDENT ? resident_blocks(Shape::IN_FLIGHT, &most) : KERNEL_OK;
    if (error) return error;
    if (blocks < 1) blocks = 1;
    if (blocks > most && !Shape::RESIDENT) return KERNEL_ERROR_ARGUMENT;
    if (blocks > most) blocks = most;
    walk w = {vectors, Shape::RESIDENT ? THREADS : SPAN,
              Shape::RESIDENT ? THREADS * blocks : THREADS, SPAN * blocks,
              static_cast<int>(words % VECTOR_WORDS)};
    bandwidth_kernel<Shape::IN_FLIGHT>
        <<<static_cast<unsigned>(blocks), THREADS, 0, stream>>>(operation, w);
    return cudaGetLastError();
}

template <typename Shape>
int run_read(const void *args, void *, void *state, kernel_stream stream)
{
    const ceilings_bandwidth_args &a = *static_cast<const ceilings_bandwidth_args *>(args);
    if (a.words < 1) return KERNEL_ERROR_ARGUMENT;
    read_operation<Shape::STREAMING> operation = {a.b, static_cast<grid_sum *>(state), a.sum, 0};
    return launch<Shape>(operation, a.words, stream);
}

template <typename Shape>
int run_write(const void *args, void *, void *, kernel_stream stream)
{
    const ceilings_bandwidth_args &a = *static_cast<const ceilings_bandwidth_args *>(args);
    if (a.words < 1) return KERNEL_ERROR_ARGUMENT;
    return launch<Shape>(write_operation<Shape::STREAMING>{a.a, a.value}, a.words, stream);
}

template <typename Shape>
int run_copy(const void *args, void *, void *, kernel_stream stream)
{
    const ceilings_bandwidth_args &a = *static_cast<const ceilings_bandwidth_args *>(args);
    if (a.words < 1) return KERNEL_ERROR_ARGUMENT;
    return launch<Shape>(copy_operation<Shape::STREAMING>{a.a, a.b}, a.words, stream);
}

int run_memcpy(const void *args, void *, void *, kernel_stream stream)
{
    const ceilings_bandwidth_args &a = *static_cast<const ceilings_bandwidth_args *>(args);
    if (a.words < 1) return KERNEL_ERROR_ARGUMENT;
    return cudaMemcpyAsync(a.a, a.b, static_cast<size_t>(a.words) * sizeof *a.a,
                           cudaMemcpyDeviceToDevice, stream);
}

template <typename Shape>
int run_triad(const void *args, void *, void *, kernel_stream stream)
{
    const ceilings_bandwidth_args &a = *static_cast<const ceilings_bandwidth_args *>(args);
    if (a.words < 1) return KERNEL_ERROR_ARGUMENT;
    triad_operation<Shape::STREAMING> operation = {
        reinterpret_cast<float *>(a.a), reinterpret_cast<const float *>(a.b),
        reinterpret_cast<const float *>(a.c), a.factor};
    return launch<Shape>(operation, a.words, stream);
}

/* The counters of read, zero between runs. Waits, because a memset may return before
 * it is done, and run's stream may be one that does not wait for the default stream. */
int prepare_sum(const void *, void **state)
{
    void *counters;
    cudaError_t error = cudaMalloc(&counters, sizeof(grid_sum));
    if (error != cudaSuccess) return error;
    error = cudaMemset(counters, 0, sizeof(grid_sum));
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error != cudaSuccess)
        cudaFree(counters);
    else
        *state = counters;
    return error;
}

void release_sum(void *state)
{
    cudaFree(state);
}

/* ---- product -------------------------------------------------------------------------- */

struct gemm_state {
    cublasHandle_t handle;
    linear_plan plan;
};

bool is_valid(const ceilings_gemm_args &a)
{
    return a.m > 0 && a.n > 0 && a.k > 0;
}

void release_gemm(void *state)
{
    gemm_state *s = static_cast<gemm_state *>(state);
    linear_plan_destroy(&s->plan);
    if (s->handle) cublasDestroy(s->handle);
    delete s;
}

/* c = a b is what a gradient of a layer's input is: of a [m, k] through the
 * weight b [k, n]. */
template <linear_way WAY>
int prepare_gemm(const void *args, void **state)
{
    const ceilings_gemm_args &a = *static_cast<const ceilings_gemm_args *>(args);
    if (!is_valid(a)) return KERNEL_ERROR_ARGUMENT;
    gemm_state *s = new (std::nothrow) gemm_state();
    if (!s) return KERNEL_ERROR_MEMORY;
    int error = cublas_error(cublasCreate(&s->handle));
    if (!error)
        error = linear_plan_create(s->handle,
                                   linear_input_gradient(a.dtype, a.m, a.n, a.k, LINEAR_PLAIN),
                                   WAY, &s->plan);
    if (error)
        release_gemm(s);
    else
        *state = s;
    return error;
}

size_t gemm_workspace_bytes(const void *args)
{
    const ceilings_gemm_args &a = *static_cast<const ceilings_gemm_args *>(args);
    return is_valid(a) ? linear_workspace_bytes(a.m > a.n ? a.m : a.n) : 0;
}

int run_gemm(const void *args, void *workspace, void *state, kernel_stream stream)
{
    const ceilings_gemm_args &a = *static_cast<const ceilings_gemm_args *>(args);
    const gemm_state &s = *static_cast<const gemm_state *>(state);
    if (!is_valid(a)) return KERNEL_ERROR_ARGUMENT;
    const linear_operands operands = {.a = a.b, .b = a.a, .d = a.c};
    return linear_run(s.handle, s.plan, operands, workspace, stream);
}

/* ---- tables ----------------------------------------------------------------------------- */

constexpr unsigned BYTES = KERNEL_DTYPE_BIT(KERNEL_U8), WORDS = KERNEL_DTYPE_BIT(KERNEL_F32);
constexpr unsigned PRODUCTS = WORDS | KERNEL_DTYPE_BIT(KERNEL_TF32) |
                              KERNEL_DTYPE_BIT(KERNEL_F16) | KERNEL_DTYPE_BIT(KERNEL_BF16);

using run_function = int(const void *, void *, void *, kernel_stream);

struct shape_name {
    const char *name, *note;
};

constexpr shape_name SHAPES[] = {
    {"resident", "a full device of blocks; 4 vectors of 16 bytes in flight a thread"},
    {"resident8", "a full device of blocks; 8 vectors of 16 bytes in flight a thread"},
    {"onepass", "a block for every 16 KiB; 4 vectors a thread"},
    {"streaming", "onepass with accesses marked as used once"},
    {"single", "a block for every 4 KiB; a vector a thread"},
};

constexpr kernel_variant row(int shape, unsigned dtypes, run_function *run)
{
    return {.name = SHAPES[shape].name, .note = SHAPES[shape].note, .dtypes = dtypes,
            .min_compute_capability = 75, .deterministic = 1, .run = run};
}

constexpr kernel_variant read_row(int shape, run_function *run)
{
    return {.name = SHAPES[shape].name, .note = SHAPES[shape].note, .dtypes = BYTES,
            .min_compute_capability = 75, .deterministic = 1, .prepare = prepare_sum,
            .release = release_sum, .run = run};
}

const kernel_variant read_rows[] = {
    read_row(0, run_read<resident>), read_row(1, run_read<resident8>),
    read_row(2, run_read<onepass>), read_row(3, run_read<streaming>),
    read_row(4, run_read<single>)};
const kernel_variant write_rows[] = {
    row(0, BYTES, run_write<resident>), row(1, BYTES, run_write<resident8>),
    row(2, BYTES, run_write<onepass>), row(3, BYTES, run_write<streaming>),
    row(4, BYTES, run_write<single>)};
const kernel_variant copy_rows[] = {
    row(0, BYTES, run_copy<resident>), row(1, BYTES, run_copy<resident8>),
    row(2, BYTES, run_copy<onepass>), row(3, BYTES, run_copy<streaming>),
    row(4, BYTES, run_copy<single>),
    {.name = "memcpy", .note = "cudaMemcpyAsync within the device", .dtypes = BYTES,
     .min_compute_capability = 75, .deterministic = 1, .run = run_memcpy}};
const kernel_variant triad_rows[] = {
    row(0, WORDS, run_triad<resident>), row(1, WORDS, run_triad<resident8>),
    row(2, WORDS, run_triad<onepass>), row(3, WORDS, run_triad<streaming>),
    row(4, WORDS, run_triad<single>)};

const kernel_variant gemm_rows[] = {
    {"cublas", "cublasGemmEx, default algorithm", PRODUCTS, 75, 1,
     device_products_unsupported<ceilings_gemm_args>, gemm_workspace_bytes,
     prepare_gemm<LINEAR_SEPARATE>, release_gemm, run_gemm},
    {"cublaslt", "cuBLASLt, fastest algorithm by trial", PRODUCTS, 75, 0,
     device_products_unsupported<ceilings_gemm_args>, gemm_workspace_bytes,
     prepare_gemm<LINEAR_TIMED>, release_gemm, run_gemm},
};

} // namespace

extern "C" {
const kernel_table ceilings_read_cuda = {read_rows, sizeof read_rows / sizeof *read_rows};
const kernel_table ceilings_write_cuda = {write_rows, sizeof write_rows / sizeof *write_rows};
const kernel_table ceilings_copy_cuda = {copy_rows, sizeof copy_rows / sizeof *copy_rows};
const kernel_table ceilings_triad_cuda = {triad_rows, sizeof triad_rows / sizeof *triad_rows};
const kernel_table ceilings_gemm_cuda = {gemm_rows, sizeof gemm_rows / sizeof *gemm_rows};
}
