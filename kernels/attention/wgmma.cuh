/*
 * wgmma.cuh - what the attention kernels of sm_90a share: tiles in
 * shared memory, as the copy engine writes them and warpgroups multiply them,
 * and in which order blocks take their work.
 *
 * A tile has D 16-bit columns, kept as halves behind each other: all rows of 64
 * columns, 128 bytes each, in the 128-byte swizzle (the 16-byte chunk's index is
 * xored with the row's). D columns of e4m3 are one half. Tiles lie at multiples of
 * ALIGNMENT.
 */
#ifndef ATTENTION_WGMMA_CUH
#define ATTENTION_WGMMA_CUH

#include "attention.cuh"
#include "../common/ptx.cuh"
#include "../common/tensor_map.cuh"

constexpr int GROUP_THREADS = 128; /* a warpgroup */
constexpr int GROUP_ROWS = 64;     /* of wgmma */
constexpr int STAGES = 2;
constexpr int HALF_BYTES = 128; /* a row of 64 elements of 16 bits: what one swizzled box holds */
constexpr int STEP_BYTES = 32; /* of an operand's row: the depth of one wgmma */
constexpr int ALIGNMENT = 1024;

/* The last half may be partly empty, and is loaded as zeros there. */
template <int D, int ELEMENT_BYTES = 2>
constexpr int halves_of = (D * ELEMENT_BYTES + HALF_BYTES - 1) / HALF_BYTES;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define BUILT_FOR_WGMMA 1
#else
#define BUILT_FOR_WGMMA 0
#pragma nv_diag_suppress 177 /* kernels have no bodies: what only they use is never referenced */
#endif

/* ---- rings of tiles ---------------------------------------------------------------- */

/* Which stage of a ring is next, and the parity of its barriers. */
struct ring {
    unsigned stage, parity;
    __device__ __forceinline__ void advance()
    {
        stage ^= 1;
        parity ^= stage ^ 1;
    }
    /* To where it was before it advanced. */
    __device__ __forceinline__ void retreat()
    {
        parity ^= stage ^ 1;
        stage ^= 1;
    }
};
static_assert(STAGES == 2, "ring::advance");

/* Which consumer this warpgroup is; the first is the loader. Taken from lane 0, so
 * that the compiler knows it to be one for all lanes and computes descriptors in
 * uniform registers. */
__device__ __forceinline__ int consumer_group()
{
    return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / GROUP_THREADS) - 1, 0);
}

/* One arrival a warp. */
__device__ __forceinline__ void release(uint64_t &empty)
{
    if (threadIdx.x % 32 == 0) ptx_barrier_arrive(ptx_shared_address(&empty));
}

/* ROWS rows of a head from `row` on, by a map of boxes of ROWS rows. */
template <int ROWS, int D, int ELEMENT_BYTES = 2>
__device__ __forceinline__ void load_tile(const CUtensorMap &map, char *tile, uint64_t &full,
                                          int row, int head, int batch)
{
    uint32_t barrier = ptx_shared_address(&full);
    constexpr int HALVES = halves_of<D, ELEMENT_BYTES>;
    ptx_barrier_arrive_expect(barrier, HALVES * ROWS * HALF_BYTES);
    for (int half = 0; half < HALVES; half++)
        ptx_load_box(ptx_shared_address(tile) + half * (ROWS * HALF_BYTES), &map, barrier,
                     half * 64, row, head, batch);
}

/* ---- products ---------------------------------------------------------------------- */

/* An operand in shared memory: the descriptors of its steps come from the first one's by
 * an addition, or each FROM_ADDRESS, see where that is asked for. */
template <bool FROM_ADDRESS>
struct shared_operand {
    uint32_t address, block_bytes;
    uint64_t first = ptx_wgmma_descriptor(address, block_bytes);

    __device__ __forceinline__ uint64_t behind(uint32_t bytes) const
    {
        return FROM_ADDRESS ? ptx_wgmma_descriptor(address + bytes, block_bytes)
                            : ptx_wgmma_descriptor_behind(first, bytes);
    }
};

/* sums = a b^T, of 64 rows at a, of a tile of A_ROWS rows, and all B_ROWS rows of
 * the tile b: a group of wgmma of its own, fenced from what wrote its registers. */
template <typename T, int D, int A_ROWS, int B_ROWS, bool FROM_ADDRESS = false>
__device__ __forceinline__ void issue_product_of_rows(uint32_t a, uint32_t b,
                                                      float (&sums)[B_ROWS / 2])
{
    shared_operand<FROM_ADDRESS> a_rows = {a, 16}, b_rows = {b, 16};
    ptx_wgmma_fence();
#pragma unroll
    for (int byte = 0; byte < D * static_cast<int>(sizeof(T)); byte += STEP_BYTES) {
        uint32_t half = byte / HALF_BYTES, inside = byte % HALF_BYTES;
        ptx_wgmma_shared(sums, a_rows.behind(half * (A_ROWS * HALF_BYTES) + inside),
                         b_rows.behind(half * (B_ROWS * HALF_BYTES) + inside), byte > 0, T());
    }
    ptx_wgmma_commit();
}

/* sums += a b, of the ROWS rows from b on of a tile of TILE_ROWS: a group of wgmma of
 * its own, fenced from what wrote its registers. */
template <typename T, int D, int ROWS, int TILE_ROWS = ROWS, bool FROM_ADDRESS = false>
__device__ __forceinline__ void issue_product(const uint32_t (&a)[ROWS / 16][4], uint32_t b,
                                              float (&sums)[D / 2])
{
    shared_operand<FROM_ADDRESS> rows = {b, TILE_ROWS * HALF_BYTES};
    ptx_wgmma_fence();
#pragma unroll
    for (int step = 0; step < ROWS / 16; step++)
        ptx_wgmma_registers(sums, a[step], rows.behind(step * (16 * HALF_BYTES)), 1, T());
    ptx_wgmma_commit();
}

/* Two accumulators of 8 columns are the A operand of a step of 16. */
template <typename T, int COUNT>
__device__ __forceinline__ void round_sums(const float (&sums)[COUNT],
                                           uint32_t (&rounded)[COUNT / 8][4])
{
#pragma unroll
    for (int step = 0; step < COUNT / 8; step++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            rounded[step][i] = ptx_pack(sums[step * 8 + i * 2], sums[step * 8 + i * 2 + 1], T());
}

/* ---- the order of work ------------------------------------------------------------- */

struct head_block {
    unsigned head, block;
};

/* Every head has `blocks` blocks. They are taken section by section of heads, and
 * within it block by block, so that what a section's heads read over and over
 * stays in the L2 cache while all multiprocessors work on them. */
__host__ __device__ __forceinline__ head_block head_block_of(unsigned index, unsigned all_heads,
                                                             unsigned section_heads,
                                                             unsigned blocks)
{
    unsigned section = index / (section_heads * blocks);
    unsigned inner = index - section * (section_heads * blocks);
    unsigned first_head = section * section_heads;
    unsigned heads = all_heads - first_head;
    if (heads > section_heads) heads = section_heads;
    unsigned block = inner / heads;
    return {first_head + inner - block * heads, block};
}

/* As many heads as fit 7/10 of the L2 cache. */
inline unsigned section_heads_of(int64_t heads, int64_t head_bytes, int l2_bytes)
{
    int64_t fitting = int64_t(l2_bytes) * 7 / 10 / head_bytes;
    return static_cast<unsigned>(fitting < 1 ? 1 : fitting > heads ? heads : fitting);
}

/* ---- maps -------------------------------------------------------------------------- */

inline tensor_4d tensor_of(const void *data, const attention_shape &s, attention_strides strides)
{
    attention_strides full = attention_strides_of(&s, strides);
    auto size = [](int64_t elements) { return static_cast<cuuint64_t>(elements); };
    return {data,
            {size(s.head_dim), size(s.tokens), size(s.heads), size(s.batch)},
            {full.token, full.head, full.batch}};
}

/* A map to be made: of which tensor, and how many rows its boxes have. */
struct map_request {
    CUtensorMap *map;
    const void *data;
    attention_strides strides;
    unsigned rows;
};

inline int encode_maps(const attention_shape &s, kernel_dtype dtype,
                       std::initializer_list<map_request> requests)
{
    for (const map_request &r : requests) {
        int code = tensor_map_encode(r.map, tensor_of(r.data, s, r.strides), dtype, r.rows);
        if (code != KERNEL_OK) return code;
    }
    return KERNEL_OK;
}

/* ---- the device -------------------------------------------------------------------- */

struct device_limits {
    int multiprocessors, l2_bytes;
};

inline cudaError_t current_device(device_limits *limits)
{
    int device;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&limits->multiprocessors, cudaDevAttrMultiProcessorCount,
                                       device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&limits->l2_bytes, cudaDevAttrL2CacheSize, device);
    return error;
}

#endif
