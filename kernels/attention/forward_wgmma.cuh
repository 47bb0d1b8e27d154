/*
 * forward_wgmma.cuh - how the work of wgmma.cu is divided, and what a thread block holds
 * of it: blocks of rows, tiles of keys, shared memory.
 */
#ifndef ATTENTION_FORWARD_WGMMA_CUH
#define ATTENTION_FORWARD_WGMMA_CUH

#include "wgmma.cuh"

namespace {

/* How a block is cut: GROUPS consumers, as many as registers hold. At head_dim
 * 64 that is three, but where rows are few and causal two waste less beyond the
 * diagonal and beyond the last token. More than 128 keys a tile are no faster
 * at head_dim 128. */
template <int D, int GROUP_COUNT, int BYTES = 2>
struct plan {
    static constexpr int GROUPS = GROUP_COUNT;
    static constexpr int THREADS = (GROUPS + 1) * GROUP_THREADS;
    static constexpr int ROWS = GROUPS * GROUP_ROWS;
    static constexpr int KEYS = 128;
    static constexpr int ELEMENT_BYTES = BYTES;
    static constexpr bool TURNS = BYTES == 1; /* V, see wgmma_e4m3.cuh */
    static constexpr int HALVES = halves_of<D, BYTES>;
    static constexpr int OUT_HALVES = halves_of<D>;
    static constexpr int Q_BYTES = GROUP_ROWS * HALVES * HALF_BYTES;
    static constexpr int ROWS_BYTES = GROUP_ROWS * OUT_HALVES * HALF_BYTES;
    static constexpr int TILE_BYTES = KEYS * HALVES * HALF_BYTES;
    /* Together no more than the block starts with, 168 or 128 a thread: else the consumers
     * wait for registers that nobody gives up. */
    static constexpr int LOADER_REGISTERS = GROUPS == 3 ? 32 : TURNS ? 40 : 24;
    static constexpr int CONSUMER_REGISTERS = GROUPS == 3 ? 160 : TURNS ? 232 : 240;
    static_assert(LOADER_REGISTERS + GROUPS * CONSUMER_REGISTERS <=
                      (GROUPS + 1) * (GROUPS == 3 ? 128 : 168),
                  "setmaxnreg");
};

/* V as the copy engine leaves it where it is turned before it is multiplied. */
template <typename P, bool = P::TURNS>
struct unturned_tiles {
};

template <typename P>
struct unturned_tiles<P, true> {
    alignas(ALIGNMENT) char v[STAGES][P::TILE_BYTES];
    uint64_t v_full[STAGES], v_empty[STAGES];
};

template <typename P>
struct shared_memory {
    char q[P::GROUPS][P::ROWS_BYTES]; /* each group's rows become its rows of the output */
    char k[STAGES][P::TILE_BYTES];
    char v[STAGES][P::TILE_BYTES];
    uint64_t q_full, q_empty;
    uint64_t k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
    unturned_tiles<P> unturned;
};

/* Blocks of rows are taken section by section: the heads of a section have
 * their K and V in the L2 cache while all multiprocessors work on them. */
struct arguments {
    float *lse;
    int tokens, heads;
    unsigned all_heads, section_heads; /* batch * heads; of them in a section */
    unsigned row_blocks;               /* per head */
    const unsigned *order;             /* [rounds, gridDim.x]; NULL: one after the other */
    unsigned rounds;
    float log2_scale; /* scores times this are exponents of 2 */
};

struct maps {
    CUtensorMap q, k, v, out;
};

struct position {
    int head, batch, first_row;
    unsigned index; /* of the head, in the whole batch */
    int key_tiles, masked_tiles;
};

/* What the rows from first_row on see. */
template <typename P, bool CAUSAL>
__host__ __device__ constexpr int key_tiles(int first_row, int tokens)
{
    int keys = CAUSAL && first_row + P::ROWS < tokens ? first_row + P::ROWS : tokens;
    return (keys + P::KEYS - 1) / P::KEYS;
}

/* Of causal rows the longest first, so that the short ones fill the end. */
template <typename P, bool CAUSAL>
__host__ __device__ __forceinline__ position locate(const arguments &a, unsigned block)
{
    head_block place = head_block_of(block, a.all_heads, a.section_heads, a.row_blocks);
    unsigned row_block = CAUSAL ? a.row_blocks - 1 - place.block : place.block;
    position at;
    at.index = place.head;
    at.batch = static_cast<int>(at.index) / a.heads;
    at.head = static_cast<int>(at.index) - at.batch * a.heads;
    at.first_row = static_cast<int>(row_block) * P::ROWS;
    at.key_tiles = key_tiles<P, CAUSAL>(at.first_row, a.tokens);
    at.masked_tiles = at.key_tiles - (CAUSAL ? at.first_row : a.tokens) / P::KEYS;
    return at;
}

constexpr unsigned NO_BLOCK = ~0u;

/* Which blocks of rows this block does. The order's next entry is read while the
 * present one is worked on; its first row is the blocks' own numbers. */
struct schedule {
    const arguments &a;
    unsigned round, block, upcoming;

    __device__ __forceinline__ explicit schedule(const arguments &arguments)
        : a(arguments), round(1), block(blockIdx.x), upcoming(entry())
    {
    }

    __device__ __forceinline__ unsigned entry() const
    {
        unsigned index = round * gridDim.x + blockIdx.x;
        if (round >= a.rounds) return NO_BLOCK;
        if (a.order) return a.order[index];
        return index < a.all_heads * a.row_blocks ? index : NO_BLOCK;
    }

    __device__ __forceinline__ void advance()
    {
        block = upcoming;
        round++;
        upcoming = entry();
    }
};

} // namespace

#endif
