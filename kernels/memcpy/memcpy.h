/*
 * memcpy.h - moving and setting bytes: between host and device, inside the
 * device, inside the host, between two devices; and two such things at once.
 */
#ifndef KERNEL_MEMCPY_H
#define KERNEL_MEMCPY_H

#include "../common/kernel.h"

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

/* h2d and d2h: rows `pinned`, `pageable`, `registered` and `kernel`. The name
 * says which host memory the caller has to give: `pageable` and `registered`
 * malloc's, the others cudaHostAlloc's. `kernel` reads or writes it from a
 * kernel (unified addressing maps it at the same address), the others enqueue
 * cudaMemcpyAsync. `pageable` synchronizes inside the call, the driver stages
 * through its own pinned buffers, and it cannot be captured into a graph.
 * The _basic tables hold the rows `pinned` and `pageable` only. */
extern const kernel_table memcpy_h2d_cuda, memcpy_h2d_basic_cuda;
extern const kernel_table memcpy_d2h_cuda, memcpy_d2h_basic_cuda;

/* Bytes that `registered` needs of host memory, aligned to
 * MEMCPY_REGISTERED_ALIGNMENT, for a copy of so many: prepare registers that
 * much. The driver locks pages, and a later copy must not begin inside of what
 * is locked and end outside; neighbours that start at multiples of the
 * alignment never share a range with what is locked. SIZE_MAX if it does not fit. */
#define MEMCPY_REGISTERED_ALIGNMENT 512
size_t memcpy_registered_bytes(size_t bytes);

/* d2d: rows `memcpy` (cudaMemcpyAsync) and `vectorized` (own kernel).
 * memset: rows `memset` (cudaMemsetAsync) and `vectorized`. */
extern const kernel_table memcpy_d2d_cuda;
extern const kernel_table memcpy_memset_cuda;

/* Both directions: two copies between page-locked host memory and the device,
 * one each way. Rows `serial` (one after the other) and `overlapped` (at the
 * same time, d2h on a second stream). What counts is the sum of both
 * directions, UINT64_MAX if it does not fit: a link that carries both at once
 * shows up to twice the GB/s of one. */
typedef struct memcpy_bidirectional_args {
    memcpy_args h2d, d2h;
} memcpy_bidirectional_args;

uint64_t memcpy_bidirectional_bytes(size_t h2d_bytes, size_t d2h_bytes);
extern const kernel_table memcpy_bidirectional_cuda;

/* A copy from page-locked host memory beside a kernel that only computes: rows
 * `copy_alone`, `kernel_alone`, `serial` (the copy, then the kernel) and
 * `overlapped` (the copy on a second stream). All do the same work, or the half
 * that they name: the kernel does MEMCPY_OVERLAP_FMAS_PER_BYTE f32 fused
 * multiply-adds for each byte of the copy, the ratio of a recent data centre
 * GPU's arithmetic to its link, so that both take about as long.
 *
 * Each of memcpy_overlap_results(copy.bytes) results is a chain of
 * MEMCPY_OVERLAP_CHAIN of them, x = DECAY * x + GAIN, so slow to approach its
 * limit that start and length show in what it ends with: memcpy_overlap_result,
 * to the bit, because each step is rounded once. */
enum {
    MEMCPY_OVERLAP_FMAS_PER_BYTE = 512,
    MEMCPY_OVERLAP_BYTES_PER_RESULT = 8,
    MEMCPY_OVERLAP_CHAIN = MEMCPY_OVERLAP_FMAS_PER_BYTE * MEMCPY_OVERLAP_BYTES_PER_RESULT,
    MEMCPY_OVERLAP_STARTS = 256 /* result i starts as result i % STARTS does */
};
#define MEMCPY_OVERLAP_DECAY (1 - 1.0f / MEMCPY_OVERLAP_CHAIN)
#define MEMCPY_OVERLAP_GAIN (1.0f / MEMCPY_OVERLAP_CHAIN)
#define MEMCPY_OVERLAP_START(i) (2 + (float)((i) % MEMCPY_OVERLAP_STARTS)) /* never the limit, 1 */

typedef struct memcpy_overlap_args {
    memcpy_args copy; /* not used by `kernel_alone` but for its bytes */
    float *results;   /* not used by `copy_alone` */
} memcpy_overlap_args;

size_t memcpy_overlap_results(size_t bytes);
float memcpy_overlap_result(size_t i);
extern const kernel_table memcpy_overlap_cuda;

/* From the current device to the one `hop` after it, (device + hop) % count: every
 * device by every hop makes all pairs, in both directions. The copy is memcpy_args
 * without a dst: that memory is the other device's, and prepare takes it. What
 * counts is memcpy_transfer_bytes: each byte crosses once.
 *
 * Rows of memcpy_peer_cuda: `peer` (cudaMemcpyPeerAsync) and `peer_kernel` (a
 * kernel stores to the other device's memory). Peer access is enabled while
 * one of them is prepared. Row of memcpy_staged_cuda: `staged`, the same call
 * without peer access, so that the driver goes through the host; it must not
 * be prepared while a row of the other table is. All need two devices, the
 * first two also peer access both ways.
 *
 * Their state begins with a memcpy_peer, for the caller to find the output. */
typedef struct memcpy_peer_args {
    memcpy_args copy;
    int hop; /* 1 is the next device */
} memcpy_peer_args;

typedef struct memcpy_peer {
    void *dst; /* the other device's, args' bytes long */
    int from, to;
    /* Enqueues 0xff bytes into dst. */
    int (*poison)(const struct memcpy_peer *peer, kernel_stream stream);
} memcpy_peer;

extern const kernel_table memcpy_peer_cuda, memcpy_staged_cuda;

/* How many devices are visible; 0 where that cannot be told. */
int memcpy_peer_devices(void);

/* Host: rows `memcpy` or `memset`, `loop`, `simd` and `threads`: the C library's,
 * a plain loop over 8-byte words, the processor's vectors, and all its threads. */
extern const kernel_table memcpy_copy_cpu;
extern const kernel_table memcpy_memset_cpu;

#ifdef __cplusplus
}
#endif
#endif
