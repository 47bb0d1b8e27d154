/*
 * backward_wgmma.cuh - how the work of backward_wgmma.cu is divided, and what a thread
 * block holds of it: blocks of keys, the pieces that some are cut into, shared memory.
 */
#ifndef ATTENTION_BACKWARD_WGMMA_CUH
#define ATTENTION_BACKWARD_WGMMA_CUH

#include "backward.cuh"
#include "wgmma.cuh"

namespace {

constexpr int GROUPS = 2; /* of consumers */
constexpr int KEYS = GROUPS * GROUP_ROWS;
constexpr int THREADS = (GROUPS + 1) * GROUP_THREADS;
constexpr int LOADER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

constexpr unsigned NO_BLOCK = ~0u;

/* How many queries a tile has: what registers hold beside dk and dv. A tile of 128
 * has one half, so that its rows from 64 on are a tile of their own. */
template <int D>
constexpr int queries = D == 64 ? 128 : 64;

/* What is taken at a time: a block of keys, and of its tiles of queries so many from
 * `first` on, or all where `tiles` is 0. */
struct piece {
    unsigned block;
    int first, tiles;
};

template <int D>
struct shared_memory {
    static constexpr int QUERIES = queries<D>;
    static constexpr int ROW_BYTES = halves_of<D> * HALF_BYTES;
    char k[STAGES][KEYS * ROW_BYTES], v[STAGES][KEYS * ROW_BYTES]; /* in the end dk and dv */
    char q[STAGES][QUERIES * ROW_BYTES], dout[STAGES][QUERIES * ROW_BYTES];
    char gradients[STAGES][KEYS * QUERIES * 2]; /* of the scores: a row per key */
    float rows[STAGES][QUERIES * 2];            /* of 64: -lse log2(e), then delta */
    piece work[STAGES];                         /* what these keys are for */
    bool is_complete[STAGES][GROUPS];           /* whether dk and dv are to be stored */
    unsigned arrival[GROUPS];
    uint64_t k_full[STAGES], v_full[STAGES], sums_full[STAGES];
    uint64_t q_full[STAGES], q_empty[STAGES], dout_full[STAGES], dout_empty[STAGES];
};

/* Blocks of equal length come out even on all multiprocessors but for the last ones,
 * fewer than these. Their tiles of queries, one block's behind the other's, are cut into
 * as many parts as there are multiprocessors, so that all end together. */
struct split {
    unsigned whole_blocks;  /* of keys */
    int block_tiles, tiles; /* of queries: of a block, and of those that are cut */
    int part_tiles;         /* 0: none are cut */
    unsigned parts;
};

struct arguments : backward_arguments {
    int heads;
    unsigned all_heads, section_heads; /* batch * heads; of them in a section */
    unsigned key_blocks;               /* per head */
    split cut;
    float4 *sums;      /* workspace: of parts, dk and dv of a piece that is not its block's last */
    unsigned *arrived; /* workspace: how many pieces of a block and group have come, and of
                          these how many have left their sums */
};

struct maps {
    CUtensorMap q, k, v, dout, dk, dv;
};

/* A block's keys, and the queries that a piece of it is about: from first_query, in
 * tiles. */
struct position {
    int head, batch;
    unsigned index; /* of the head, in the whole batch */
    int first_key, keys_left;
    int first_query, tiles, masked_tiles;
};

/* Causal blocks come the longest first as they are. */
template <int D, bool CAUSAL>
__device__ __forceinline__ position locate(const arguments &a, const piece &work)
{
    head_block place = head_block_of(work.block, a.all_heads, a.section_heads, a.key_blocks);
    int tokens = static_cast<int>(a.tokens);
    position at;
    at.index = place.head;
    at.batch = static_cast<int>(at.index) / a.heads;
    at.head = static_cast<int>(at.index) - at.batch * a.heads;
    at.first_key = static_cast<int>(place.block) * KEYS;
    at.keys_left = tokens - at.first_key;
    at.first_query = CAUSAL ? at.first_key : work.first * queries<D>;
    at.tiles = !CAUSAL && work.tiles > 0 ? work.tiles
                                         : (tokens - at.first_query + queries<D> - 1) / queries<D>;
    at.masked_tiles = CAUSAL ? KEYS / queries<D> : at.keys_left < KEYS ? at.tiles : 0;
    return at;
}

/* Where a piece is in a block that is cut. */
struct share {
    unsigned others; /* pieces of the block */
    unsigned sums;   /* where the first of these is in arguments::sums */
};

__device__ __forceinline__ share share_of(const split &cut, unsigned block)
{
    if (cut.part_tiles == 0 || block < cut.whole_blocks) return {0, 0};
    int first = static_cast<int>(block - cut.whole_blocks) * cut.block_tiles;
    int first_part = first / cut.part_tiles;
    int last_part = (first + cut.block_tiles - 1) / cut.part_tiles;
    return {static_cast<unsigned>(last_part - first_part), static_cast<unsigned>(first_part)};
}

/* Taken from lane 0, so that the compiler knows it to be one for all lanes. */
__device__ __forceinline__ piece uniform(const piece &work)
{
    return {__shfl_sync(0xffffffffu, work.block, 0), __shfl_sync(0xffffffffu, work.first, 0),
            __shfl_sync(0xffffffffu, work.tiles, 0)};
}

} // namespace

#endif
