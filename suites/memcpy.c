/*
 * memcpy.c - the memcpy suite: host to device and back, from pinned and from
 * pageable memory, inside the device, and setting bytes. On the CPU: the C
 * library's memcpy and memset against plain loops.
 */
#include "suite.h"

#include "../kernels/memcpy.h"
#include "../kernels/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t gpu_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 1 << 30};
static const int64_t cpu_sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

enum { SET_VALUE = 0x5a };

/* Which memory the host's end of a transfer is in: the variant's name says. */
static int host_kind(const suite_case *c)
{
    return strcmp(c->variant->name, "pinned") ? GPUBENCH_PAGEABLE : GPUBENCH_PINNED;
}

/* Random bytes at src, wherever it is, by way of the host. */
static int fill_source(gpubench *bench, void *src, size_t bytes)
{
    enum { PIECE = 1 << 24 };
    unsigned char *piece = malloc(PIECE);
    int code = piece ? 0 : KERNEL_ERROR_MEMORY;
    for (size_t at = 0; at < bytes && code == 0; at += PIECE) {
        size_t now = bytes - at < PIECE ? bytes - at : PIECE;
        if (at == 0)
            code = random_normal_cpu(piece, KERNEL_U8, PIECE, 0, 1, gpubench_seed(bench));
        if (code == 0) {
            memcpy(piece, &at, sizeof at < now ? sizeof at : now); /* no two pieces are equal */
            code = gpubench_copy(bench, (char *)src + at, piece, now);
        }
    }
    free(piece);
    return code;
}

static int build_copy(suite_case *c, gpubench *bench, int src_kind, int dst_kind)
{
    memcpy_args *args = c->args;
    void *src = gpubench_alloc(bench, args->bytes, src_kind);
    args->dst = src ? gpubench_alloc(bench, args->bytes, dst_kind | GPUBENCH_OUTPUT) : NULL;
    args->src = src;
    return args->dst ? fill_source(bench, src, args->bytes) : GPUBENCH_OOM;
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
static int verify(suite_case *c, gpubench *bench)
{
    enum { PIECE = 1 << 24 };
    const memcpy_args *args = c->args;
    unsigned char *expected = malloc(PIECE), *found = malloc(PIECE);
    int code = expected && found ? 0 : KERNEL_ERROR_MEMORY;
    int differs = 0;
    if (code == 0)
        memset(expected, args->value, PIECE);
    for (size_t at = 0; at < args->bytes && code == 0; at += PIECE) {
        size_t now = args->bytes - at < PIECE ? args->bytes - at : PIECE;
        code = gpubench_copy(bench, found, (char *)args->dst + at, now);
        if (code == 0 && args->src)
            code = gpubench_copy(bench, expected, (const char *)args->src + at, now);
        differs |= code == 0 && memcmp(found, expected, now) != 0;
    }
    free(expected);
    free(found);
    return code ? code : gpubench_check(bench, differs, 0);
}

static void queue(suite *s, suite_operation *operation, const char *name, kernel_table cpu,
                  kernel_table cuda, size_t bytes, uint64_t counted)
{
    memcpy_args args = {.bytes = bytes};
    char params[32];
    operation->name = name;
    operation->cpu = cpu;
    operation->cuda = cuda;
    operation->args_bytes = sizeof args;
    operation->verify = verify;
    snprintf(params, sizeof params, "bytes=%zu", bytes);
    suite_queue(s, operation, KERNEL_U8, params, &args, counted, 0);
}

static void queue_size(suite *s, const int64_t *values)
{
    /* What crosses the link to the host is not held against the device's memory. */
    static suite_operation h2d = {.build = build_h2d, .peak_gb_per_s = -1};
    static suite_operation d2h = {.build = build_d2h, .peak_gb_per_s = -1};
    static suite_operation d2d = {.build = build_d2d}, copy = {.build = build_d2d};
    static suite_operation set = {.build = build_memset};
    const kernel_table none = {NULL, 0};
    size_t bytes = (size_t)values[0];
    if (bytes == 0) {
        gpubench_usage_error(s->bench, "--shape: bytes must be at least 1");
        return;
    }
    queue(s, &h2d, "memcpy.h2d", none, SUITE_CUDA_TABLE(memcpy_h2d_cuda), bytes,
          memcpy_transfer_bytes(bytes));
    queue(s, &d2h, "memcpy.d2h", none, SUITE_CUDA_TABLE(memcpy_d2h_cuda), bytes,
          memcpy_transfer_bytes(bytes));
    queue(s, &d2d, "memcpy.d2d", none, SUITE_CUDA_TABLE(memcpy_d2d_cuda), bytes,
          memcpy_copy_bytes(bytes));
    queue(s, &copy, "memcpy.h2h", memcpy_copy_cpu, none, bytes, memcpy_copy_bytes(bytes));
    queue(s, &set, "memcpy.memset", memcpy_memset_cpu, SUITE_CUDA_TABLE(memcpy_memset_cuda), bytes,
          memcpy_memset_bytes(bytes));
}

static void queue_defaults(suite *s)
{
    int cuda = gpubench_is_cuda(s->bench);
    const int64_t *sizes = cuda ? gpu_sizes : cpu_sizes;
    size_t count = (cuda ? sizeof gpu_sizes : sizeof cpu_sizes) / sizeof *sizes;
    for (size_t i = 0; i < count; i++)
        queue_size(s, &sizes[i]);
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"bytes"};
    suite s = suite_open("memcpy", "'bytes=4096; bytes=1048576' instead of the defaults", argc,
                         argv);
    if (!suite_for_each_shape(&s, keys, 1, queue_size))
        queue_defaults(&s);
    return suite_close(&s);
}
