/*
 * ptx.cuh - one wrapper per PTX instruction that CUDA C++ has no word for.
 * sm_80 and later. Shared memory addresses are 32-bit, from ptx_shared_address.
 */
#ifndef KERNEL_PTX_CUH
#define KERNEL_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* The shared-window address of a generic pointer into shared memory. */
__device__ __forceinline__ uint32_t ptx_shared_address(const void *pointer)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/* cp.async: 16 bytes from global to shared memory past the registers and the
 * L1 cache; of the source only source_bytes (0 to 16) are read, the rest of
 * the destination becomes 0, so with 0 the source may lie anywhere. Both
 * addresses are multiples of 16. */
__device__ __forceinline__ void ptx_copy_async_16(uint32_t shared, const void *global,
                                                  int source_bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(source_bytes)
                 : "memory");
}

/* cp.async.commit_group: closes the group of this thread's copies so far. */
__device__ __forceinline__ void ptx_copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* cp.async.wait_all: waits for every copy of this thread. */
__device__ __forceinline__ void ptx_copy_async_wait_all()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* cp.async.wait_group: waits for all groups of this thread but the last PENDING. */
template <int PENDING>
__device__ __forceinline__ void ptx_copy_async_wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ldmatrix: four 8x8 matrices of 16-bit elements. Lanes 8i to 8i+7 give the
 * addresses of the eight 16-byte rows of matrix i; lane l gets elements 2(l%4)
 * and 2(l%4)+1 of row l/4 of each. */
__device__ __forceinline__ void ptx_load_matrix_x4(uint32_t (&matrices)[4], uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared)
                 : "memory");
}

/* ldmatrix.trans: the same with each 8x8 matrix transposed on the way. */
__device__ __forceinline__ void ptx_load_matrix_x4_transposed(uint32_t (&matrices)[4],
                                                              uint32_t shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
                 : "r"(shared)
                 : "memory");
}

/* mma.sync m16n8k16, f32 accumulators: d[16, 8] += a[16, 16] b[16, 8]. Lane l
 * holds, with r = l/4 and c = 2(l%4):
 *   a: rows r, r+8, r, r+8 of columns c, c+1 (first two) and c+8, c+9;
 *   b: rows c, c+1 and c+8, c+9 of column r;
 *   d: columns c, c+1 of row r, then of row r+8.
 * The tag chooses the element type. */
__device__ __forceinline__ void ptx_mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1, __nv_bfloat16)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ptx_mma_16x8x16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                uint32_t b1, __half)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* cvt.rn.bf16x2.f32 and cvt.rn.f16x2.f32: two values in one register, low in
 * the lower half. The tag chooses the element type. */
__device__ __forceinline__ uint32_t ptx_pack(float low, float high, __nv_bfloat16)
{
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

__device__ __forceinline__ uint32_t ptx_pack(float low, float high, __half)
{
    uint32_t packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

/* red.global.add: adds four values to 16 bytes of memory, atomically each, and
 * returns nothing. One instruction from sm_90 on, four before. Concurrent adds
 * come in any order, so sums differ in their last bits from run to run. */
__device__ __forceinline__ void ptx_add_to_global(float *sums, const float (&values)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums), "f"(values[0]),
                 "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
#else
#pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("red.global.add.f32 [%0], %1;" ::"l"(sums + i), "f"(values[i]) : "memory");
#endif
}

/* ex2.approx.ftz: 2^x to 2 units in the last place, 0 for -infinity; exp2f
 * without its handling of subnormal results. */
__device__ __forceinline__ float ptx_exp2(float x)
{
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/* No instruction: a value that the compiler can neither derive nor, inside a
 * loop, compute before it. */
__device__ __forceinline__ uint32_t ptx_opaque(uint32_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

#endif
