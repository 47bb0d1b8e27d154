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
 * of dq during dk's and the next tile's scores.
 *
 * Blocks stay on their multiprocessor and take blocks of keys until none is left; K and
 * V are doubled, so that the next ones come, and dk and dv leave, during other work.
 *
 * What was predicted of changes, and what came of them on an H200 (medians of three
 * processes each, in turn, at the same clocks; from the fourth on medians of tens of runs
 * in turn in one process under full load):
 * - Descriptors advanced by an addition: 526 instructions of the main loop to 391. They
 *   are 403, and the time is the same within 0.7 %: the loop is not bound by issuing.
 * - Blocks that stay: 17 % at 1024 tokens. It is 4.9 % (d=128, full), 6.8 % (causal) and
 *   5.1 % (d=64, causal); at 128 tokens, where each block has one block of keys, taking it
 *   costs 5 %.
 * - Logarithms and deltas apart, half the shared memory read for them: 3 to 6 %. It is
 *   0.3 %. All three together bring 1.7 % at 8192 tokens, causal.
 * - A block's first keys are its own, without a count: 3 to 5 % at 128 tokens. It is 1 %.
 * - dq before dk, as samples show that warps wait 620 cycles of a tile's 4070 for the
 *   registers whose additions to memory have not left, and 290 to hand these over: 5 to
 *   11 %. It is 6.5 % at 8192 tokens (d=128), 1 % (d=64).
 * - What does not come out even cut among all multiprocessors: 2.7 % at 8192 tokens. It
 *   is 3.7 % (d=128), 2.4 % (d=64), 1 % at 1024 tokens; 22 % where 144 blocks meet 132
 *   multiprocessors.
 * - Each of the three kernels beginning while the one before ends: 12 % at 128 tokens. It
 *   is 20 %; but where the last one may begin with the one between, its blocks crowd the
 *   multiprocessors that are free first, and 128 heads of 128 tokens take 20 % longer. So
 *   it may when a block is at its end, which was verified, not timed in turn.
 * - The blocks of a head beginning at different queries, so that they do not add to the
 *   same sums at a time: some percent. It is 3.9 % slower (d=128), and gone: neighbours
 *   that read the same queries at the same time are worth more.
 * - The next scores issued while dk's product runs: the compiler finds no registers, and
 *   serializes (C7512).
 * - Half of dq added before the next scores are issued, half while they are computed: as
 *   samples show warps waiting for those additions, 3 %. It is 4 and 3 % (d=64 at 8192
 *   tokens, causal and full), 1 % (d=128, at the same clocks), 0.5 to 1 % at 1024 tokens.
 * - Exponentials and gradients by halves of a tile, so that dv and dk begin earlier: 2.5 %
 *   slower; with dq's halves as fast as these alone, and gone, as is all of dq behind the
 *   scores (5 % slower) and dp that begins with less delta (2 % slower).
 * - dq rounded from its sums by threads that write 16 bytes of a row, not 4: the last kernel
 *   took 166 us of the 812 at 16 heads of 16 sequences of 1024 tokens (d=128) where its
 *   bytes need 45. It is 47, and the one before the products, which moves as much, 66.
 *
 * Beside cuDNN 9.19, cold rows in turn on one H200, each under 2 s of its own load where the
 * power cap slows it: at 1024 tokens (as above) 0.89 full, both at 1980 MHz, and 0.90 causal,
 * at 1920 to 1965 (on another card 1.07 and 1.13 before dq was rounded so); at 8192 tokens 1.00
 * full, at 1725 to 1755 MHz where cuDNN has 1845 to 1920, and 1.01 causal, at 1770 to 1800
 * where it keeps 1980. By the hardware's counters cuDNN's three kernels take 68, 641 and 55
 * us of the 1024 tokens, at 1.74 GHz, these 66, 582 and 47: what is behind at 8192 is not
 * cycles, but energy a cycle.
 *
 * Bound by the tensor cores, and nearly as much by the shared memory that feeds
 * them: three of the five products read both operands from it in tiles of 64 by
 * 64, 4 KiB for the 32 cycles of a step.
 */
#include <algorithm>

#include "backward_wgmma.cuh"
#include "../common/launch.cuh"

namespace {

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
    int next_tile, last_tile; /* of the part that has been taken, what is left */

    __device__ __forceinline__ void load_queries(const position &at, int tile)
    {
        int first_query = at.first_query + tile * QUERIES;
        unsigned stage = queries_next.stage;
        ptx_barrier_wait(ptx_shared_address(&s.q_empty[stage]), queries_next.parity);
        load_tile<QUERIES, D>(m.q, s.q[stage], s.q_full[stage], first_query, at.head, at.batch);
        if (tile == 0)
            load_tile<KEYS, D>(m.v, s.v[keys_next.stage], s.v_full[keys_next.stage], at.first_key,
                               at.head, at.batch);
        ptx_barrier_wait(ptx_shared_address(&s.dout_empty[stage]), queries_next.parity);
        load_tile<QUERIES, D>(m.dout, s.dout[stage], s.dout_full[stage], first_query, at.head,
                              at.batch);
        ptx_wait_for_kernel_before(); /* which made the rows' numbers; over but at the start */
        load_rows<D>(a, s.rows[stage], s.dout_full[stage], at, first_query);
        queries_next.advance();
    }

    /* dk and dv of the block whose keys were in the ring's stage `of`. */
    __device__ __forceinline__ void store_sums(ring of, const position &at)
    {
        ptx_barrier_wait(ptx_shared_address(&s.sums_full[of.stage]), of.parity);
#pragma unroll 1 /* the loader has few registers */
        for (int group = 0; group < GROUPS; group++)
            for (int half = 0; half < halves_of<D> && s.is_complete[of.stage][group]; half++) {
                int offset = half * (KEYS * HALF_BYTES) + group * (GROUP_ROWS * HALF_BYTES);
                int row = at.first_key + group * GROUP_ROWS;
                ptx_store_box(&m.dk, ptx_shared_address(s.k[of.stage]) + offset, half * 64, row,
                              at.head, at.batch);
                ptx_store_box(&m.dv, ptx_shared_address(s.v[of.stage]) + offset, half * 64, row,
                              at.head, at.batch);
            }
    }

    /* The first is the block's own, so that nobody waits for the count to begin with,
     * or at all where each has one. */
    __device__ __forceinline__ unsigned take(bool is_first)
    {
        unsigned all = a.cut.whole_blocks + a.cut.parts;
        if (is_first) return blockIdx.x;
        return gridDim.x + (gridDim.x < all ? atomicAdd(a.taken, 1) : 0);
    }

    /* The consumers see it when they have waited for its K. */
    __device__ __forceinline__ bool take_piece(bool is_first, piece &work)
    {
        work = {NO_BLOCK, 0, 0};
        if (CAUSAL || next_tile == last_tile) {
            unsigned index = take(is_first);
            if (index < a.cut.whole_blocks) {
                work.block = index;
            } else if (!CAUSAL && index < a.cut.whole_blocks + a.cut.parts) {
                next_tile = static_cast<int>(index - a.cut.whole_blocks) * a.cut.part_tiles;
                last_tile = min(next_tile + a.cut.part_tiles, a.cut.tiles);
            }
        }
        if (!CAUSAL && next_tile < last_tile) {
            int block = next_tile / a.cut.block_tiles;
            work = {a.cut.whole_blocks + block, next_tile - block * a.cut.block_tiles, 0};
            work.tiles = min(a.cut.block_tiles - work.first, last_tile - next_tile);
            next_tile += work.tiles;
        }
        s.work[keys_next.stage] = work;
        return work.block != NO_BLOCK;
    }

    __device__ __forceinline__ void run()
    {
        position before;
        bool is_first = true;
        piece work;
        while (take_piece(is_first, work)) {
            position at = locate<D, CAUSAL>(a, work);
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
        /* Not before: what waits for the end would crowd the multiprocessors that have
         * come to it first. */
        ptx_let_kernel_behind_start();
        ptx_store_box_wait_read();
    }
};

/* ---- the consumers ----------------------------------------------------------------- */

constexpr int PAIR_BARRIER = 1, GROUP_BARRIER = 2; /* of both groups; of each alone */

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
            dp[n * 4 + i] = probabilities[n * 4 + i] * (dp[n * 4 + i] - (i % 2 ? pair.y : pair.x));
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
    static constexpr int QUERIES = queries<D>, PARTS = QUERIES / 64;
    const arguments &a;
    const maps &m;
    shared_memory<D> &s;
    const int group;
    position at;
    ring now, keys;             /* which tile of queries, and whose keys */
    float *dq_sums;             /* this thread's first of the present tile */
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
        issue_product_of_rows<T, D, KEYS, QUERIES>(own_rows(s.k[keys.stage]),
                                                   ptx_shared_address(s.q[of.stage]), scores);
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
        issue_product_of_rows<T, D, KEYS, QUERIES>(own_rows(s.v[keys.stage]),
                                                   ptx_shared_address(s.dout[now.stage]), dp);
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

    /* dv, 64 queries at a time: the gradients are computed, and put where both groups'
     * dq can read them, during its product. */
    __device__ __forceinline__ void add_dv(float (&dp)[QUERIES / 2],
                                           uint32_t (&gradients)[PARTS][4][4])
    {
        uint32_t dout = ptx_shared_address(s.dout[now.stage]);
        ptx_registers_fence(dv);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            uint32_t probabilities[4][4];
            round_sums<T>(part_of(scores, part), probabilities);
            issue_product<T, D, 64>(probabilities, dout + part * (64 * HALF_BYTES), dv);
            if (part == 0) {
                ptx_wgmma_wait<1>();
                ptx_registers_fence(dp);
            }
            differentiate(part_of(scores, part), part_of(dp, part),
                          s.rows[now.stage] + part * (ROWS_APART * 2));
            round_sums<T>(part_of(dp, part), gradients[part]);
            store_rows(s.gradients[now.stage] + part * (KEYS * HALF_BYTES), group, gradients[part]);
        }
    }

    __device__ __forceinline__ void issue_dk(const uint32_t (&gradients)[PARTS][4][4])
    {
        uint32_t q = ptx_shared_address(s.q[now.stage]);
        ptx_registers_fence(dk);
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            issue_product<T, D, 64>(gradients[part], q + part * (64 * HALF_BYTES), dk);
    }

    /* 64 x 64 of ds k: half of the columns, or of the rows where these are 128. */
    __device__ __forceinline__ void issue_dq(float (&dq)[32])
    {
        uint32_t half = group * (KEYS * HALF_BYTES);
        uint64_t gradients = ptx_wgmma_descriptor(
            ptx_shared_address(s.gradients[now.stage]) + (D == 64 ? half : 0), KEYS * HALF_BYTES);
        uint64_t k = ptx_wgmma_descriptor(
            ptx_shared_address(s.k[keys.stage]) + (D == 64 ? 0 : half), KEYS * HALF_BYTES);
        ptx_wgmma_fence();
#pragma unroll
        for (int step = 0; step < KEYS / 16; step++)
            ptx_wgmma_shared_transposed(
                dq, ptx_wgmma_descriptor_behind(gradients, step * (16 * HALF_BYTES)),
                ptx_wgmma_descriptor_behind(k, step * (16 * HALF_BYTES)), step > 0, T());
        ptx_wgmma_commit();
    }

    /* Half of it. Of the second half of 80 columns only the first 16 exist. */
    __device__ __forceinline__ void add_dq(int half, const float (&dq)[32])
    {
#pragma unroll
        for (int n = half * 4; n < half * 4 + 4; n++)
            if (D % 64 == 0 || group == 0 || n < D % 64 / 8)
                ptx_add_to_global(dq_sums + n * 128,
                                  {dq[n * 4], dq[n * 4 + 1], dq[n * 4 + 2], dq[n * 4 + 3]});
    }

    /* One tile, whose scores are there; the next one's are when it ends. They are
     * not left on their way: the compiler serializes every wgmma of a loop that
     * waits for the last round's. */
    template <bool MASKED, bool IS_LAST>
    __device__ __forceinline__ void add_tile(int tile)
    {
        float dp[QUERIES / 2], dq[32];
        uint32_t gradients[PARTS][4][4];
        ring next = now;
        next.advance();
        compute_probabilities<MASKED>(at.first_query + tile * QUERIES - at.first_key, dp);
        add_dv(dp, gradients);
        ptx_async_proxy_fence();
        wait_for_both_groups();
        issue_dq(dq);
        issue_dk(gradients);
        ptx_wgmma_wait<PARTS>(); /* for dv and dq */
        ptx_registers_fence(dv);
        ptx_registers_fence(dq);
        release(s.dout_empty[now.stage]);
        add_dq(0, dq);
        ptx_wgmma_wait<0>(); /* dk's operand makes room for the scores */
        ptx_registers_fence(dk);
        release(s.q_empty[now.stage]);
        if (!IS_LAST) issue_scores(next);
        add_dq(1, dq);
        dq_sums += QUERIES * D;
        if (!IS_LAST) wait_for_scores();
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

    __device__ __forceinline__ void wait_for_group()
    {
        ptx_named_barrier_sync(GROUP_BARRIER + group, GROUP_THREADS);
    }

    __device__ __forceinline__ bool leads_group() const
    {
        return threadIdx.x % GROUP_THREADS == 0;
    }

    /* This thread's four sums `index` of those that a piece leaves, D / 4 in all. */
    __device__ __forceinline__ float4 *left_sums(unsigned place, int index) const
    {
        int64_t row = (int64_t(place) * GROUPS + group) * (D / 4) + index;
        return a.sums + row * GROUP_THREADS + threadIdx.x % GROUP_THREADS;
    }

    __device__ __forceinline__ void leave_sums(unsigned place)
    {
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            *left_sums(place, i) =
                make_float4(dk[i * 4], dk[i * 4 + 1], dk[i * 4 + 2], dk[i * 4 + 3]);
            *left_sums(place, D / 8 + i) =
                make_float4(dv[i * 4], dv[i * 4 + 1], dv[i * 4 + 2], dv[i * 4 + 3]);
        }
    }

    static __device__ __forceinline__ void add_four(float *sums, const float4 *others)
    {
        float4 four = __ldcg(others);
        sums[0] += four.x, sums[1] += four.y, sums[2] += four.z, sums[3] += four.w;
    }

    __device__ __forceinline__ void add_sums(unsigned place)
    {
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            add_four(dk + i * 4, left_sums(place, i));
            add_four(dv + i * 4, left_sums(place, D / 8 + i));
        }
    }

    /* Of a block's pieces all but the one that comes last leave their sums, which that
     * one adds to its own. Whether this is it. */
    __device__ __forceinline__ bool complete_sums(unsigned block)
    {
        share own = share_of(a.cut, block);
        if (own.others == 0) return true;
        unsigned *counts = a.arrived + ((block - a.cut.whole_blocks) * GROUPS + group) * 2;
        if (leads_group()) s.arrival[group] = atomicAdd(counts, 1);
        wait_for_group();
        unsigned arrival = s.arrival[group];
        bool is_last = arrival == own.others;
        if (!is_last) {
            leave_sums(own.sums + arrival);
            __threadfence();
        } else if (leads_group()) {
            while (*static_cast<volatile unsigned *>(counts + 1) < own.others) continue;
            __threadfence();
        }
        wait_for_group();
        if (!is_last && leads_group()) atomicAdd(counts + 1, 1);
        for (unsigned i = 0; is_last && i < own.others; i++) add_sums(own.sums + i);
        return is_last;
    }

    __device__ __forceinline__ void add_block(unsigned block)
    {
        bool is_halved_by_rows = D == 64;
        int row = at.first_query + (is_halved_by_rows ? group * GROUP_ROWS : 0);
        dq_sums = dq_sums_of<D>(a, at.index, row + warp_of_group() * 16,
                                is_halved_by_rows ? 0 : group * 8, threadIdx.x % 32);
        add_tiles();
        bool is_complete = CAUSAL || complete_sums(block);
        wait_for_both_groups(); /* every warp has used K and V */
        if (is_complete) {
            stage_sums(s.k[keys.stage], dk, a.scale);
            stage_sums(s.v[keys.stage], dv, 1.0f);
        }
        if (leads_group()) s.is_complete[keys.stage][group] = is_complete;
        ptx_async_proxy_fence();
        __syncwarp();
        release(s.sums_full[keys.stage]);
    }

    __device__ __forceinline__ void run()
    {
        for (;; keys.advance()) {
            ptx_barrier_wait(ptx_shared_address(&s.k_full[keys.stage]), keys.parity);
            piece work = uniform(s.work[keys.stage]);
            if (work.block == NO_BLOCK) break;
            at = locate<D, CAUSAL>(a, work);
            add_block(work.block);
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
        ptx_barrier_init(ptx_shared_address(&s.q_full[stage]), 1);
        ptx_barrier_init(ptx_shared_address(&s.dout_full[stage]), 2); /* the rows' numbers too */
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
        loader<D, CAUSAL> work = {a, m, s, {0, 1}, {0, 0}, 0, 0};
        if (threadIdx.x == 0) work.run();
    } else {
        ptx_registers_claim<CONSUMER_REGISTERS>();
        consumer<T, D, CAUSAL> work = {a,  m,  s, consumer_group(), {}, {0, 0}, {0, 0}, nullptr,
                                       {}, {}, {}};
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

/* Adding up what pieces leave costs as much as a few tiles. */
constexpr int WORTH_TILES = 6;

split split_of(const attention_shape &s, unsigned multiprocessors)
{
    int64_t queries_of_tile = s.head_dim == 64 ? queries<64> : queries<128>;
    int64_t blocks = s.batch * s.heads * ceil_div(s.tokens, KEYS), rest = blocks % multiprocessors;
    split cut = {static_cast<unsigned>(blocks),
                 static_cast<int>(ceil_div(s.tokens, queries_of_tile)), 0, 0, 0};
    int64_t tiles = rest * cut.block_tiles, part = ceil_div(tiles, int64_t(multiprocessors));
    if (s.causal || rest == 0 || tiles > INT32_MAX || cut.block_tiles - part < WORTH_TILES)
        return cut;
    cut.whole_blocks = static_cast<unsigned>(blocks - rest);
    cut.tiles = static_cast<int>(tiles);
    cut.part_tiles = static_cast<int>(part);
    cut.parts = static_cast<unsigned>(ceil_div(tiles, part));
    return cut;
}

/* What lies behind dq's sums: what pieces leave, and counts. */
struct workspace_tail {
    size_t sums, counts; /* bytes */
};

workspace_tail tail_of(const split &cut, const attention_shape &s)
{
    unsigned cut_blocks = static_cast<unsigned>(ceil_div(cut.tiles, cut.block_tiles));
    return {size_t(cut.parts) * GROUPS * GROUP_THREADS * size_t(s.head_dim) * sizeof(float),
            (1 + size_t(cut_blocks) * GROUPS * 2) * sizeof(unsigned)};
}

/* A section's Q, dout and sums of dq stay in the L2 cache. Blocks that are all
 * equally long need no other heads between them: one head a section. */
arguments arguments_of(const attention_backward_args &args, void *workspace,
                       const device_limits &device)
{
    const attention_shape &s = args.shape;
    int64_t heads = s.batch * s.heads, head_bytes = s.tokens * s.head_dim * 8;
    arguments a = {backward_arguments_of(args, workspace, true)};
    a.rows_are_apart = true;
    a.heads = static_cast<int>(s.heads);
    a.all_heads = static_cast<unsigned>(heads);
    a.section_heads = s.causal ? section_heads_of(heads, head_bytes, device.l2_bytes) : 1;
    a.key_blocks = static_cast<unsigned>(ceil_div(s.tokens, KEYS));
    a.cut = split_of(s, static_cast<unsigned>(device.multiprocessors));
    workspace_tail tail = tail_of(a.cut, s);
    a.sums = reinterpret_cast<float4 *>(a.dq_sums + heads * a.padded_tokens * s.head_dim);
    a.taken = reinterpret_cast<unsigned *>(reinterpret_cast<char *>(a.sums) + tail.sums);
    a.counts = static_cast<int>(tail.counts / sizeof(unsigned));
    a.arrived = a.taken + 1;
    return a;
}

template <typename T, int D, bool CAUSAL>
int launch_keys(const attention_backward_args &args, const arguments &a, unsigned multiprocessors,
                kernel_stream stream)
{
    constexpr int shared_bytes = sizeof(shared_memory<D>) + ALIGNMENT;
    auto kernel = keys_kernel<T, D, CAUSAL>;
    maps m;
    int code = encode_maps<D>(args, &m);
    if (code != KERNEL_OK) return code;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    unsigned blocks = std::min(a.cut.whole_blocks + a.cut.parts, multiprocessors);
    return launch_early(kernel, dim3(blocks), THREADS, shared_bytes, stream, a, m);
}

template <typename T, int D>
int launch_dim(const attention_backward_args &args, const arguments &a, unsigned multiprocessors,
               kernel_stream stream)
{
    if (!attention_fits_grid(int64_t(a.all_heads) * a.key_blocks)) return KERNEL_ERROR_ARGUMENT;
    int code = backward_launch_rows<T, D>(a, a.all_heads, stream);
    if (code == KERNEL_OK)
        code = args.shape.causal ? launch_keys<T, D, true>(args, a, multiprocessors, stream)
                                 : launch_keys<T, D, false>(args, a, multiprocessors, stream);
    if (code != KERNEL_OK) return code;
    int64_t blocks = a.all_heads * (a.padded_tokens / ROUND_ROWS);
    if (!attention_fits_grid(blocks)) return KERNEL_ERROR_ARGUMENT;
    return launch_early(round_kernel<T, D>, dim3(static_cast<unsigned>(blocks)), round_threads<D>,
                        0, stream, static_cast<const backward_arguments &>(a));
}

template <typename T>
int launch_type(const attention_backward_args &args, void *workspace, kernel_stream stream)
{
    static_assert(sizeof(T) == 2, "tiles are rows of 64 elements in 128 bytes");
    device_limits device;
    cudaError_t error = current_device(&device);
    if (error != cudaSuccess) return error;
    arguments a = arguments_of(args, workspace, device);
    unsigned multiprocessors = static_cast<unsigned>(device.multiprocessors);
    switch (args.shape.head_dim) {
    case 64: return launch_dim<T, 64>(args, a, multiprocessors, stream);
    case 80: return launch_dim<T, 80>(args, a, multiprocessors, stream);
    default: return launch_dim<T, 128>(args, a, multiprocessors, stream);
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
    const attention_shape &s = static_cast<const attention_backward_args *>(args)->shape;
    size_t sums_bytes = attention_backward_mma_atomic_workspace_bytes(args);
    device_limits device;
    if (sums_bytes == 0 || current_device(&device) != cudaSuccess) return 0;
    if (!attention_fits_grid(s.batch * s.heads * ceil_div(s.tokens, KEYS))) return sums_bytes;
    workspace_tail tail = tail_of(split_of(s, static_cast<unsigned>(device.multiprocessors)), s);
    return sums_bytes + tail.sums + tail.counts;
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
