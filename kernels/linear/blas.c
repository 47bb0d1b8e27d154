/*
 * blas.c - matrix products by the machine's CBLAS library.
 *
 * 5. blas  cblas_sgemm; other dtypes are widened to f32 before. What a library
 *          of many man-years reaches on the same number of threads.
 *
 * The library is loaded when the first variant asks for it, so that nothing else
 * links with it. GPUBENCH_BLAS names another one than those that are looked for.
 *
 * An OpenBLAS gets no threads of its own: the threads of pool.h call it, each for a
 * part of the result. Its own would look for work during the next variant's sample,
 * or, told to sleep at once, cost more to wake than a product of a few hundred rows
 * takes.
 */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700 /* setenv */
#endif
#include "linear.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/convert.h"
#include "../common/element.h"
#include "../common/pool.h"
#include "grid.h"

/* Netlib's names for these, from its cblas.h. */
enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 };

/* Libraries are built with integers of 32 bits or, under the same names, of 64. */
typedef void sgemm_32(int order, int a_transposed, int b_transposed, int32_t m, int32_t n,
                      int32_t k, float alpha, const float *a, int32_t lda, const float *b,
                      int32_t ldb, float beta, float *c, int32_t ldc);
typedef void sgemm_64(int order, int a_transposed, int b_transposed, int64_t m, int64_t n,
                      int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float beta, float *c, int64_t ldc);

static struct {
    sgemm_32 *narrow; /* one of the two */
    sgemm_64 *wide;
    int takes_callers; /* from several threads at a time, and has no threads of its own */
    char name[160], missing[160];
} blas;

/* How builds decorate Netlib's names. Those that numpy's and scipy's packages bring have a
 * prefix, so that they stand beside the system's, many with integers of 64 bits a suffix. */
typedef struct decoration {
    const char *prefix, *suffix;
    int is_wide;
} decoration;

static const decoration decorations[] = {
    {"", "", 0}, {"", "64_", 1}, {"scipy_", "64_", 1}, {"scipy_", "", 0}};

/* A function's address is not an object's to C, but POSIX makes it one here. */
static void look_up(void *library, const decoration *around, const char *name, void *function)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s%s", around->prefix, name, around->suffix);
    void *address = dlsym(library, whole);
    memcpy(function, &address, sizeof address);
}

/* What cblas_sgemm takes; lines of a matrix are contiguous. */
typedef struct operand {
    const float *data;
    int transposed;
    int64_t ld;
} operand;

static void sgemm(int64_t m, int64_t n, int64_t k, operand a, operand b, float *c, int64_t ldc)
{
    if (blas.wide)
        blas.wide(ROW_MAJOR, a.transposed, b.transposed, m, n, k, 1, a.data, a.ld, b.data, b.ld, 0,
                  c, ldc);
    else
        blas.narrow(ROW_MAJOR, a.transposed, b.transposed, (int32_t)m, (int32_t)n, (int32_t)k, 1,
                    a.data, (int32_t)a.ld, b.data, (int32_t)b.ld, 0, c, (int32_t)ldc);
}

/* Of ones, [3, 7] by [7, 5] in larger matrices: 7 wherever the product is, and
 * nothing beside it. */
static int is_sane(void)
{
    enum { M = 3, N = 5, K = 7, LDA = 9, LDB = 11, LDC = 13 };
    float a[M * LDA], b[K * LDB], c[M * LDC];
    for (int i = 0; i < M * LDA; i++) a[i] = 1;
    for (int i = 0; i < K * LDB; i++) b[i] = 1;
    for (int i = 0; i < M * LDC; i++) c[i] = -1;
    sgemm(M, N, K, (operand){a, NOT_TRANSPOSED, LDA}, (operand){b, NOT_TRANSPOSED, LDB}, c, LDC);
    for (int i = 0; i < M * LDC; i++)
        if (c[i] != (i % LDC < N ? 7.0f : -1.0f)) return 0;
    return 1;
}

/* NULL: under none of the names that are known. */
static const decoration *decoration_of(void *library)
{
    for (size_t i = 0; i < sizeof decorations / sizeof *decorations; i++) {
        look_up(library, &decorations[i], "cblas_sgemm", &blas.narrow);
        if (blas.narrow) return &decorations[i];
    }
    return NULL;
}

/* Whether the library, or one that it needs, has a name that only BLIS, MKL, ATLAS or the
 * vendors' have. Netlib's own, plain loops, has Netlib's names and no other. */
static int is_tuned(void *library)
{
    static const char *const names[] = {"bli_info_get_version_str", "MKL_Get_Version",
                                        "ATL_buildinfo", "armplversion", "flexiblas_info"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dlsym(library, names[i])) return 1;
    return 0;
}

/* OpenBLAS tells how it was built; of another library the integers are 32 bits, unless its
 * names say otherwise. */
static void ask_openblas(void *library, const decoration *around, const char *file)
{
    char *(*config)(void);
    char *(*core)(void);
    int (*parallel)(void); /* 0: built without locks */
    void (*set_threads)(int count);
    look_up(library, around, "openblas_get_config", &config);
    look_up(library, around, "openblas_get_corename", &core);
    look_up(library, around, "openblas_get_parallel", &parallel);
    look_up(library, around, "openblas_set_num_threads", &set_threads);
    if (set_threads) set_threads(1);
    blas.takes_callers = set_threads && parallel && parallel() != 0;
    if (around->is_wide || (config && strstr(config(), "USE64BITINT"))) {
        look_up(library, around, "cblas_sgemm", &blas.wide);
        blas.narrow = NULL;
    }
    const char *slash = strrchr(file, '/'); /* a path would tell of the machine's user */
    snprintf(blas.name, sizeof blas.name, "%s%s%s%s",
             is_tuned(library) || core || config ? "" : "reference BLAS ",
             slash ? slash + 1 : file, core ? " " : "", core ? core() : "");
}

/* OpenBLAS starts its threads when it is loaded, unless the environment says one. The last
 * two are whatever the system chose, or Netlib's. MKL is not looked for: its threads are its
 * own, so that a row could not say on how many it ran. */
static void *open_library(const char **file)
{
    static const char *const files[] = {"libopenblas.so.0", "libopenblas64.so.0", "libblis.so.4",
                                        "libblis.so.3", "libcblas.so.3", "libblas.so.3"};
    const char *wanted = getenv("GPUBENCH_BLAS");
    void *library = NULL;
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (wanted) {
        *file = wanted;
        return dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files && !library; i++)
        library = dlopen(*file = files[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void load(void)
{
    const char *file, *wanted = getenv("GPUBENCH_BLAS");
    void *library = open_library(&file);
    if (!library) {
        snprintf(blas.missing, sizeof blas.missing, "cannot load a CBLAS library: %s",
                 wanted ? wanted : "libopenblas, libcblas, libblas");
        return;
    }
    const decoration *around = decoration_of(library);
    if (around) ask_openblas(library, around, file);
    if (!around)
        snprintf(blas.missing, sizeof blas.missing, "%s has no cblas_sgemm", file);
    else if (!is_sane())
        snprintf(blas.missing, sizeof blas.missing, "%s multiplies wrongly", file);
}

const char *linear_has_no_blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return blas.missing[0] ? blas.missing : NULL;
}

int linear_blas_threads(void)
{
    return linear_has_no_blas() == NULL && blas.takes_callers ? pool_threads() : 1;
}

/* The text lives until the thread asks again. */
const char *linear_blas_runs_on(void)
{
    static _Thread_local char text[192];
    if (linear_has_no_blas()) return NULL;
    snprintf(text, sizeof text, "%s, %d threads", blas.name, linear_blas_threads());
    return text;
}

/* Of a matrix of one row or column any stride is right, but not to cblas. */
static operand operand_of(linear_matrix x, int64_t rows, int64_t columns, float *copy)
{
    int transposed = x.column_stride != 1;
    int64_t ld = transposed ? x.column_stride : x.row_stride;
    int64_t lines = transposed ? columns : rows, length = transposed ? rows : columns;
    operand o = {x.data, transposed ? TRANSPOSED : NOT_TRANSPOSED, ld < length ? length : ld};
    if (element_is_f32(x.dtype)) return o;
    for (int64_t i = 0; i < lines; i++)
        kernel_to_f32(element_at(x.data, x.dtype, i * ld), x.dtype, length, copy + i * length);
    o.data = copy;
    o.ld = length;
    return o;
}

static void multiply_alone(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                           float *c, float *scratch)
{
    sgemm(m, n, k, operand_of(a, m, k, scratch), operand_of(b, k, n, scratch + m * k), c, n);
}

typedef struct product {
    int64_t m, n, k;
    linear_grid grid;
    operand a, b;
    float *c;
} product;

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

static void multiply_parts(void *context, int worker, int64_t begin, int64_t end)
{
    const product *p = context;
    const linear_grid *g = &p->grid;
    (void)worker;
    for (int64_t part = begin; part < end; part++) {
        int64_t i = part / g->across * g->rows, j = part % g->across * g->columns;
        operand a = p->a, b = p->b;
        a.data += a.transposed == TRANSPOSED ? i : i * a.ld;
        b.data += b.transposed == TRANSPOSED ? j * b.ld : j;
        sgemm(at_most(p->m - i, g->rows), at_most(p->n - j, g->columns), p->k, a, b,
              p->c + i * p->n + j, p->n);
    }
}

static void multiply_blas(int64_t m, int64_t n, int64_t k, linear_matrix a, linear_matrix b,
                          float *c, float *scratch)
{
    enum { BLOCK = 16 }; /* a register block of OpenBLAS divides it */
    int threads = linear_is_small(m, n, k) ? 1 : linear_blas_threads();
    product p = {.m = m, .n = n, .k = k, .c = c};
    p.a = operand_of(a, m, k, scratch);
    p.b = operand_of(b, k, n, scratch + m * k);
    p.grid = linear_divide(m, n, threads, BLOCK, BLOCK);
    pool_for(threads, p.grid.parts, 1, multiply_parts, &p);
}

int linear_is_missing(const linear_way *way)
{
    return (way == &linear_blas || way == &linear_blas_alone) && linear_has_no_blas() != NULL;
}

static int one_thread(void)
{
    return 1;
}

const linear_way linear_blas = {multiply_blas, pool_threads, 1};
const linear_way linear_blas_alone = {multiply_alone, one_thread, 1};
