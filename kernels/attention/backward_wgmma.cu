/*
 * backward_wgmma.cu - attention backward by the warpgroup products of
 * sm_90a.
 *
 * 1. wgmma  The kernels before and after it are mma_atomic's
 *           (attention_backward.cuh). The one between gives a block 128 keys of
 *           a head, whose K and V stay in shared memory, and walks over tiles of
 *           queries, organized as in Shah et al., "FlashAttention-3: fast and
 *           accurate attention with asynchrony and low-precision", 2024. One
 *           warp keeps the copy engine filling two stages of Q and dout; two
 *           warpgroups of 64 keys each compute the scores transposed, so that
 *           probabilities and gradients are operands of dv's and dk's products
 *           where they are, in registers. Only the gradients pass through shared
 *           memory, once, for dq, whose product needs the keys of both groups:
 *           each takes half of it and adds it to the f32 sums in memory.
 *
 * Teaches: which of five products can take an operand from registers is decided
 * by the transposition of the first; a chain of dependent steps keeps the tensor
 * cores fed if each elementwise step waits for one product while another runs:
 * the exponentials during dout's product, the gradients during dv's, the adding
 * of dq during the next tile's scores.
 *
 * Blocks stay on their multiprocessor and take blocks of keys until none is left; K and
 * V are doubled, so that the next ones come, and dk and dv leave, during other work.
 *
 * What was predicted of changes, and what came of them on an H200 (medians of three
 * processes each, in turn, at the same clocks):
 * - Descriptors advanced by an addition: 526 instructions of the main loop to 391. They
 *   are 403, and the time is the same within 0.7 %: the loop is not bound by issuing.
 * - Blocks that stay: 17 % at 1024 tokens. It is 4.9 % (d=128, full), 6.8 % (causal) and
 *   5.1 % (d=64, causal); at 128 tokens, where each block has one block of keys, taking it
 *   costs 5 %.
 * - Logarithms and deltas apart, half the shared memory read for them: 3 to 6 %. It is
 *   0.3 %. All three together bring 1.7 % at 8192 tokens, causal.
 *
 * Bound by the tensor cores, and nearly as much by the shared memory that feeds
 * them: three of the five products read both operands from it in tiles of 64 by
 * 64, 4 KiB for the 32 cycles of a step.
 */
#include <algorithm>

#include "backward.cuh"
#include "wgmma.cuh"

namespace {

constexpr int GROUPS = 2; /* of consumers */
constexpr int KEYS = GROUPS * GROUP_ROWS;
constexpr int THREADS = (GROUPS + 1) * GROUP_THREADS;
constexpr int LOADER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

/* How many queries a tile has: what registers hold beside dk and dv. A tile of 128
 * has one half, so that its rows from 64 on are a tile of their own. */
template <int D>
constexpr int queries = D == 64 ? 128 : 64;

template <int D>
struct shared_memory {
    static constexpr int QUERIES = queries<D>;
    static constexpr int ROW_BYTES = halves_of<D> * HALF_BYTES;
    char k[STAGES][KEYS * ROW_BYTES], v[STAGES][KEYS * ROW_BYTES]; /* in the end dk and dv */
    char q[STAGES][QUERIES * ROW_BYTES], dout[STAGES][QUERIES * ROW_BYTES];
    char gradients[STAGES][KEYS * QUERIES * 2]; /* of the scores: a row per key */
    float rows[STAGES][QUERIES * 2];            /* of 64: -lse log2(e), then delta */
    unsigned block[STAGES];                     /* whose keys these are */
    uint64_t k_full[STAGES], v_full[STAGES], sums_full[STAGES];
    uint64_t q_full[STAGES], q_empty[STAGES], dout_full[STAGES], dout_empty[STAGES];
};

struct arguments : backward_arguments {
    int heads;
    unsigned all_heads, section_heads; /* batch * heads; of them in a section */
    unsigned key_blocks;               /* per head */
    unsigned multiprocessors;
};

struct maps {
    CUtensorMap q, k, v, dout, dk, dv;
};

/* A block's keys, and the queries that see them: from first_query, in tiles. */
struct position {
    int head, batch;
    unsigned index; /* of the head, in the whole batch */
    int first_key, keys_left;
    int first_query, tiles, masked_tiles;
};

/* Causal blocks come the longest first as they are. */
template <int D, bool CAUSAL>
__device__ __forceinline__ position locate(const arguments &a, unsigned block)
{
    head_block place = head_block_of(block, a.all_heads, a.section_heads, a.key_blocks);
    int tokens = static_cast<int>(a.tokens);
    position at;
    at.index = place.head;
    at.batch = static_cast<int>(at.index) / a.heads;
    at.head = static_cast<int>(at.index) - at.batch * a.heads;
    at.first_key = static_cast<int>(place.block) * KEYS;
    at.keys_left = tokens - at.first_key;
    at.first_query = CAUSAL ? at.first_key : 0;
    at.tiles = (tokens - at.first_query + queries<D> - 1) / queries<D>;
    at.masked_tiles = CAUSAL ? KEYS / queries<D> : at.keys_left < KEYS ? at.tiles : 0;
    return at;
}

/* ---- the loading warp ------------------------------------------------------------ */

template <int D>
__device__ __forceinline__ void load_rows(const arguments &a, float *rows, uint64_t &full,
                                          const position &at, int first_query)
{
    constexpr uint32_t BYTES = queries<D> * 2 * sizeof(float);
    uint32_t barrier = ptx_shared_address(&full);
    ptx_barrier_arrive_expect(barrier, BYTES);
    ptx_load_bulk(ptx_shared_address(rows), a.rows + at.index * a.padded_tokens + first_query,
                  BYTES, barrier);
}

/* The one thread that starts all copies. Blocks of keys are taken one after the
 * other until none is left, each when the loads of the one before have been started:
 * the next K and V come while the present ones are at work, and dk and dv leave
 * while the first tiles of the next block are. */
template <int D, bool CAUSAL>
struct loader {
    static constexpr int QUERIES = queries<D>;
    const arguments &a;
    const maps &m;
    shared_memory<D> &s;
    ring queries_next, keys_next;

    __device__ __forceinline__ void load_queries(const position &at, int tile)
    {
        int first_query = at.first_query + tile * QUERIES;
        unsigned stage = queries_next.stage;
        ptx_barrier_wait(ptx_shared_address(&s.q_empty[stage]), queries_next.parity);
        load_tile<QUERIES, D>(m.q, s.q[stage], s.q_full[stage], first_query, at.head, at.batch);
        load_rows<D>(a, s.rows[stage], s.q_full[stage], at, first_query);
        if (tile == 0)
            load_tile<KEYS, D>(m.v, s.v[keys_next.stage], s.v_full[keys_next.stage], at.first_key,
                               at.head, at.batch);
        ptx_barrier_wait(ptx_shared_address(&s.dout_empty[stage]), queries_next.parity);
        load_tile<QUERIES, D>(m.dout, s.dout[stage], s.dout_full[stage], first_query, at.head,
                              at.batch);
        queries_next.advance();
    }

    /* dk and dv of the block whose keys were in the ring's stage `of`. */
    __device__ __forceinline__ void store_sums(ring of, const position &at)
    {
        ptx_barrier_wait(ptx_shared_address(&s.sums_full[of.stage]), of.parity);
#pragma unroll 1 /* the loader has few registers */
        for (int group = 0; group < GROUPS; group++)
            for (int half = 0; half < halves_of<D>; half++) {
                int offset = half * (KEYS * HALF_BYTES) + group * (GROUP_ROWS * HALF_BYTES);
                int row = at.first_key + group * GROUP_ROWS;
                ptx_store_box(&m.dk, ptx_shared_address(s.k[of.stage]) + offset, half * 64, row,
                              at.head, at.batch);
                ptx_store_box(&m.dv, ptx_shared_address(s.v[of.stage]) + offset, half * 64, row,
                              at.head, at.batch);
            }
    }

    /* The consumers see the block's index when they have waited for its K. */
    __device__ __forceinline__ unsigned take_block()
    {
        unsigned block = atomicAdd(a.taken, 1);
        s.block[keys_next.stage] = block;
        return block;
    }

    __device__ __forceinline__ void run()
    {
        position before;
        bool is_first = true;
        unsigned block;
        while ((block = take_block()) < a.all_heads * a.key_blocks) {
            position at = locate<D, CAUSAL>(a, block);
            ring last = keys_next;
            last.retreat();
            ptx_store_box_wait_read(); /* of the block before the last, from this stage */
            load_tile<KEYS, D>(m.k, s.k[keys_next.stage], s.k_full[keys_next.stage], at.first_key,
                               at.head, at.batch);
#pragma unroll 1
            for (int tile = 0; tile < at.tiles; tile++) {
                load_queries(at, tile);
                if (!is_first && tile == min(STAGES, at.tiles) - 1) store_sums(last, before);
            }
            before = at;
            is_first = false;
            keys_next.advance();
        }
        ptx_barrier_arrive(ptx_shared_address(&s.k_full[keys_next.stage]));
        keys_next.retreat();
        if (!is_first) store_sums(keys_next, before);
        ptx_store_box_wait_read();
    }
};

/* ---- the consumers ----------------------------------------------------------------- */

constexpr int PAIR_BARRIER = 1; /* the named barrier of both groups */

__device__ __forceinline__ void wait_for_both_groups()
{
    ptx_named_barrier_sync(PAIR_BARRIER, GROUPS * GROUP_THREADS);
}

__device__ __forceinline__ int warp_of_group()
{
    return threadIdx.x % GROUP_THREADS / 32;
}

/* Hides the queries of a tile from keys at or beyond keys_left and, if causal,
 * those before the key. key: of the thread's lower row; diagonal: the tile's
 * first query less the block's first key. */
template <bool CAUSAL, int COUNT>
__device__ __forceinline__ void mask_scores(float (&scores)[COUNT], int key, int keys_left,
                                            int diagonal)
{
    constexpr int ALL = COUNT * 2;
    int query = diagonal + threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++, key += 8) {
        int hidden = key >= keys_left ? ALL : CAUSAL ? key - query : 0;
#pragma unroll
        for (int n = 0; n < COUNT / 4; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (n * 8 + i < hidden) scores[n * 4 + half * 2 + i] = -INFINITY;
    }
}

/* The thread's two of every 8 columns' first numbers, or second ones, ROWS_APART on. */
__device__ __forceinline__ float2 numbers_of(const float *rows, int column)
{
    int inside = column % ROWS_APART + threadIdx.x % 4 * 2;
    return *reinterpret_cast<const float2 *>(rows + column / ROWS_APART * (ROWS_APART * 2) +
                                             inside);
}

/* Scores become probabilities. */
template <int COUNT>
__device__ __forceinline__ void exponentiate(float (&scores)[COUNT], const float *rows,
                                             float log2_scale)
{
#pragma unroll
    for (int n = 0; n < COUNT / 4; n++) {
        float2 pair = numbers_of(rows, n * 8);
#pragma unroll
        for (int i = 0; i < 4; i++)
            scores[n * 4 + i] =
                ptx_exp2(fmaf(scores[n * 4 + i], log2_scale, i % 2 ? pair.y : pair.x));
    }
}

/* dp = v dout^T becomes the gradients of the scores. */
template <int COUNT>
__device__ __forceinline__ void differentiate(const float (&probabilities)[COUNT],
                                              float (&dp)[COUNT], const float *rows)
{
#pragma unroll
    for (int n = 0; n < COUNT / 4; n++) {
        float2 pair = numbers_of(rows + ROWS_APART, n * 8);
#pragma unroll
        for (int i = 0; i < 4; i++)
            dp[n * 4 + i] =
                probabilities[n * 4 + i] * (dp[n * 4 + i] - (i % 2 ? pair.y : pair.x));
    }
}

/* The group's 64 rows of a tile of KEYS rows, STEPS * 16 columns wide, from
 * rounded sums: the four matrices of a step are its two chunks of 16 bytes in
 * the warp's first 8 and last 8 rows. */
template <int STEPS>
__device__ __forceinline__ void store_rows(char *tile, int group,
                                           const uint32_t (&rounded)[STEPS][4])
{
    int lane = threadIdx.x % 32, row = group * GROUP_ROWS + warp_of_group() * 16 + lane % 16;
    uint32_t target = ptx_shared_address(tile) + row * HALF_BYTES;
    uint32_t chunk = (lane / 16 ^ row % 8) << 4;
#pragma unroll
    for (int step = 0; step < STEPS; step++)
        ptx_store_matrix_x4(target + step / 4 * (KEYS * HALF_BYTES) + (chunk ^ step % 4 * 32),
                            rounded[step]);
}

/* One consumer warpgroup. */
template <typename T, int D, bool CAUSAL>
struct consumer {
    static constexpr int QUERIES = queries<D>;
    const arguments &a;
    const maps &m;
    shared_memory<D> &s;
    const int group;
    position at;
    ring now, keys; /* which tile of queries, and whose keys */
    float *dq_sums; /* this thread's first of the present tile */
    float dk[D / 2], dv[D / 2]; /* dk / scale */
    float scores[QUERIES / 2];

    /* The group's keys in the first half of K or V. */
    __device__ __forceinline__ uint32_t own_rows(const char *tile) const
    {
        return ptx_shared_address(tile) + group * (GROUP_ROWS * HALF_BYTES);
    }

    __device__ __forceinline__ void issue_scores(ring of)
    {
        ptx_barrier_wait(ptx_shared_address(&s.q_full[of.stage]), of.parity);
        issue_product_of_rows<T, D, KEYS, QUERIES>(own_rows(s.k[keys.stage]), ptx_shared_address(s.q[of.stage]),
                                                   scores);
    }

    __device__ __forceinline__ void wait_for_scores()
    {
        ptx_wgmma_wait<0>();
        ptx_registers_fence(scores);
    }

    /* dp = v dout^T, and meanwhile the probabilities. */
    template <bool MASKED>
    __device__ __forceinline__ void compute_probabilities(int diagonal, float (&dp)[QUERIES / 2])
    {
        ptx_barrier_wait(ptx_shared_address(&s.dout_full[now.stage]), now.parity);
        issue_product_of_rows<T, D, KEYS, QUERIES>(
            own_rows(s.v[keys.stage]), ptx_shared_address(s.dout[now.stage]), dp);
        if (MASKED)
            mask_scores<CAUSAL>(scores,
                                group * GROUP_ROWS + warp_of_group() * 16 + threadIdx.x % 32 / 4,
                                at.keys_left, diagonal);
        exponentiate(scores, s.rows[now.stage], a.log2_scale);
    }

    /* Of the probabilities and of dp, as they become gradients, 64 queries. */
    static __device__ __forceinline__ float (&part_of(float (&sums)[QUERIES / 2], int part))[32]
    {
        return reinterpret_cast<float(&)[32]>(sums[part * 32]);
    }

    /* dv and dk, 64 queries at a time: the gradients are computed, and put where
     * both groups' dq can read them, during dv's product. */
    __device__ __forceinline__ void add_dv_and_dk(float (&dp)[QUERIES / 2])
    {
        uint32_t dout = ptx_shared_address(s.dout[now.stage]);
        uint32_t q = ptx_shared_address(s.q[now.stage]);
        ptx_registers_fence(dv);
        ptx_registers_fence(dk);
#pragma unroll
        for (int part = 0; part < QUERIES / 64; part++) {
            uint32_t probabilities[4][4], gradients[4][4];
            round_sums<T>(part_of(scores, part), probabilities);
            issue_product<T, D, 64>(probabilities, dout + part * (64 * HALF_BYTES), dv);
            if (part == 0) {
                ptx_wgmma_wait<1>();
                ptx_registers_fence(dp);
            }
            differentiate(part_of(scores, part), part_of(dp, part),
                          s.rows[now.stage] + part * (ROWS_APART * 2));
            round_sums<T>(part_of(dp, part), gradients);
            store_rows(s.gradients[now.stage] + part * (KEYS * HALF_BYTES), group, gradients);
            issue_product<T, D, 64>(gradients, q + part * (64 * HALF_BYTES), dk);
        }
    }

    /* 64 x 64 of ds k: half of the columns, or of the rows where these are 128. */
    __device__ __forceinline__ void issue_dq(float (&dq)[32])
    {
        uint32_t half = group * (KEYS * HALF_BYTES);
        uint64_t gradients =
            ptx_wgmma_descriptor(ptx_shared_address(s.gradients[now.stage]) + (D == 64 ? half : 0),
                                 KEYS * HALF_BYTES);
        uint64_t k = ptx_wgmma_descriptor(ptx_shared_address(s.k[keys.stage]) + (D == 64 ? 0 : half),
                                          KEYS * HALF_BYTES);
        ptx_wgmma_fence();
#pragma unroll
        for (int step = 0; step < KEYS / 16; step++)
            ptx_wgmma_shared_transposed(
                dq, ptx_wgmma_descriptor_behind(gradients, step * (16 * HALF_BYTES)),
                ptx_wgmma_descriptor_behind(k, step * (16 * HALF_BYTES)), step > 0, T());
        ptx_wgmma_commit();
    }

    /* Of the second half of 80 columns only the first 16 exist. */
    __device__ __forceinline__ void add_dq(const float (&dq)[32])
    {
#pragma unroll
        for (int n = 0; n < 8; n++)
            if (D % 64 == 0 || group == 0 || n < D % 64 / 8)
                ptx_add_to_global(dq_sums + n * 128,
                                  {dq[n * 4], dq[n * 4 + 1], dq[n * 4 + 2], dq[n * 4 + 3]});
        dq_sums += QUERIES * D;
    }

    /* One tile, whose scores are there; the next one's are when it ends. They are
     * not left on their way: the compiler serializes every wgmma of a loop that
     * waits for the last round's. */
    template <bool MASKED, bool IS_LAST>
    __device__ __forceinline__ void add_tile(int tile)
    {
        float dp[QUERIES / 2], dq[32];
        ring next = now;
        next.advance();
        compute_probabilities<MASKED>(at.first_query + tile * QUERIES - at.first_key, dp);
        add_dv_and_dk(dp);
        ptx_async_proxy_fence();
        wait_for_both_groups();
        ptx_wgmma_wait<1>(); /* frees dv's operand for dq */
        issue_dq(dq);
        ptx_wgmma_wait<1>(); /* frees dk's operand for the scores */
        ptx_registers_fence(dv);
        ptx_registers_fence(dk);
        if (!IS_LAST) issue_scores(next);
        ptx_wgmma_wait<IS_LAST ? 0 : 1>();
        ptx_registers_fence(dq);
        release(s.dout_empty[now.stage]);
        release(s.q_empty[now.stage]);
        add_dq(dq);
        wait_for_scores();
        now = next;
    }

    __device__ __forceinline__ void add_tiles()
    {
#pragma unroll
        for (int i = 0; i < D / 2; i++) dk[i] = dv[i] = 0.0f;
        issue_scores(now);
        ptx_barrier_wait(ptx_shared_address(&s.v_full[keys.stage]), keys.parity);
        wait_for_scores();
        int tile = 0, last = at.tiles - 1, masked = min(at.masked_tiles, last);
        for (; tile < masked; tile++) add_tile<true, false>(tile);
        for (; tile < last; tile++) add_tile<false, false>(tile);
        add_tile<true, true>(last);
    }

    /* Into the group's rows of a tile that nobody needs any more. */
    __device__ __forceinline__ void stage_sums(char *tile, float (&sums)[D / 2], float factor)
    {
        uint32_t rounded[D / 16][4];
#pragma unroll
        for (int i = 0; i < D / 2; i++) sums[i] *= factor;
        round_sums<T>(sums, rounded);
        store_rows(tile, group, rounded);
    }

    __device__ __forceinline__ void add_block()
    {
        bool is_halved_by_rows = D == 64;
        int row = at.first_query + (is_halved_by_rows ? group * GROUP_ROWS : 0);
        dq_sums = dq_sums_of<D>(a, at.index, row + warp_of_group() * 16,
                                is_halved_by_rows ? 0 : group * 8);
        add_tiles();
        wait_for_both_groups(); /* every warp has used K and V */
        stage_sums(s.k[keys.stage], dk, a.scale);
        stage_sums(s.v[keys.stage], dv, 1.0f);
        ptx_async_proxy_fence();
        __syncwarp();
        release(s.sums_full[keys.stage]);
    }

    __device__ __forceinline__ void run()
    {
        for (;; keys.advance()) {
            ptx_barrier_wait(ptx_shared_address(&s.k_full[keys.stage]), keys.parity);
            unsigned block = __shfl_sync(0xffffffffu, s.block[keys.stage], 0); /* uniform */
            if (block >= a.all_heads * a.key_blocks) break;
            at = locate<D, CAUSAL>(a, block);
            add_block();
        }
    }
};

/* ---- the kernel -------------------------------------------------------------------- */

template <int D>
__device__ __forceinline__ void init_barriers(shared_memory<D> &s)
{
    constexpr uint32_t WARPS = GROUPS * (GROUP_THREADS / 32);
    for (int stage = 0; stage < STAGES; stage++) {
        ptx_barrier_init(ptx_shared_address(&s.k_full[stage]), 1);
        ptx_barrier_init(ptx_shared_address(&s.v_full[stage]), 1);
        ptx_barrier_init(ptx_shared_address(&s.sums_full[stage]), WARPS);
        ptx_barrier_init(ptx_shared_address(&s.q_full[stage]), 2); /* the rows' numbers too */
        ptx_barrier_init(ptx_shared_address(&s.dout_full[stage]), 1);
        ptx_barrier_init(ptx_shared_address(&s.q_empty[stage]), WARPS);
        ptx_barrier_init(ptx_shared_address(&s.dout_empty[stage]), WARPS);
    }
    ptx_barrier_init_fence();
}

__device__ __forceinline__ void prefetch_maps(const maps &m)
{
    for (const CUtensorMap *map : {&m.q, &m.k, &m.v, &m.dout, &m.dk, &m.dv})
        ptx_prefetch_tensor_map(map);
}

template <typename T, int D, bool CAUSAL>
__global__ void __launch_bounds__(THREADS, 1)
    keys_kernel(const __grid_constant__ arguments a, const __grid_constant__ maps m)
{
#if BUILT_FOR_WGMMA
    extern __shared__ char memory[];
    uint32_t padding = -ptx_shared_address(memory) % ALIGNMENT;
    shared_memory<D> &s = *reinterpret_cast<shared_memory<D> *>(memory + padding);
    if (threadIdx.x == 0) init_barriers(s);
    if (threadIdx.x == 32) prefetch_maps(m);
    __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        ptx_registers_give_up<LOADER_REGISTERS>();
        loader<D, CAUSAL> work = {a, m, s, {0, 1}, {0, 0}};
        if (threadIdx.x == 0) work.run();
    } else {
        ptx_registers_claim<CONSUMER_REGISTERS>();
        consumer<T, D, CAUSAL> work = {a, m, s, consumer_group(), {}, {0, 0}, {0, 0}, nullptr, {}, {}, {}};
        work.run();
    }
#endif
}

/* ---- launching ------------------------------------------------------------------- */

template <int D>
int encode_maps(const attention_backward_args &args, maps *m)
{
    return encode_maps(args.shape, args.dtype,
                       {{&m->q, args.q, args.qkv_strides, queries<D>},
                        {&m->k, args.k, args.qkv_strides, KEYS},
                        {&m->v, args.v, args.qkv_strides, KEYS},
                        {&m->dout, args.dout, args.out_strides, queries<D>},
                        {&m->dk, args.dk, args.qkv_strides, GROUP_ROWS},
                        {&m->dv, args.dv, args.qkv_strides, GROUP_ROWS}});
}

/* A section's Q, dout and sums of dq stay in the L2 cache. Blocks that are all
 * equally long need no other heads between them: one head a section. */
arguments arguments_of(const attention_backward_args &args, void *workspace,
                       const device_limits &device)
{
    const attention_shape &s = args.shape;
    int64_t heads = s.batch * s.heads, head_bytes = s.tokens * s.head_dim * 8;
    backward_arguments shared = backward_arguments_of(args, workspace, true);
    shared.rows_are_apart = true;
    shared.taken = reinterpret_cast<unsigned *>(
        shared.dq_sums + heads * shared.padded_tokens * s.head_dim);
    return {shared,
            static_cast<int>(s.heads),
            static_cast<unsigned>(heads),
            s.causal ? section_heads_of(heads, head_bytes, device.l2_bytes) : 1,
            static_cast<unsigned>(ceil_div(s.tokens, KEYS)),
            static_cast<unsigned>(device.multiprocessors)};
}

template <typename T, int D, bool CAUSAL>
int launch_keys(const attention_backward_args &args, const arguments &a, kernel_stream stream)
{
    constexpr int shared_bytes = sizeof(shared_memory<D>) + ALIGNMENT;
    auto kernel = keys_kernel<T, D, CAUSAL>;
    maps m;
    int code = encode_maps<D>(args, &m);
    if (code != KERNEL_OK) return code;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    unsigned blocks = std::min(a.all_heads * a.key_blocks, a.multiprocessors);
    kernel<<<blocks, THREADS, shared_bytes, stream>>>(a, m);
    return cudaGetLastError();
}

template <typename T, int D>
int launch_dim(const attention_backward_args &args, const arguments &a, kernel_stream stream)
{
    if (!attention_fits_grid(int64_t(a.all_heads) * a.key_blocks)) return KERNEL_ERROR_ARGUMENT;
    int code = backward_launch_rows<T, D>(a, a.all_heads, stream);
    if (code == KERNEL_OK)
        code = args.shape.causal ? launch_keys<T, D, true>(args, a, stream)
                                 : launch_keys<T, D, false>(args, a, stream);
    return code == KERNEL_OK ? backward_launch_round<T, D>(a, a.all_heads, stream) : code;
}

template <typename T>
int launch_type(const attention_backward_args &args, void *workspace, kernel_stream stream)
{
    static_assert(sizeof(T) == 2, "tiles are rows of 64 elements in 128 bytes");
    device_limits device;
    cudaError_t error = current_device(&device);
    if (error != cudaSuccess) return error;
    arguments a = arguments_of(args, workspace, device);
    switch (args.shape.head_dim) {
    case 64: return launch_dim<T, 64>(args, a, stream);
    case 80: return launch_dim<T, 80>(args, a, stream);
    default: return launch_dim<T, 128>(args, a, stream);
    }
}

} // namespace

const char *attention_backward_wgmma_unsupported(const void *args)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    const char *reason = attention_wgmma_unsupported_shape(a.shape);
    return reason ? reason : attention_strides_unsupported(a.qkv_strides, a.out_strides);
}

size_t attention_backward_wgmma_workspace_bytes(const void *args)
{
    size_t sums_bytes = attention_backward_mma_atomic_workspace_bytes(args);
    return sums_bytes ? sums_bytes + sizeof(unsigned) : 0;
}

int attention_backward_wgmma_run(const void *args, void *workspace, void *, kernel_stream stream)
{
    const attention_backward_args &a = *static_cast<const attention_backward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_backward_wgmma_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F16: return launch_type<__half>(a, workspace, stream);
    case KERNEL_BF16: return launch_type<__nv_bfloat16>(a, workspace, stream);
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
