/*
 * wgmma.cu - attention forward by the warpgroup products of sm_90a.
 *
 * 1. wgmma  One kernel, no scores in memory, organized as in Shah et al.,
 *           "FlashAttention-3: fast and accurate attention with asynchrony and
 *           low-precision", 2024. One warp keeps the copy engine filling two
 *           stages of K and V; two or three warpgroups of 64 query rows each
 *           compute. Two overlaps hide the softmax, which costs as much time as
 *           the products: within a warpgroup the next tile's scores are on
 *           their way during this tile's second product, and between
 *           warpgroups a token lets one issue its products while the others
 *           are at their exponentials.
 *
 * Teaches: tensor cores that read operands from swizzled shared memory by
 * themselves leave the registers to accumulators (240 a thread, which the
 * loading warps give up); the copy engine takes strides and ragged ends, so
 * that no thread computes an address; a persistent block loads its next rows
 * while it finishes the last.
 *
 * Bound by the tensor cores at head_dim 128, and by them and the exponentials
 * in equal parts at 64: 256 operations a score, which the tensor cores do in
 * the time of one exponential, 16 scores a cycle and multiprocessor. (Replacing
 * some exponentials by polynomials on the FMA pipes, one in 16 to one in 4, made
 * it slower.)
 */
#include <algorithm>
#include <memory>
#include <queue>
#include <vector>

#include "forward_wgmma.cuh"
#include "wgmma_e4m3.cuh"

namespace {

/* ---- the loading warp ------------------------------------------------------------ */

template <typename P>
__device__ __forceinline__ void load_rows(const maps &m, shared_memory<P> &s, const position &at)
{
    uint32_t full = ptx_shared_address(&s.q_full);
    ptx_barrier_arrive_expect(full, P::GROUPS * P::Q_BYTES);
    for (int group = 0; group < P::GROUPS; group++)
        for (int half = 0; half < P::HALVES; half++)
            ptx_load_box(ptx_shared_address(s.q[group]) + half * (GROUP_ROWS * HALF_BYTES), &m.q,
                         full, half * 64, at.first_row + group * GROUP_ROWS, at.head, at.batch);
}

/* Where V is loaded to. */
template <typename P>
__device__ __forceinline__ auto &loaded_v(shared_memory<P> &s)
{
    if constexpr (P::TURNS)
        return s.unturned;
    else
        return s;
}

/* K one tile ahead of V, as the consumers take them. Tiles from the right, so
 * that the masked ones come first. */
template <int D, typename P, bool CAUSAL>
__device__ __forceinline__ void load_everything(const arguments &a, const maps &m,
                                                shared_memory<P> &s)
{
    ring k = {0, 1}, v = {0, 1};
    unsigned q_parity = 1;
    for (schedule next(a); next.block != NO_BLOCK; next.advance()) {
        position at = locate<P, CAUSAL>(a, next.block);
        for (int index = at.key_tiles; index >= 0; index--) {
            if (index > 0) {
                ptx_barrier_wait(ptx_shared_address(&s.k_empty[k.stage]), k.parity);
                load_tile<P::KEYS, D, P::ELEMENT_BYTES>(m.k, s.k[k.stage], s.k_full[k.stage],
                                                        (index - 1) * P::KEYS, at.head, at.batch);
                k.advance();
            }
            if (index == at.key_tiles) {
                ptx_barrier_wait(ptx_shared_address(&s.q_empty), q_parity);
                load_rows(m, s, at);
                q_parity ^= 1;
            } else {
                auto &to = loaded_v(s);
                ptx_barrier_wait(ptx_shared_address(&to.v_empty[v.stage]), v.parity);
                load_tile<P::KEYS, D, P::ELEMENT_BYTES>(m.v, to.v[v.stage], to.v_full[v.stage],
                                                        index * P::KEYS, at.head, at.batch);
                v.advance();
            }
        }
    }
}

/* ---- the warps beside it ----------------------------------------------------------- */

/* Turns every tile of V: what they write the tensor cores read. Nothing where V is read as
 * it is. */
template <int D, typename P, bool CAUSAL>
__device__ __forceinline__ void turn_everything(const arguments &a, shared_memory<P> &s)
{
    if constexpr (P::TURNS) {
        ring loaded = {0, 0}, turned = {0, 1};
        for (schedule next(a); next.block != NO_BLOCK; next.advance())
            for (int left = locate<P, CAUSAL>(a, next.block).key_tiles; left > 0; left--) {
                ptx_barrier_wait(ptx_shared_address(&s.unturned.v_full[loaded.stage]),
                                 loaded.parity);
                ptx_barrier_wait(ptx_shared_address(&s.v_empty[turned.stage]), turned.parity);
                turn_tile<D, P::KEYS>(ptx_shared_address(s.unturned.v[loaded.stage]),
                                      ptx_shared_address(s.v[turned.stage]));
                ptx_async_proxy_fence();
                __syncwarp();
                release(s.unturned.v_empty[loaded.stage]);
                release(s.v_full[turned.stage]);
                loaded.advance();
                turned.advance();
            }
    }
}

/* ---- the consumers ----------------------------------------------------------------- */

/* Named barriers: one for each group's turn to issue products, one for each
 * group alone. */
constexpr int TURN_BARRIER = 1, GROUP_BARRIER = 4;

__device__ __forceinline__ void take_turn(int group)
{
    ptx_named_barrier_sync(TURN_BARRIER + group, 2 * GROUP_THREADS);
}

template <typename P>
__device__ __forceinline__ void pass_turn(int group)
{
    ptx_named_barrier_arrive(TURN_BARRIER + (group + 1) % P::GROUPS, 2 * GROUP_THREADS);
}

/* What a thread keeps of its rows lane / 4 and lane / 4 + 8 of its warp's 16. */
template <int D>
struct row_state {
    float out[D / 2];   /* not yet divided by sum */
    float reference[2]; /* the unscaled score whose probability is 1 */
    float sum[2];       /* of this thread's columns only */
    float rescaling[2]; /* of out, by the last tile's new reference */
};

/* Hides keys at or beyond `visible` (of the lower row; of the upper one 8 more
 * if causal), counted from the tile's first key. */
template <bool CAUSAL, int COUNT>
__device__ __forceinline__ void mask_scores(float (&scores)[COUNT], int visible, int tokens_left)
{
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int end = (CAUSAL ? min(visible + half * 8, tokens_left) : tokens_left) - column;
#pragma unroll
        for (int n = 0; n < COUNT / 4; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (n * 8 + i >= end) scores[n * 4 + half * 2 + i] = -INFINITY;
    }
}

/* The largest score of a row among this thread's, by two chains. */
template <int COUNT>
__device__ __forceinline__ float largest_of(const float (&scores)[COUNT], int half)
{
    float even = scores[half * 2], odd = scores[half * 2 + 1];
#pragma unroll
    for (int n = half * 2 + 4; n < COUNT; n += 4) {
        even = fmaxf(even, scores[n]);
        odd = fmaxf(odd, scores[n + 1]);
    }
    return fmaxf(even, odd);
}

/* How far a probability may rise above 1: what is summed is rescaled only where
 * the maximum has grown by more than a factor of 2^8, which is rare after the
 * first tile. f16 and f32 hold that without loss, and the division by the sum
 * in the end takes it out again. */
template <typename T>
constexpr float tolerated_exponent = 8.0f;

/* What is the reference's probability, as a power of 2: e4m3 has numbers up to 448, and all
 * its bits down to 2^-6, so that there probabilities lie as high as they can. */
template <typename T>
constexpr float reference_exponent = 0.0f;

template <>
constexpr float tolerated_exponent<__nv_fp8_e4m3> = 2.0f;
template <>
constexpr float reference_exponent<__nv_fp8_e4m3> = 6.0f;

template <typename T>
__device__ __forceinline__ float next_reference(float reference, float largest, float log2_scale)
{
    return (largest - reference) * log2_scale <= tolerated_exponent<T> ? reference : largest;
}

/* The online softmax step (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", 2018): scores become probabilities. The reference
 * stays -infinity while every key so far is masked; 0 stands in for it. */
template <typename T, int D, bool MASKED, int COUNT>
__device__ __forceinline__ void update_softmax(float (&scores)[COUNT], row_state<D> &rows,
                                               float log2_scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float largest = quad_max(largest_of(scores, half));
        float reference = next_reference<T>(rows.reference[half], largest, log2_scale);
        float base = MASKED && reference == -INFINITY ? 0.0f : reference * log2_scale;
        rows.rescaling[half] = ptx_exp2(fmaf(rows.reference[half], log2_scale, -base));
        rows.reference[half] = reference;
        float even = 0.0f, odd = 0.0f;
        base -= reference_exponent<T>;
#pragma unroll
        for (int n = half * 2; n < COUNT; n += 4) {
            scores[n] = ptx_exp2(fmaf(scores[n], log2_scale, -base));
            scores[n + 1] = ptx_exp2(fmaf(scores[n + 1], log2_scale, -base));
            even += scores[n];
            odd += scores[n + 1];
        }
        rows.sum[half] = fmaf(rows.sum[half], rows.rescaling[half], even + odd);
    }
}

template <int D>
__device__ __forceinline__ void rescale_output(row_state<D> &rows)
{
    if (__all_sync(0xffffffffu, rows.rescaling[0] == 1.0f && rows.rescaling[1] == 1.0f)) return;
#pragma unroll
    for (int i = 0; i < D / 2; i++) rows.out[i] *= rows.rescaling[i / 2 % 2];
}

/* Of the output, where q, k and v are T. */
template <typename T>
struct result {
    using type = T;
};

template <>
struct result<__nv_fp8_e4m3> {
    using type = __nv_bfloat16;
};

/* One consumer warpgroup. */
template <typename T, int D, int GROUPS, bool CAUSAL>
struct consumer {
    using P = plan<D, GROUPS, sizeof(T)>;
    /* What two groups at head_dim 64 are 1.9 % faster with, and all others 0.4 to 1.8 %
     * slower, on an H200: more instructions, in another order. */
    static constexpr bool FROM_ADDRESS = D == 64 && GROUPS == 2 && !P::TURNS;
    using out_element = typename result<T>::type;
    static constexpr int STEP = STEP_BYTES / sizeof(T);
    const arguments &a;
    const maps &m;
    shared_memory<P> &s;
    const int group;
    ring k, v;
    row_state<D> rows;
    float scores[P::KEYS / 2];
    uint32_t probabilities[P::KEYS / STEP][4];
    float part[P::TURNS ? D / 2 : 1]; /* of a tile alone */

    /* This thread's lower row, counted from the block's first. */
    __device__ __forceinline__ int row() const
    {
        return group * GROUP_ROWS + threadIdx.x % GROUP_THREADS / 32 * 16 + threadIdx.x % 32 / 4;
    }

    /* Where all registers are used, what is made of it is made when it is needed. */
    __device__ __forceinline__ unsigned thread() const
    {
        return P::TURNS ? ptx_opaque(threadIdx.x) : threadIdx.x;
    }

    __device__ __forceinline__ uint32_t q_tile() const { return ptx_shared_address(s.q[group]); }

    template <bool MASKED>
    __device__ __forceinline__ void mask_and_update(const position &at, int index)
    {
        if (MASKED)
            mask_scores<CAUSAL>(scores, at.first_row + row() + 1 - index * P::KEYS,
                                a.tokens - index * P::KEYS);
        update_softmax<T, D, MASKED>(scores, rows, a.log2_scale);
    }

    __device__ __forceinline__ void round_probabilities()
    {
        if constexpr (P::TURNS)
            round_sums_e4m3(scores, probabilities);
        else
            round_sums<T>(scores, probabilities);
    }

    __device__ __forceinline__ void issue_output()
    {
        uint32_t tile = ptx_shared_address(s.v[v.stage]);
        if constexpr (P::TURNS)
            issue_product_of_turned<D, P::KEYS>(probabilities, tile, part);
        else
            issue_product<T, D, P::KEYS, P::KEYS, FROM_ADDRESS>(probabilities, tile, rows.out);
    }

    /* What the product has added, or of e4m3 what it adds. */
    __device__ __forceinline__ void take_output()
    {
        ptx_registers_fence(rows.out);
        if constexpr (P::TURNS) {
            ptx_registers_fence(part);
#pragma unroll
            for (int i = 0; i < D / 2; i++) rows.out[i] += part[i];
        }
    }

    __device__ __forceinline__ void first_tile(const position &at)
    {
        ptx_barrier_wait(ptx_shared_address(&s.k_full[k.stage]), k.parity);
        take_turn(group);
        issue_product_of_rows<T, D, GROUP_ROWS, P::KEYS, FROM_ADDRESS>(
            q_tile(), ptx_shared_address(s.k[k.stage]), scores);
        pass_turn<P>(group);
        ptx_wgmma_wait<0>();
        ptx_registers_fence(scores);
        release(s.k_empty[k.stage]);
        k.advance();
        if (at.masked_tiles > 0)
            mask_and_update<true>(at, at.key_tiles - 1);
        else
            mask_and_update<false>(at, at.key_tiles - 1);
        round_probabilities();
    }

    /* The scores of tile `index`, and meanwhile the output of the one before. */
    template <bool MASKED>
    __device__ __forceinline__ void next_tile(const position &at, int index)
    {
        ptx_barrier_wait(ptx_shared_address(&s.k_full[k.stage]), k.parity);
        take_turn(group);
        ptx_registers_fence(rows.out);
        issue_product_of_rows<T, D, GROUP_ROWS, P::KEYS, FROM_ADDRESS>(
            q_tile(), ptx_shared_address(s.k[k.stage]), scores);
        ptx_barrier_wait(ptx_shared_address(&s.v_full[v.stage]), v.parity);
        issue_output();
        pass_turn<P>(group);
        ptx_wgmma_wait<1>();
        ptx_registers_fence(scores);
        release(s.k_empty[k.stage]);
        k.advance();
        mask_and_update<MASKED>(at, index);
        ptx_wgmma_wait<0>();
        take_output();
        release(s.v_empty[v.stage]);
        v.advance();
        round_probabilities();
        rescale_output(rows);
    }

    __device__ __forceinline__ void last_output()
    {
        ptx_barrier_wait(ptx_shared_address(&s.v_full[v.stage]), v.parity);
        ptx_registers_fence(rows.out);
        issue_output();
        ptx_wgmma_wait<0>();
        take_output();
        release(s.v_empty[v.stage]);
        v.advance();
    }

    /* Of a row that tile_row is in the group's part, swizzled. */
    __device__ __forceinline__ void stage_row(int half, float inverse, int tile_row)
    {
        int c = thread() % 4;
        char *target = s.q[group] + tile_row * HALF_BYTES + (P::TURNS ? c % 2 * 8 : c * 4);
#pragma unroll
        for (int n = 0; n < D / 8; n += P::TURNS ? 2 : 1) {
            const float *columns = rows.out + n * 4 + half * 2;
            char *part = target + n / 8 * (GROUP_ROWS * HALF_BYTES);
            if constexpr (P::TURNS) /* columns 4c to 4c + 3 of 16 */
                *reinterpret_cast<uint2 *>(part + (((n % 8 + c / 2) ^ tile_row % 8) << 4)) =
                    make_uint2(ptx_pack(columns[0] * inverse, columns[4] * inverse, out_element()),
                               ptx_pack(columns[1] * inverse, columns[5] * inverse, out_element()));
            else /* columns 2c and 2c + 1 of 8 */
                *reinterpret_cast<uint32_t *>(part + ((n % 8 ^ tile_row % 8) << 4)) =
                    ptx_pack(columns[0] * inverse, columns[1] * inverse, out_element());
        }
    }

    /* Divides by the sums, into the group's part of the Q tile, swizzled as the
     * copy engine expects. */
    __device__ __forceinline__ void stage_rows(const position &at)
    {
        int tile_row = thread() % GROUP_THREADS / 32 * 16 + thread() % 32 / 4;
#pragma unroll
        for (int half = 0; half < 2; half++, tile_row += 8) {
            float sum = quad_sum(rows.sum[half]);
            stage_row(half, 1.0f / sum, tile_row);
            int token = at.first_row + group * GROUP_ROWS + tile_row;
            if (a.lse && thread() % 4 == 0 && token < a.tokens)
                a.lse[static_cast<int64_t>(at.index) * a.tokens + token] =
                    (rows.reference[half] * a.log2_scale - reference_exponent<T>) *
                        ATTENTION_LN_2 +
                    logf(sum);
        }
    }

    /* One thread hands the rows to the copy engine, and the tile back to the
     * loader once they have been read. */
    __device__ __forceinline__ void store_rows(const position &at)
    {
        ptx_named_barrier_sync(GROUP_BARRIER + group, GROUP_THREADS); /* every warp has used Q */
        stage_rows(at);
        ptx_async_proxy_fence();
        ptx_named_barrier_sync(GROUP_BARRIER + group, GROUP_THREADS);
        if (threadIdx.x % GROUP_THREADS == 0) {
            for (int half = 0; half < P::OUT_HALVES; half++)
                ptx_store_box(&m.out, q_tile() + half * (GROUP_ROWS * HALF_BYTES), half * 64,
                              at.first_row + group * GROUP_ROWS, at.head, at.batch);
            ptx_store_box_wait_read();
            ptx_barrier_arrive(ptx_shared_address(&s.q_empty));
        }
    }

    __device__ __forceinline__ void rows_of_block(const position &at)
    {
#pragma unroll
        for (int i = 0; i < D / 2; i++) rows.out[i] = 0.0f;
        rows.reference[0] = rows.reference[1] = -INFINITY;
        rows.sum[0] = rows.sum[1] = 0.0f;
        first_tile(at);
        int index = at.key_tiles - 2;
        for (; index >= at.key_tiles - at.masked_tiles; index--) next_tile<true>(at, index);
        for (; index >= 0; index--) next_tile<false>(at, index);
        last_output();
        store_rows(at);
    }

    __device__ __forceinline__ void run()
    {
        unsigned q_parity = 0;
        if (group == P::GROUPS - 1) pass_turn<P>(group);
        for (schedule next(a); next.block != NO_BLOCK; next.advance()) {
            ptx_barrier_wait(ptx_shared_address(&s.q_full), q_parity);
            q_parity ^= 1;
            rows_of_block(locate<P, CAUSAL>(a, next.block));
        }
    }
};

/* ---- the kernel -------------------------------------------------------------------- */

template <typename P>
__device__ __forceinline__ void init_barriers(shared_memory<P> &s)
{
    constexpr uint32_t WARPS = P::GROUPS * (GROUP_THREADS / 32);
    ptx_barrier_init(ptx_shared_address(&s.q_full), 1);
    ptx_barrier_init(ptx_shared_address(&s.q_empty), P::GROUPS);
    for (int stage = 0; stage < STAGES; stage++) {
        ptx_barrier_init(ptx_shared_address(&s.k_full[stage]), 1);
        ptx_barrier_init(ptx_shared_address(&s.v_full[stage]), P::TURNS ? TURNING_WARPS : 1);
        ptx_barrier_init(ptx_shared_address(&s.k_empty[stage]), WARPS);
        ptx_barrier_init(ptx_shared_address(&s.v_empty[stage]), WARPS);
        if constexpr (P::TURNS) {
            ptx_barrier_init(ptx_shared_address(&s.unturned.v_full[stage]), 1);
            ptx_barrier_init(ptx_shared_address(&s.unturned.v_empty[stage]), TURNING_WARPS);
        }
    }
    ptx_barrier_init_fence();
}

__device__ __forceinline__ void prefetch_maps(const maps &m)
{
    ptx_prefetch_tensor_map(&m.q);
    ptx_prefetch_tensor_map(&m.k);
    ptx_prefetch_tensor_map(&m.v);
    ptx_prefetch_tensor_map(&m.out);
}

/* Whether the code that the driver chose has the kernel's body. */
__device__ const int built_for_wgmma = BUILT_FOR_WGMMA;

template <typename T, int D, int GROUPS, bool CAUSAL>
__global__ void __launch_bounds__(plan<D, GROUPS>::THREADS, 1)
    forward_kernel(const __grid_constant__ arguments a, const __grid_constant__ maps m)
{
#if BUILT_FOR_WGMMA
    using P = plan<D, GROUPS, sizeof(T)>;
    extern __shared__ char memory[];
    uint32_t padding = -ptx_shared_address(memory) % ALIGNMENT;
    shared_memory<P> &s = *reinterpret_cast<shared_memory<P> *>(memory + padding);
    if (threadIdx.x == 0) init_barriers(s);
    if (threadIdx.x == 32) prefetch_maps(m);
    __syncthreads();
    if (threadIdx.x < GROUP_THREADS) {
        ptx_registers_give_up<P::LOADER_REGISTERS>();
        if (P::TURNS && __shfl_sync(0xffffffffu, threadIdx.x / 32, 0) > 0)
            turn_everything<D, P, CAUSAL>(a, s);
        else if (threadIdx.x == 0)
            load_everything<D, P, CAUSAL>(a, m, s);
    } else {
        ptx_registers_claim<P::CONSUMER_REGISTERS>();
        consumer<T, D, GROUPS, CAUSAL> work = {a,      m,  s,  consumer_group(), {0, 0},
                                               {0, 0}, {}, {}, {}, {}};
        work.run();
    }
#endif
}

template <typename P>
int encode_maps(const attention_forward_args &args, maps *m)
{
    int code = encode_maps(args.shape, args.dtype,
                           {{&m->q, args.q, args.qkv_strides, GROUP_ROWS},
                            {&m->k, args.k, args.qkv_strides, P::KEYS},
                            {&m->v, args.v, args.qkv_strides, P::KEYS}});
    if (code != KERNEL_OK) return code;
    return encode_maps(args.shape, kernel_result_dtype(args.dtype),
                       {{&m->out, args.out, args.out_strides, GROUP_ROWS}});
}

/* Everything but the order. */
template <typename P>
arguments arguments_of(const attention_forward_args &args, const device_limits &device)
{
    const attention_shape &s = args.shape;
    unsigned heads = static_cast<unsigned>(s.batch * s.heads);
    unsigned row_blocks = static_cast<unsigned>(ceil_div(s.tokens, P::ROWS));
    unsigned multiprocessors = static_cast<unsigned>(device.multiprocessors);
    return {args.lse,
            static_cast<int>(s.tokens),
            static_cast<int>(s.heads),
            heads,
            section_heads_of(heads, s.tokens * s.head_dim * 2 * P::ELEMENT_BYTES, /* K and V */
                             device.l2_bytes),
            row_blocks,
            nullptr,
            (heads * row_blocks + multiprocessors - 1) / multiprocessors,
            attention_scale(s) * ATTENTION_LOG2_E};
}

template <typename P>
bool fits_grid(const attention_shape &s, const device_limits &device)
{
    return attention_fits_grid(ceil_div(s.tokens, P::ROWS) * s.batch * s.heads +
                               device.multiprocessors);
}

/* ---- who does which causal rows ------------------------------------------------ */

/* What prepare leaves for run: the kernel's order, in device memory. */
struct causal_order {
    unsigned *entries;
    unsigned rounds;
};

/* Hands the blocks of rows out in their order, each to the multiprocessor that
 * is first done with what it has: as a queue would, but decided once. A block
 * costs its tiles, and about one more to start and to end. */
template <typename P>
std::vector<unsigned> hand_out(const arguments &a, unsigned grid)
{
    constexpr int BLOCK_COST = 1;
    using turn = std::pair<int64_t, unsigned>; /* done at; multiprocessor */
    std::priority_queue<turn, std::vector<turn>, std::greater<turn>> turns;
    std::vector<std::vector<unsigned>> blocks(grid);
    size_t rounds = 0;
    for (unsigned i = 0; i < grid; i++) turns.push({0, i});
    for (unsigned block = 0; block < a.all_heads * a.row_blocks; block++) {
        turn next = turns.top();
        turns.pop();
        blocks[next.second].push_back(block);
        rounds = std::max(rounds, blocks[next.second].size());
        next.first += locate<P, true>(a, block).key_tiles + BLOCK_COST;
        turns.push(next);
    }
    std::vector<unsigned> order(rounds * grid, NO_BLOCK);
    for (unsigned i = 0; i < grid; i++)
        for (size_t round = 0; round < blocks[i].size(); round++)
            order[round * grid + i] = blocks[i][round];
    return order;
}

/* Waits, because cudaMemcpy returns when a small pageable source has been staged,
 * and run's stream may be one that does not wait for the default stream. */
int upload(const std::vector<unsigned> &order, unsigned **entries)
{
    size_t bytes = order.size() * sizeof order[0];
    cudaError_t error = cudaMalloc(reinterpret_cast<void **>(entries), bytes);
    if (error != cudaSuccess) return error;
    error = cudaMemcpy(*entries, order.data(), bytes, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) error = cudaStreamSynchronize(nullptr);
    if (error != cudaSuccess) cudaFree(*entries);
    return error;
}

/* No state where every multiprocessor has one block at most. */
template <typename P>
int prepare_order(const attention_forward_args &args, void **state)
{
    device_limits device;
    cudaError_t error = current_device(&device);
    if (error != cudaSuccess) return error;
    if (!fits_grid<P>(args.shape, device)) return KERNEL_ERROR_ARGUMENT;
    arguments a = arguments_of<P>(args, device);
    if (a.rounds <= 1) return KERNEL_OK;
    try {
        unsigned grid = static_cast<unsigned>(device.multiprocessors);
        std::vector<unsigned> order = hand_out<P>(a, grid);
        std::unique_ptr<causal_order> made(new causal_order{nullptr, 0});
        made->rounds = static_cast<unsigned>(order.size() / grid);
        int code = upload(order, &made->entries);
        if (code == KERNEL_OK) *state = made.release();
        return code;
    } catch (const std::bad_alloc &) {
        return KERNEL_ERROR_MEMORY;
    }
}

/* ---- launching ------------------------------------------------------------------- */

template <typename T, int D, int GROUPS, bool CAUSAL>
int launch(const attention_forward_args &args, const causal_order *order, kernel_stream stream)
{
    using P = plan<D, GROUPS, sizeof(T)>;
    constexpr int shared_bytes = sizeof(shared_memory<P>) + ALIGNMENT;
    auto kernel = forward_kernel<T, D, GROUPS, CAUSAL>;
    maps m;
    device_limits device;
    cudaError_t error = current_device(&device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     shared_bytes);
    if (error != cudaSuccess) return error;
    int code = encode_maps<P>(args, &m);
    if (code != KERNEL_OK) return code;
    if (!fits_grid<P>(args.shape, device)) return KERNEL_ERROR_ARGUMENT;
    arguments a = arguments_of<P>(args, device);
    if (order) {
        a.order = order->entries;
        a.rounds = order->rounds;
    }
    unsigned grid = std::min(a.all_heads * a.row_blocks, unsigned(device.multiprocessors));
    kernel<<<grid, P::THREADS, shared_bytes, stream>>>(a, m);
    return cudaGetLastError();
}

/* Two groups at head_dim 64 for causal contexts up to this; measured at 1024 and
 * 4096 tokens on an H100, where they are faster and slower than three. */
constexpr int64_t SHORT_CONTEXT = 2048;

bool takes_two_groups(const attention_shape &s)
{
    return s.head_dim > 64 || (s.causal && s.tokens <= SHORT_CONTEXT);
}

template <typename T>
int launch_shape(const attention_forward_args &args, const void *state, kernel_stream stream)
{
    const causal_order *order = static_cast<const causal_order *>(state);
    const attention_shape &s = args.shape;
    if (s.head_dim == 128)
        return s.causal ? launch<T, 128, 2, true>(args, order, stream)
                        : launch<T, 128, 2, false>(args, order, stream);
    if constexpr (sizeof(T) == 2)
        if (s.head_dim == 80)
            return s.causal ? launch<T, 80, 2, true>(args, order, stream)
                            : launch<T, 80, 2, false>(args, order, stream);
    if (!s.causal) return launch<T, 64, 3, false>(args, order, stream);
    return takes_two_groups(s) ? launch<T, 64, 2, true>(args, order, stream)
                               : launch<T, 64, 3, true>(args, order, stream);
}

template <int BYTES>
int prepare_shape(const attention_forward_args &args, void **state)
{
    const attention_shape &s = args.shape;
    if (s.head_dim == 128) return prepare_order<plan<128, 2, BYTES>>(args, state);
    if constexpr (BYTES == 2)
        if (s.head_dim == 80) return prepare_order<plan<80, 2>>(args, state);
    return takes_two_groups(s) ? prepare_order<plan<64, 2, BYTES>>(args, state)
                               : prepare_order<plan<64, 3, BYTES>>(args, state);
}

/* What the copy engine and the turning of V ask of e4m3 beyond what they ask of 16 bits. */
const char *e4m3_unsupported(const attention_forward_args &a)
{
    if (a.shape.head_dim == 80) return "wgmma takes head_dim 64 and 128 of e4m3";
    for (int64_t stride : {a.qkv_strides.batch, a.qkv_strides.head, a.qkv_strides.token})
        if (stride % 16 != 0) return "strides of e4m3 must be multiples of 16";
    return nullptr;
}

/* Remembered for the device that was asked last, as a copy cannot be part of a
 * capture, and an error is not. */
bool has_body()
{
    static thread_local int known_device = -1, built;
    int device;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    if (device == known_device) return built;
    known_device = -1;
    if (cudaMemcpyFromSymbol(&built, built_for_wgmma, sizeof built) != cudaSuccess) return false;
    known_device = device;
    return built;
}

} // namespace

const char *attention_wgmma_unsupported_shape(const attention_shape &s)
{
    if (!has_body()) return "wgmma needs code for sm_90a, and this GPU or this build has none";
    if (s.head_dim != 64 && s.head_dim != 80 && s.head_dim != 128)
        return "wgmma takes head_dim 64, 80 and 128";
    return s.tokens > INT32_MAX - 256 ? "wgmma takes fewer than 2^31 - 256 tokens" : nullptr;
}

const char *attention_wgmma_unsupported(const void *args)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    const char *reason = attention_wgmma_unsupported_shape(a.shape);
    if (!reason) reason = attention_forward_is_masked(args);
    if (!reason && a.dtype == KERNEL_E4M3) reason = e4m3_unsupported(a);
    return reason ? reason : attention_strides_unsupported(a.qkv_strides, a.out_strides);
}

int attention_wgmma_prepare(const void *args, void **state)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_wgmma_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    if (!a.shape.causal) return KERNEL_OK;
    return a.dtype == KERNEL_E4M3 ? prepare_shape<1>(a, state) : prepare_shape<2>(a, state);
}

void attention_wgmma_release(void *state)
{
    const causal_order *order = static_cast<const causal_order *>(state);
    cudaFree(order->entries);
    delete order;
}

int attention_wgmma_run(const void *args, void *, void *state, kernel_stream stream)
{
    const attention_forward_args &a = *static_cast<const attention_forward_args *>(args);
    if (!attention_is_valid(a.shape) || attention_wgmma_unsupported(args))
        return KERNEL_ERROR_ARGUMENT;
    switch (a.dtype) {
    case KERNEL_F16: return launch_shape<__half>(a, state, stream);
    case KERNEL_BF16: return launch_shape<__nv_bfloat16>(a, state, stream);
    case KERNEL_E4M3: return launch_shape<__nv_fp8_e4m3>(a, state, stream);
    case KERNEL_F32:
    case KERNEL_TF32:
    case KERNEL_U8: break;
    }
    return KERNEL_ERROR_ARGUMENT;
}
