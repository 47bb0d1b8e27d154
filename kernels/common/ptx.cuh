/*
 * ptx.cuh - one wrapper per PTX instruction that CUDA C++ has no word for.
 * sm_80 and later, the last part sm_90a: the kernels that use them have bodies
 * only there, see BUILT_FOR_MMA. Shared memory addresses are 32-bit, from
 * ptx_shared_address.
 */
#ifndef KERNEL_PTX_CUH
#define KERNEL_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

/* Whether this is code for a GPU that has the instructions of the first part. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define BUILT_FOR_MMA 0
#pragma nv_diag_suppress 177 /* kernels have no bodies: what only they use is never referenced */
#else
#define BUILT_FOR_MMA 1
#endif

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

/* griddepcontrol.wait: until the kernel before, in front of whose end launch_early let this
 * one start, has ended and what it wrote can be read. Nothing where kernels only follow. */
__device__ __forceinline__ void ptx_wait_for_kernel_before()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* griddepcontrol.launch_dependents: as far as this block is concerned, the kernel behind
 * may start, if it was launched early. Without it that is so when the block has ended. */
__device__ __forceinline__ void ptx_let_kernel_behind_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* No instruction: a value that the compiler can neither derive nor, inside a
 * loop, compute before it. */
__device__ __forceinline__ uint32_t ptx_opaque(uint32_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* ---- sm_90a: barriers in shared memory, the copy engine, wgmma ---------------- */

/* mbarrier.init: a barrier of 8 bytes whose phase ends after `arrivals`. */
__device__ __forceinline__ void ptx_barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* fence.mbarrier_init: initialized barriers are visible to the copy engine. */
__device__ __forceinline__ void ptx_barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* mbarrier.arrive: one arrival. */
__device__ __forceinline__ void ptx_barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* mbarrier.arrive.expect_tx: one arrival, and the phase waits for so many bytes
 * of the copy engine. */
__device__ __forceinline__ void ptx_barrier_arrive_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

/* mbarrier.try_wait: until the phase of this parity has ended. The phase before
 * the first has parity 1 and has ended. */
__device__ __forceinline__ void ptx_barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "wait:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra wait;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* bar.sync: waits until `threads` of the block have come to barrier id, 1 to 15. */
__device__ __forceinline__ void ptx_named_barrier_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* bar.arrive: comes to it and goes on. */
__device__ __forceinline__ void ptx_named_barrier_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* cp.async.bulk.tensor: a box of a tensor of 4 dimensions to shared memory,
 * what lies outside as 0; its bytes count for the barrier. */
__device__ __forceinline__ void ptx_load_box(uint32_t shared, const void *tensor_map,
                                             uint32_t barrier, int x, int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
                 "l"(tensor_map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* cp.async.bulk: so many bytes, a multiple of 16, to shared memory; they count
 * for the barrier. Both addresses are multiples of 16. */
__device__ __forceinline__ void ptx_load_bulk(uint32_t shared, const void *global, uint32_t bytes,
                                              uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared),
                 "l"(global), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* cp.async.bulk.tensor: a box from shared memory, what lies outside is left out. */
__device__ __forceinline__ void ptx_store_box(const void *tensor_map, uint32_t shared, int x,
                                              int y, int z, int w)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group "
                 "[%0, {%2, %3, %4, %5}], [%1];" ::"l"(tensor_map),
                 "r"(shared), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

/* cp.async.bulk.commit_group and wait_group.read: until the shared memory of
 * this thread's stores may be written again. */
__device__ __forceinline__ void ptx_store_box_wait_read()
{
    asm volatile("cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* stmatrix: four 8x8 matrices of 16-bit elements, the reverse of
 * ptx_load_matrix_x4. */
__device__ __forceinline__ void ptx_store_matrix_x4(uint32_t shared, const uint32_t (&matrices)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
                 "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
                 : "memory");
}

/* cvt.rn.satfinite.e4m3x2.f32: four values in one register, the first in the lowest byte. */
__device__ __forceinline__ uint32_t ptx_pack_e4m3(float v0, float v1, float v2, float v3)
{
    uint32_t packed;
    asm("{\n"
        ".reg .b16 low, high;\n"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
        "mov.b32 %0, {low, high};\n"
        "}"
        : "=r"(packed)
        : "f"(v0), "f"(v1), "f"(v2), "f"(v3));
    return packed;
}

/* fence.proxy.async: shared memory written by this thread is visible to the
 * copy engine and to wgmma. */
__device__ __forceinline__ void ptx_async_proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* prefetch.tensormap: the map will be used soon. */
__device__ __forceinline__ void ptx_prefetch_tensor_map(const void *tensor_map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(tensor_map) : "memory");
}

/* setmaxnreg: this warpgroup's registers a thread, a multiple of 8. */
template <int REGISTERS>
__device__ __forceinline__ void ptx_registers_give_up()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void ptx_registers_claim()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* wgmma.fence: orders register accesses before the next wgmma. */
__device__ __forceinline__ void ptx_wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* wgmma.commit_group: closes the group of the wgmma so far. */
__device__ __forceinline__ void ptx_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* wgmma.wait_group: until at most PENDING groups are on the way. */
template <int PENDING>
__device__ __forceinline__ void ptx_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* No instruction: the compiler moves no access to these registers across. */
template <int COUNT>
__device__ __forceinline__ void ptx_registers_fence(float (&registers)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(registers[i])::"memory");
}

/* wgmma's matrix descriptor of a tile of 128-byte rows, 128-byte swizzle, at a
 * multiple of 1024 bytes. Groups of 8 rows lie behind each other. Operand with
 * the products' depth along the row: 32 bytes on for each step of 16. Operand
 * with the depth down the rows: 2048 bytes on for each step, and block_bytes is
 * from 64 columns to the next 64. */
__device__ __forceinline__ uint64_t ptx_wgmma_descriptor(uint32_t shared, uint32_t block_bytes)
{
    constexpr uint64_t SWIZZLE_128 = uint64_t(1) << 62, GROUP_BYTES = 1024;
    return SWIZZLE_128 | GROUP_BYTES >> 4 << 32 | uint64_t(block_bytes >> 4) << 16 |
           (shared & 0x3ffff) >> 4;
}

/* The descriptor of what lies `bytes` behind, a multiple of 16: one addition to the
 * lower word, whose address field of 14 bits no shared memory overflows. From an
 * address the compiler would shift, mask and join for every product. */
__device__ __forceinline__ uint64_t ptx_wgmma_descriptor_behind(uint64_t descriptor,
                                                                uint32_t bytes)
{
    uint32_t low = static_cast<uint32_t>(descriptor) + (bytes >> 4);
    return descriptor >> 32 << 32 | low;
}

#define PTX_OPERANDS_0_TO_31 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PTX_OPERANDS_32_TO_39 "%32, %33, %34, %35, %36, %37, %38, %39"
#define PTX_OPERANDS_32_TO_63 \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PTX_SUMS_8(d, i)                                                                       \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define PTX_SUMS_32(d, i) \
    PTX_SUMS_8(d, i), PTX_SUMS_8(d, i + 8), PTX_SUMS_8(d, i + 16), PTX_SUMS_8(d, i + 24)

/* One form of wgmma with both operands in shared memory, see below. */
#define PTX_WGMMA_SHARED(FUNCTION, DEPTH, TRANSPOSED, COLUMNS, TYPE, NAME, OPERANDS, A, B, ADD,   \
                         ...)                                                                    \
    __device__ __forceinline__ void FUNCTION(float(&d)[COLUMNS / 2], uint64_t a, uint64_t b,     \
                                             int accumulate, TYPE)                               \
    {                                                                                            \
        asm volatile("{\n"                                                                       \
                     ".reg .pred add;\n"                                                         \
                     "setp.ne.b32 add, " ADD ", 0;\n"                                            \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS DEPTH ".f32." NAME "." NAME    \
                     " {" OPERANDS "}, " A ", " B ", add, 1, 1" TRANSPOSED ";\n"                 \
                     "}"                                                                         \
                     : __VA_ARGS__                                                               \
                     : "l"(a), "l"(b), "r"(accumulate));                                         \
    }

/* The form with a in registers. */
#define PTX_WGMMA_REGISTERS(DEPTH, TRANSPOSED, COLUMNS, TYPE, NAME, OPERANDS, A0, A1, A2, A3, B,  \
                            ADD, ...)                                                            \
    __device__ __forceinline__ void ptx_wgmma_registers(                                         \
        float(&d)[COLUMNS / 2], const uint32_t(&a)[4], uint64_t b, int accumulate, TYPE)         \
    {                                                                                            \
        asm volatile("{\n"                                                                       \
                     ".reg .pred add;\n"                                                         \
                     "setp.ne.b32 add, " ADD ", 0;\n"                                            \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS DEPTH ".f32." NAME "." NAME    \
                     " {" OPERANDS "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B                     \
                     ", add, 1, 1" TRANSPOSED ";\n"                                              \
                     "}"                                                                         \
                     : __VA_ARGS__                                                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));     \
    }

/* The three forms for one number of columns and one type of 16 bits, see below. */
#define PTX_WGMMA(COLUMNS, TYPE, NAME, OPERANDS, A0, A1, A2, A3, A4, A5, ...)                    \
    PTX_WGMMA_SHARED(ptx_wgmma_shared, "k16", ", 0, 0", COLUMNS, TYPE, NAME, OPERANDS, A0, A1,   \
                     A2, __VA_ARGS__)                                                            \
    PTX_WGMMA_SHARED(ptx_wgmma_shared_transposed, "k16", ", 1, 1", COLUMNS, TYPE, NAME,          \
                     OPERANDS, A0, A1, A2, __VA_ARGS__)                                          \
    PTX_WGMMA_REGISTERS("k16", ", 1", COLUMNS, TYPE, NAME, OPERANDS, A0, A1, A2, A3, A4, A5,     \
                        __VA_ARGS__)

/* The two that e4m3 has. */
#define PTX_WGMMA_E4M3(COLUMNS, OPERANDS, A0, A1, A2, A3, A4, A5, ...)                           \
    PTX_WGMMA_SHARED(ptx_wgmma_shared, "k32", "", COLUMNS, __nv_fp8_e4m3, "e4m3", OPERANDS, A0,  \
                     A1, A2, __VA_ARGS__)                                                        \
    PTX_WGMMA_REGISTERS("k32", "", COLUMNS, __nv_fp8_e4m3, "e4m3", OPERANDS, A0, A1, A2, A3, A4, \
                        A5, __VA_ARGS__)

/* wgmma.mma_async m64nNk16, f32 accumulators: d[64, N] (+)= a[64, 16] b[16, N].
 * Warp w of the warpgroup holds rows 16w to 16w+15, each as N/8 m16n8
 * accumulators of mma.sync behind each other.
 * ptx_wgmma_shared: both operands by descriptors, depth along their rows.
 * ptx_wgmma_shared_transposed: the same with the depth down their rows.
 * ptx_wgmma_registers: a as mma.sync's operand, b by descriptor, depth down its
 * rows. Sums are added to, or overwritten where accumulate is 0. The last argument's type
 * is the elements'.
 *
 * Of e4m3 a step is m64nNk32, as many bytes, and the depth is along the rows of both
 * operands. a in registers: lane l holds, with r = l/4 and c = 4(l%4), rows r, r+8, r,
 * r+8 of columns c to c+3 (first two) and c+16 to c+19. */
PTX_WGMMA(64, __nv_bfloat16, "bf16",
          PTX_OPERANDS_0_TO_31, "%32", "%33", "%34", "%35", "%36", "%37",
          PTX_SUMS_32(d, 0))
PTX_WGMMA(64, __half, "f16",
          PTX_OPERANDS_0_TO_31, "%32", "%33", "%34", "%35", "%36", "%37",
          PTX_SUMS_32(d, 0))
PTX_WGMMA(80, __nv_bfloat16, "bf16",
          PTX_OPERANDS_0_TO_31 ", " PTX_OPERANDS_32_TO_39, "%40", "%41", "%42", "%43", "%44", "%45",
          PTX_SUMS_32(d, 0), PTX_SUMS_8(d, 32))
PTX_WGMMA(80, __half, "f16",
          PTX_OPERANDS_0_TO_31 ", " PTX_OPERANDS_32_TO_39, "%40", "%41", "%42", "%43", "%44", "%45",
          PTX_SUMS_32(d, 0), PTX_SUMS_8(d, 32))
PTX_WGMMA(128, __nv_bfloat16, "bf16",
          PTX_OPERANDS_0_TO_31 ", " PTX_OPERANDS_32_TO_63, "%64", "%65", "%66", "%67", "%68", "%69",
          PTX_SUMS_32(d, 0), PTX_SUMS_32(d, 32))
PTX_WGMMA(128, __half, "f16",
          PTX_OPERANDS_0_TO_31 ", " PTX_OPERANDS_32_TO_63, "%64", "%65", "%66", "%67", "%68", "%69",
          PTX_SUMS_32(d, 0), PTX_SUMS_32(d, 32))

PTX_WGMMA_E4M3(64, PTX_OPERANDS_0_TO_31, "%32", "%33", "%34", "%35", "%36", "%37",
               PTX_SUMS_32(d, 0))
PTX_WGMMA_E4M3(128, PTX_OPERANDS_0_TO_31 ", " PTX_OPERANDS_32_TO_63, "%64", "%65", "%66", "%67",
               "%68", "%69", PTX_SUMS_32(d, 0), PTX_SUMS_32(d, 32))

#undef PTX_WGMMA
#undef PTX_WGMMA_E4M3
#undef PTX_WGMMA_SHARED
#undef PTX_WGMMA_REGISTERS
#undef PTX_SUMS_8
#undef PTX_SUMS_32
#undef PTX_OPERANDS_0_TO_31
#undef PTX_OPERANDS_32_TO_39
#undef PTX_OPERANDS_32_TO_63

#endif
