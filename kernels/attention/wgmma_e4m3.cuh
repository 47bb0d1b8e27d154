/*
 * wgmma_e4m3.cuh - what the forward kernel of sm_90a does otherwise for e4m3: V turned
 * in shared memory, probabilities as operands of bytes, and which columns of the output
 * a thread then has.
 *
 * The depth of a product of e4m3 lies along the rows of both operands, and V's rows are
 * keys: three spare warps of the loading group turn every tile, [128 keys, D] as the copy
 * engine left it into [D, 128 keys]. Matrices of 8 x 8 pairs of bytes are transposed by
 * ldmatrix, bytes are put in their places by byte permutes. Both orders that come out of
 * this are left as they are, because both suit:
 *
 *   Keys within 16: byte 4c + i of a chunk is key {2c, 2c + 1, 2c + 8, 2c + 9}[i]. Those
 *   are the keys whose scores the lane with l % 4 = c has, as two accumulators of 8
 *   columns leave them, and bytes 4c to 4c + 3 are what it holds of the operand.
 *   So probabilities never change lanes.
 *
 *   Columns within 16: the even ones, then the odd ones, because the rows that one
 *   stmatrix writes then follow each other in all eight chunks. A lane has columns 4c to
 *   4c + 3 of the output, next to each other.
 *
 * The tensor cores add to e4m3's sums with few bits: each of the steps of 32 keys lost about
 * 2^-11 of a sum that only grows (seen on an H200: of values that are all 1, 0.6 % after 1024
 * keys, 13 % after 8192, 24 % after 16384). So a tile's product starts from 0 and is added
 * to the output in f32.
 *
 * Predicted for an H200 at 1.98 GHz: 64 rows by 128 keys are 8192 exponentials, 512 cycles of
 * a multiprocessor, and at head_dim 128 as many of its tensor cores, at 64 half of them. So at
 * most 2140 and 1070 TFLOP/s; with the overlap that bf16 has, 1000 and 600. It is 735 (32 heads
 * of 8192 tokens, full and causal, 1920 to 1950 MHz) and 551 (full; 1980 MHz). Beside bf16 on
 * the same card that is 0.86 and 0.83 of its time (d=128, full and causal), with bf16 held to
 * 1600 to 1725 MHz by the power cap. Adding each tile's product in f32 costs 3 to 5 % of it;
 * rounding by integer operations instead of the conversion was 4 % slower.
 */
#ifndef ATTENTION_WGMMA_E4M3_CUH
#define ATTENTION_WGMMA_E4M3_CUH

#include "wgmma.cuh"

constexpr int TURNING_WARPS = 3; /* the loading group's but the one that loads */

/* 16 keys of a tile from chunk * 16 on, as bytes of chunk `chunk` of the turned tile's rows.
 * A unit is 32 columns: two chunks of V's rows by two matrices of keys. Two at a time, as the
 * warps have few registers. */
template <int D>
__device__ __forceinline__ void turn_keys(uint32_t tile, uint32_t turned, int chunk)
{
    uint32_t lane = threadIdx.x % 32, swizzle = lane % 8;
    uint32_t from = tile + (chunk * 16 + lane % 16) * HALF_BYTES;
    uint32_t to = turned + lane * HALF_BYTES + ((chunk ^ swizzle) << 4);
#pragma unroll 1
    for (int first = 0; first < D / 32; first += 2) {
        uint32_t pairs[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            ptx_load_matrix_x4_transposed(
                pairs[i], from + ((((first + i) * 2 + lane / 16) ^ swizzle) << 4));
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t(&p)[4] = pairs[i];
            uint32_t columns[4] = {
                __byte_perm(p[0], p[1], 0x6420), __byte_perm(p[0], p[1], 0x7531),
                __byte_perm(p[2], p[3], 0x6420), __byte_perm(p[2], p[3], 0x7531)};
            ptx_store_matrix_x4(to + (first + i) * (32 * HALF_BYTES), columns);
        }
    }
}

/* One turning warp's part of a tile. */
template <int D, int KEYS>
__device__ __forceinline__ void turn_tile(uint32_t tile, uint32_t turned)
{
    static_assert(KEYS == HALF_BYTES, "a row of the turned tile is one swizzled row");
    for (int chunk = threadIdx.x / 32 - 1; chunk < KEYS / 16; chunk += TURNING_WARPS)
        turn_keys<D>(tile, turned, chunk);
}

/* sums = a b, of a turned tile b: a group of wgmma of its own. */
template <int D, int KEYS>
__device__ __forceinline__ void issue_product_of_turned(const uint32_t (&a)[KEYS / 32][4],
                                                        uint32_t b, float (&sums)[D / 2])
{
    shared_operand<false> columns = {b, 16};
    ptx_wgmma_fence();
#pragma unroll
    for (int step = 0; step < KEYS / 32; step++)
        ptx_wgmma_registers(sums, a[step], columns.behind(step * STEP_BYTES), step > 0,
                            __nv_fp8_e4m3());
    ptx_wgmma_commit();
}

/* Four accumulators of 8 columns are the A operand of a step of 32, its keys in the turned
 * tile's order. */
template <int COUNT>
__device__ __forceinline__ void round_sums_e4m3(const float (&sums)[COUNT],
                                                uint32_t (&rounded)[COUNT / 16][4])
{
#pragma unroll
    for (int step = 0; step < COUNT / 16; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *low = sums + step * 16 + i / 2 * 8 + i % 2 * 2, *high = low + 4;
            rounded[step][i] = ptx_pack_e4m3(low[0], low[1], high[0], high[1]);
        }
}

#endif
