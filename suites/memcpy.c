/*
 * memcpy.c - the memcpy suite: host to device and back (pinned, pageable and
 * registered memory, by copy engine and by kernel), both ways at once, a copy
 * beside a kernel, to another device, inside the device, and setting bytes. On
 * the CPU: the C library's memcpy and memset against plain loops.
 */
#include "suite.h"

#include "../kernels/memcpy/memcpy.h"
#include "../kernels/common/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t gpu_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30};
static const int64_t cpu_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

/* Of gpu_sizes, where every case and variant is measured: one that latency
 * counts in and one that it does not. The rest is spared for the sake of time. */
static const int64_t full_sizes[] = {1 << 20, 64 << 20};

enum { SET_VALUE = 0x5a, PIECE = 1 << 24 /* bytes that are filled or checked at a time */ };

static int is_named(const kernel_variant *variant, const char *name)
{
    return !strcmp(variant->name, name);
}

/* Which memory the host's end of a transfer is in: the variant's name says. */
static int host_kind(const suite_case *c)
{
    int by_driver = is_named(c->variant, "pageable") || is_named(c->variant, "registered");
    return by_driver ? GPUBENCH_PAGEABLE : GPUBENCH_PINNED;
}

/* Random bytes at src, wherever it is, by way of the host. */
static int fill_source(gpubench *bench, void *src, size_t bytes, uint64_t seed)
{
    unsigned char *piece = malloc(PIECE);
    int code = piece ? 0 : KERNEL_ERROR_MEMORY;
    for (size_t at = 0; at < bytes && code == 0; at += PIECE) {
        size_t now = bytes - at < PIECE ? bytes - at : PIECE;
        if (at == 0)
            code = random_normal_cpu(piece, KERNEL_U8, PIECE, 0, 1, seed);
        if (code == 0) {
            memcpy(piece, &at, sizeof at < now ? sizeof at : now); /* no two pieces are equal */
            code = gpubench_copy(bench, (char *)src + at, piece, now);
        }
    }
    free(piece);
    return code;
}

/* Memory for one end of a transfer. What is to be registered needs some more. */
static void *allocate(const suite_case *c, gpubench *bench, size_t bytes, int kind)
{
    int registered =
        is_named(c->variant, "registered") && (kind & ~GPUBENCH_OUTPUT) == GPUBENCH_PAGEABLE;
    return gpubench_alloc(bench, registered ? memcpy_registered_bytes(bytes) : bytes, kind);
}

static int build_ends(const suite_case *c, gpubench *bench, memcpy_args *args, int src_kind,
                      int dst_kind, uint64_t seed)
{
    void *src = allocate(c, bench, args->bytes, src_kind);
    args->dst = src ? allocate(c, bench, args->bytes, dst_kind | GPUBENCH_OUTPUT) : NULL;
    args->src = src;
    return args->dst ? fill_source(bench, src, args->bytes, seed) : GPUBENCH_OOM;
}

static int build_copy(suite_case *c, gpubench *bench, int src_kind, int dst_kind)
{
    return build_ends(c, bench, c->args, src_kind, dst_kind, gpubench_seed(bench));
}

static int build_h2d(suite_case *c, gpubench *bench)
{
    return build_copy(c, bench, host_kind(c), GPUBENCH_DEVICE);
}

static int build_d2h(suite_case *c, gpubench *bench)
{
    return build_copy(c, bench, GPUBENCH_DEVICE, host_kind(c));
}

static int build_d2d(suite_case *c, gpubench *bench)
{
    return build_copy(c, bench, GPUBENCH_DEVICE, GPUBENCH_DEVICE);
}

static int build_memset(suite_case *c, gpubench *bench)
{
    memcpy_args *args = c->args;
    args->value = SET_VALUE;
    args->dst = gpubench_alloc(bench, args->bytes, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return args->dst ? 0 : GPUBENCH_OOM;
}

/* Every byte of dst against src, or against the value where src is NULL. */
static int compare(gpubench *bench, const void *dst, const memcpy_args *args)
{
    unsigned char *expected = malloc(PIECE), *found = malloc(PIECE);
    int code = expected && found ? 0 : KERNEL_ERROR_MEMORY;
    int differs = 0;
    if (code == 0)
        memset(expected, args->value, PIECE);
    for (size_t at = 0; at < args->bytes && code == 0; at += PIECE) {
        size_t now = args->bytes - at < PIECE ? args->bytes - at : PIECE;
        code = gpubench_copy(bench, found, (const char *)dst + at, now);
        if (code == 0 && args->src)
            code = gpubench_copy(bench, expected, (const char *)args->src + at, now);
        differs |= code == 0 && memcmp(found, expected, now) != 0;
    }
    free(expected);
    free(found);
    return code ? code : gpubench_check(bench, differs, 0);
}

static int verify(suite_case *c, gpubench *bench)
{
    const memcpy_args *args = c->args;
    return compare(bench, args->dst, args);
}

/* ---- both ways at once ------------------------------------------------------------- */

/* The two sources differ, lest one output passes for the other. */
static int build_bidirectional(suite_case *c, gpubench *bench)
{
    memcpy_bidirectional_args *args = c->args;
    uint64_t seed = gpubench_seed(bench);
    int code = build_ends(c, bench, &args->h2d, GPUBENCH_PINNED, GPUBENCH_DEVICE, seed);
    if (code == 0)
        code = build_ends(c, bench, &args->d2h, GPUBENCH_DEVICE, GPUBENCH_PINNED, seed + 1);
    return code;
}

static int verify_bidirectional(suite_case *c, gpubench *bench)
{
    const memcpy_bidirectional_args *args = c->args;
    int code = compare(bench, args->h2d.dst, &args->h2d);
    return code ? code : compare(bench, args->d2h.dst, &args->d2h);
}

/* ---- a copy beside a kernel -------------------------------------------------------- */

static int copies(const kernel_variant *variant)
{
    return !is_named(variant, "kernel_alone");
}

static int computes(const kernel_variant *variant)
{
    return !is_named(variant, "copy_alone");
}

static uint64_t overlap_bytes(const kernel_variant *variant, uint64_t bytes)
{
    return copies(variant) ? bytes : 0;
}

static int build_overlap(suite_case *c, gpubench *bench)
{
    memcpy_overlap_args *args = c->args;
    int code = 0;
    if (copies(c->variant))
        code = build_ends(c, bench, &args->copy, GPUBENCH_PINNED, GPUBENCH_DEVICE,
                          gpubench_seed(bench));
    if (code != 0 || !computes(c->variant))
        return code;
    args->results =
        gpubench_alloc(bench, memcpy_overlap_results(args->copy.bytes) * sizeof *args->results,
                       GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return args->results ? 0 : GPUBENCH_OOM;
}

/* Counts, bit by bit, which of count results from the first on are not as
 * expected; expected holds those of one period. */
static size_t wrong_results(const float *found, size_t first, size_t count, const float *expected)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const float *wanted = &expected[(first + i) % MEMCPY_OVERLAP_STARTS];
        /* NaNs count too. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-*) */
        wrong += memcmp(&found[i], wanted, sizeof *wanted) != 0;
    }
    return wrong;
}

static int verify_results(gpubench *bench, const float *results, size_t count)
{
    enum { PIECE_RESULTS = PIECE / sizeof(float) };
    float expected[MEMCPY_OVERLAP_STARTS], *found = malloc(PIECE);
    int code = found ? 0 : KERNEL_ERROR_MEMORY;
    size_t wrong = 0;
    for (size_t i = 0; i < MEMCPY_OVERLAP_STARTS; i++)
        expected[i] = memcpy_overlap_result(i);
    for (size_t at = 0; at < count && code == 0; at += PIECE_RESULTS) {
        size_t now = count - at < PIECE_RESULTS ? count - at : PIECE_RESULTS;
        code = gpubench_copy(bench, found, results + at, now * sizeof *found);
        if (code == 0)
            wrong += wrong_results(found, at, now, expected);
    }
    free(found);
    return code ? code : gpubench_check(bench, (double)wrong, 0);
}

static int verify_overlap(suite_case *c, gpubench *bench)
{
    const memcpy_overlap_args *args = c->args;
    int code = copies(c->variant) ? compare(bench, args->copy.dst, &args->copy) : 0;
    if (code != 0 || !computes(c->variant))
        return code;
    return verify_results(bench, args->results, memcpy_overlap_results(args->copy.bytes));
}

/* ---- to another device ------------------------------------------------------------- */

static int build_peer(suite_case *c, gpubench *bench)
{
    memcpy_args *args = &((memcpy_peer_args *)c->args)->copy;
    void *src = gpubench_alloc(bench, args->bytes, GPUBENCH_DEVICE);
    args->src = src;
    return src ? fill_source(bench, src, args->bytes, gpubench_seed(bench)) : GPUBENCH_OOM;
}

/* The output is not gpubench's memory, so poisoning it is left to the case. */
static int poison_peer(suite_case *c, gpubench_stream stream)
{
    const memcpy_peer *peer = c->state;
    return peer->poison(peer, stream);
}

static int verify_peer(suite_case *c, gpubench *bench)
{
    const memcpy_peer *peer = c->state;
    gpubench_counter(bench, "from", peer->from);
    gpubench_counter(bench, "to", peer->to);
    return compare(bench, peer->dst, &((const memcpy_peer_args *)c->args)->copy);
}

/* ---- shapes ------------------------------------------------------------------------ */

/* `bytes` of the params are those of one copy, `counted` those of the case. */
static void queue(suite *s, const suite_operation *operation, const void *args, size_t bytes,
                  uint64_t counted)
{
    char params[32];
    snprintf(params, sizeof params, "bytes=%zu", bytes);
    suite_queue(s, operation, KERNEL_U8, params, args, counted, 0);
}

/* What crosses a link is not held against the device's memory: peak_gb_per_s -1. */
#define TRANSFER(NAME, BUILD, CUDA)                                                       \
    {                                                                                     \
        .name = (NAME), .cuda = SUITE_CUDA(CUDA), .args_bytes = sizeof(memcpy_args),      \
        .build = (BUILD), .verify = verify, .peak_gb_per_s = -1                           \
    }

/* basic: without the variants that take several copies at a time. */
static void queue_transfers(suite *s, size_t bytes, int basic)
{
    static const suite_operation all[] = {TRANSFER("memcpy.h2d", build_h2d, memcpy_h2d_cuda),
                                          TRANSFER("memcpy.d2h", build_d2h, memcpy_d2h_cuda)};
    static const suite_operation few[] = {
        TRANSFER("memcpy.h2d", build_h2d, memcpy_h2d_basic_cuda),
        TRANSFER("memcpy.d2h", build_d2h, memcpy_d2h_basic_cuda)};
    memcpy_args args = {.bytes = bytes};
    for (int way = 0; way < 2; way++)
        queue(s, basic ? &few[way] : &all[way], &args, bytes, memcpy_transfer_bytes(bytes));
}

static void queue_in_one_memory(suite *s, size_t bytes)
{
    static const suite_operation d2d = {.name = "memcpy.d2d",
                                        .cuda = SUITE_CUDA(memcpy_d2d_cuda),
                                        .args_bytes = sizeof(memcpy_args),
                                        .build = build_d2d,
                                        .verify = verify};
    static const suite_operation h2h = {.name = "memcpy.h2h",
                                        .cpu = &memcpy_copy_cpu,
                                        .args_bytes = sizeof(memcpy_args),
                                        .build = build_d2d,
                                        .verify = verify};
    static const suite_operation set = {.name = "memcpy.memset",
                                        .cpu = &memcpy_memset_cpu,
                                        .cuda = SUITE_CUDA(memcpy_memset_cuda),
                                        .args_bytes = sizeof(memcpy_args),
                                        .build = build_memset,
                                        .verify = verify};
    memcpy_args args = {.bytes = bytes};
    queue(s, &d2d, &args, bytes, memcpy_copy_bytes(bytes));
    queue(s, &h2h, &args, bytes, memcpy_copy_bytes(bytes));
    queue(s, &set, &args, bytes, memcpy_memset_bytes(bytes));
}

static void queue_concurrent(suite *s, size_t bytes)
{
    static const suite_operation both = {.name = "memcpy.bidirectional",
                                         .cuda = SUITE_CUDA(memcpy_bidirectional_cuda),
                                         .args_bytes = sizeof(memcpy_bidirectional_args),
                                         .build = build_bidirectional,
                                         .verify = verify_bidirectional,
                                         .peak_gb_per_s = -1};
    static const suite_operation overlap = {.name = "memcpy.overlap",
                                            .cuda = SUITE_CUDA(memcpy_overlap_cuda),
                                            .args_bytes = sizeof(memcpy_overlap_args),
                                            .build = build_overlap,
                                            .verify = verify_overlap,
                                            .peak_gb_per_s = -1,
                                            .variant_bytes = overlap_bytes};
    memcpy_bidirectional_args ways = {.h2d = {.bytes = bytes}, .d2h = {.bytes = bytes}};
    memcpy_overlap_args beside = {.copy = {.bytes = bytes}};
    queue(s, &both, &ways, bytes, memcpy_bidirectional_bytes(bytes, bytes));
    queue(s, &overlap, &beside, bytes, memcpy_transfer_bytes(bytes));
}

/* How many devices there are to copy to; at least one, whose rows say why not. */
static int count_hops(const suite *s)
{
#if GPUBENCH_CUDA
    int devices = gpubench_is_cuda(s->bench) ? memcpy_peer_devices() : 0;
    return devices > 2 ? devices - 1 : 1;
#else
    (void)s;
    return 1;
#endif
}

/* With and without peer access: two groups, for one is measured after the other. The
 * next device goes without saying. */
static void queue_peer_hop(suite *s, const memcpy_peer_args *args)
{
    static const suite_operation peer = {.name = "memcpy.peer",
                                         .cuda = SUITE_CUDA(memcpy_peer_cuda),
                                         .args_bytes = sizeof(memcpy_peer_args),
                                         .build = build_peer,
                                         .verify = verify_peer,
                                         .reset = poison_peer,
                                         .peak_gb_per_s = -1};
    static const suite_operation staged = {.name = "memcpy.peer",
                                           .cuda = SUITE_CUDA(memcpy_staged_cuda),
                                           .args_bytes = sizeof(memcpy_peer_args),
                                           .build = build_peer,
                                           .verify = verify_peer,
                                           .reset = poison_peer,
                                           .peak_gb_per_s = -1};
    char params[48];
    uint64_t counted = memcpy_transfer_bytes(args->copy.bytes);
    int written = snprintf(params, sizeof params, "bytes=%zu", args->copy.bytes);
    if (args->hop > 1)
        snprintf(params + written, sizeof params - (size_t)written, " hop=%d", args->hop);
    suite_queue(s, &peer, KERNEL_U8, params, args, counted, 0);
    suite_queue(s, &staged, KERNEL_U8, params, args, counted, 0);
}

static void queue_peer(suite *s, size_t bytes)
{
    memcpy_peer_args args = {.copy = {.bytes = bytes}, .hop = 1};
    for (int hops = count_hops(s); args.hop <= hops; args.hop++)
        queue_peer_hop(s, &args);
}

static void queue_all(suite *s, size_t bytes)
{
    queue_transfers(s, bytes, 0);
    queue_in_one_memory(s, bytes);
    queue_concurrent(s, bytes);
    queue_peer(s, bytes);
}

static void queue_given(suite *s, const int64_t *values)
{
    if (values[0] == 0)
        gpubench_usage_error(s->bench, "--shape: bytes must be at least 1");
    else
        queue_all(s, (size_t)values[0]);
}

static int is_full_size(int64_t bytes)
{
    for (size_t i = 0; i < sizeof full_sizes / sizeof *full_sizes; i++)
        if (full_sizes[i] == bytes)
            return 1;
    return 0;
}

static void queue_default(suite *s, int64_t bytes)
{
    if (is_full_size(bytes)) {
        queue_all(s, (size_t)bytes);
        return;
    }
    queue_transfers(s, (size_t)bytes, 1);
    queue_in_one_memory(s, (size_t)bytes);
}

static void queue_defaults(suite *s)
{
    int cuda = gpubench_is_cuda(s->bench);
    const int64_t *sizes = cuda ? gpu_sizes : cpu_sizes;
    size_t count = (cuda ? sizeof gpu_sizes : sizeof cpu_sizes) / sizeof *sizes;
    for (size_t i = 0; i < count; i++)
        queue_default(s, sizes[i]);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"bytes"};
    suite s = suite_open("memcpy", "'bytes=4096; bytes=1048576' instead of the defaults", argc,
                         argv);
    if (!suite_for_each_shape(&s, keys, 1, queue_given))
        queue_defaults(&s);
    return suite_close(&s);
}
