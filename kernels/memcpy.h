/*
 * memcpy.h - moving and setting bytes: between host and device, inside the
 * device, inside the host.
 */
#ifndef KERNEL_MEMCPY_H
#define KERNEL_MEMCPY_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies: bytes from src to dst, which do not overlap; value is not used.
 * Sets: each of bytes at dst becomes (unsigned char)value; src is not used.
 * Any alignment and any size, 0 included. */
typedef struct memcpy_args {
    void *dst;
    const void *src;
    size_t bytes;
    int value;
} memcpy_args;

/* Bytes that a case counts, so that GB/s means what the device's memory (or
 * the link) carries:
 *   copy inside one memory (d2d, or host to host): read and written, 2 * bytes;
 *   h2d and d2h: bytes, each crosses the link once;
 *   set: bytes, written only.
 * A 2 * bytes that does not fit is UINT64_MAX. */
uint64_t memcpy_copy_bytes(size_t bytes);
uint64_t memcpy_transfer_bytes(size_t bytes);
uint64_t memcpy_memset_bytes(size_t bytes);

/* h2d and d2h: rows `pinned` and `pageable`. Both enqueue cudaMemcpyAsync; the
 * name says which host memory the caller has to give (cudaHostAlloc or
 * malloc), and pageable synchronizes inside the call: the driver stages
 * through its own pinned buffers. `pageable` cannot be captured into a graph. */
extern const kernel_table memcpy_h2d_cuda;
extern const kernel_table memcpy_d2h_cuda;

/* d2d: rows `memcpy` (cudaMemcpyAsync) and `vectorized` (own kernel).
 * memset: rows `memset` (cudaMemsetAsync) and `vectorized`. */
extern const kernel_table memcpy_d2d_cuda;
extern const kernel_table memcpy_memset_cuda;

/* Host: rows `memcpy` and `loop`, `memset` and `loop`: the C library's
 * against a plain loop over 8-byte words. */
extern const kernel_table memcpy_copy_cpu;
extern const kernel_table memcpy_memset_cpu;

#ifdef __cplusplus
}
#endif
#endif
