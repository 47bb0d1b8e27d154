/*
 * gpubench.h - microbenchmarks of GPU work (and of host functions), in one file.
 *
 * In ONE source file, before any other include:
 *
 *     #define GPUBENCH_IMPLEMENTATION
 *     #include "gpubench.h"
 *
 * In every other file just include it. With nvcc, or with GPUBENCH_CUDA
 * defined to 1 (or <cuda_runtime_api.h> included first), it measures CUDA
 * streams and needs the CUDA runtime; otherwise it measures host functions
 * with the monotonic clock and needs nothing. POSIX; C99 and C++11 or later.
 *
 *     static int run(void *context, gpubench_stream stream)   // enqueue, return 0
 *     ...
 *     gpubench *bench = gpubench_open("mine", argc, argv);    // reads the options
 *     gpubench_case c = gpubench_case_init("copy", run, &buffers);
 *     c.bytes = 2 * bytes;
 *     gpubench_measure(bench, &c);                            // queues it
 *     return gpubench_close(bench);                           // measures, reports
 *
 * A case's life: setup; for each mode warm-up, samples (each: reset, then run) and
 * verify; teardown. All but run are optional. Cases are queued, shuffled by
 * the seed and measured by gpubench_close, so contexts live until then.
 *
 * One sample (mode cold): reset and a sweep that leaves the caches clean, neither
 * timed; a gate that holds the stream until everything is enqueued; start event,
 * run, stop event.
 *
 * Licence: MIT, at the end of this file.
 */
#if defined(GPUBENCH_IMPLEMENTATION) && !defined(_XOPEN_SOURCE) && !defined(_GNU_SOURCE)
#define _XOPEN_SOURCE 700
/* Which alone would hide what the file that includes this sees by default. */
#if !defined(__STRICT_ANSI__) && !defined(_POSIX_C_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif
#endif

#ifndef GPUBENCH_H
#define GPUBENCH_H

#include <stddef.h>
#include <stdint.h>

#define GPUBENCH_VERSION "2.0.0"

#ifndef GPUBENCH_CUDA
#if defined(__CUDACC__) || defined(__CUDA_RUNTIME_API_H__)
#define GPUBENCH_CUDA 1
#else
#define GPUBENCH_CUDA 0
#endif
#endif

#if GPUBENCH_CUDA
#include <cuda_runtime_api.h>
#endif

#if defined(__GNUC__)
#define GPUBENCH_USED __attribute__((used))
/* Which parameter is printf's format, and which is the first to be formatted. */
#define GPUBENCH_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define GPUBENCH_USED
#define GPUBENCH_PRINTF(format, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The CUDA runtime's cudaStream_t, spelled so that host code needs no CUDA
 * header. NULL on the CPU. */
typedef struct CUstream_st *gpubench_stream;

typedef struct gpubench gpubench;

/* Whoever includes this for CUDA needs an implementation that was compiled for
 * CUDA too, else the CPU would be measured in silence. A linker that cannot
 * find this name says that it was not. */
extern const int gpubench_implementation_lacks_GPUBENCH_CUDA;
#if GPUBENCH_CUDA
static const int *const gpubench_needs_cuda GPUBENCH_USED =
    &gpubench_implementation_lacks_GPUBENCH_CUDA;
#endif

/* What a case's functions return. Positive codes are errors of the API that
 * they called: a cudaError_t on a GPU, an errno on the CPU, or whatever the
 * case's error_string explains. cudaErrorMemoryAllocation counts as OOM. */
enum {
    GPUBENCH_OK = 0,
    GPUBENCH_FAILED = -1,
    GPUBENCH_OOM = -2,         /* memory does not suffice */
    GPUBENCH_UNSUPPORTED = -3, /* this device or shape cannot do it */
    GPUBENCH_SKIPPED = -4,
    GPUBENCH_MISMATCH = -5     /* it ran, and the result is wrong */
};

/* What surrounds the runs of a sample; each mode is a row of its own. */
enum {
    GPUBENCH_COLD = 1,  /* before each run the caches hold nothing of the case's, and nothing
                           dirty: a sweep has read them full of something else */
    GPUBENCH_HOT = 2,   /* many runs back to back in one pair of events */
    GPUBENCH_GRAPH = 4, /* run captured once, replayed as a CUDA graph, caches as in cold */
    GPUBENCH_DIRTY = 8  /* as cold, behind a flush that writes, as other tools flush: its
                           dirty lines are written back while the run is timed */
};

typedef struct gpubench_case {
    const char *name;    /* operation and pass: "attention.forward" */
    const char *variant; /* how: "tiled"; "" if there is one way only */
    const char *dtype;   /* "f32", "bf16", ...; "" if it does not apply */
    const char *params;  /* "b=4 t=128": key=value, separated by blanks */
    void *context;       /* handed to the functions below; lives until gpubench_close */
    int (*setup)(void *context, gpubench *bench);        /* allocate and fill; for all modes */
    int (*reset)(void *context, gpubench_stream stream); /* before each sample, not timed */
    int (*run)(void *context, gpubench_stream stream);   /* enqueue the work on stream */
    int (*verify)(void *context, gpubench *bench);       /* judge what the last run left behind */
    void (*teardown)(void *context);                     /* undo setup, also a half-done one */
    const char *(*error_string)(int code); /* explain a code of run or setup; NULL for "not mine" */
    uint64_t bytes;                        /* read plus written by one run; 0: not counted */
    uint64_t flops;                        /* operations of one run; 0: not counted */
    double peak_gb_per_s;                  /* what bytes are held against; 0: the device's
                                              memory; negative: nothing */
    unsigned modes;                        /* set of modes it may be measured in; 0: all */
    const char *runs_on;                   /* of host code: "avx2, 2 threads"; NULL: not said */
    /* Of work that only the case can time, on several devices or processes: executes it count
     * times in a row (1 in modes cold and dirty), waits, and puts what all of that took into
     * *us. mode is what it is asked for. NULL: run is timed. */
    int (*sample)(void *context, unsigned mode, uint64_t count, double *us);
} gpubench_case;

/* One dimension of a sweep. values are words or numbers with commas between them, or
 * ranges of whole numbers: "1,2,4", "f32,bf16", "1..8" (each), "8..64+8" (in steps),
 * "1..4096*4" (by factors), "2^10..2^20" (each power of two), "0,2^3..2^5".
 * --axis NAME=VALUES on the command line takes their place. */
typedef struct gpubench_axis {
    const char *name, *values;
} gpubench_axis;

/* What a program's command line has beside the standard options. *value becomes what
 * is given, and stays as it is if nothing is: its default, or NULL.
 *
 *     {"--shape", "LIST", "sizes to measure", &shape}   --shape 1,2 or --shape=1,2
 *     {"--sorted", NULL, "sort first", &sorted}         a switch: NULL, or not
 *     {"--max-time", NULL, NULL, &three}                of a standard option: its default here
 *     {"FILE", NULL, "what to read", &file}             an argument; has to be there if its
 *                                                       default is NULL
 *     {"FILE...", NULL, "what to read", &file}          the last: as many as there are, *value
 *                                                       the first; see gpubench_argument
 */
typedef struct gpubench_option {
    const char *name;
    const char *argument; /* what --help calls the value */
    const char *help;
    const char **value;
} gpubench_option;

/* Reads the command line and chooses the device. Never NULL: after a usage
 * error (message on stderr) the handle measures nothing and gpubench_close
 * returns 2. --help, and --runs above 1 (which starts this program afresh for
 * each run), end the process here. Call it before touching the GPU. A program may
 * open several, but fresh processes (--runs, after a crash) are for its first one
 * alone. */
gpubench *gpubench_open(const char *suite, int argc, char **argv);

/* The same, with options of the program's own. */
gpubench *gpubench_open_with(const char *suite, const gpubench_option *options, size_t option_count,
                             int argc, char **argv);

/* The argument of that number, from 0, that is no option; NULL behind the last. What
 * stands behind "--" is none. */
const char *gpubench_argument(const gpubench *bench, size_t number);

/* A case with a name, what to run and its context; everything else empty. */
gpubench_case gpubench_case_init(const char *name,
                                 int (*run)(void *context, gpubench_stream stream), void *context);

/* Queues one case. Its strings are copied. */
void gpubench_measure(gpubench *bench, const gpubench_case *one);

/* Queues count cases whose samples are interleaved, so that they see the same
 * clocks and temperature, until every one has enough or the time of all is up. All
 * are set up at once; one that does not fit beside the others is measured alone
 * afterwards. They may share outputs: these are poisoned, and a case's run is
 * repeated, right before its verify. */
void gpubench_measure_group(gpubench *bench, const gpubench_case *cases, size_t count);

/* Queues count cases as a group for each combination of the axes' values, the last
 * axis changing first. Their params are the cases' own and behind these NAME=VALUE
 * of each axis; one called dtype fills that column instead. The combinations share
 * the cases' contexts: each is set up when the one before was torn down. setup asks
 * for its values (gpubench_axis_number) and says what its work is (gpubench_work). */
void gpubench_sweep(gpubench *bench, const gpubench_case *cases, size_t count,
                    const gpubench_axis *axes, size_t axis_count);

/* Has function called once before the first case is set up, and again in each fresh
 * process; not where nothing is measured (--list, --help). For what cases share: what
 * it takes from gpubench_alloc is freed by gpubench_close. It returns what a setup
 * returns; if that is not 0, nothing is measured and gpubench_close returns 2. */
void gpubench_before_all(gpubench *bench, int (*function)(void *context, gpubench *bench),
                         void *context);

/* What the table's column `peak` holds bytes and operations against where the device
 * itself does not say, as on the CPU: the best that was measured. A share above it
 * (what was read came from a cache) is left empty. 0: unknown. */
void gpubench_measured_peaks(gpubench *bench, double gb_per_s, double tflop_per_s);

/* Of a program whose cases run on threads of its own: calls work(context, thread, threads)
 * once on each of them, thread being 0 to threads - 1, and returns when all have returned. */
typedef void gpubench_threads(void (*work)(void *context, int thread, int threads),
                              void *context);

/* On the CPU the sweep in front of a cold sample is cut among these threads, for no thread
 * can empty the caches that belong to another's processor. Without (NULL) the calling thread
 * sweeps alone. */
void gpubench_sweep_on(gpubench *bench, gpubench_threads *all);

/* Measures what was queued, prints the table, frees all. Each row is in --csv's
 * file as soon as it is measured. A case that exits, throws, crashes or takes
 * longer than --timeout costs its own row only: this process then becomes a
 * fresh one of the same program, which measures what is left.
 * Exit status: 0 no case failed, 1 some case did, 2 bad usage
 * or no way to measure. */
int gpubench_close(gpubench *bench);

/* Before gpubench_close, of a process that must stay what it is, as a rank of a job that
 * several form: a case that crashes or hangs then ends the program, with its row and those
 * before it, and is not followed by a fresh process. why: what a message says. */
void gpubench_stay(gpubench *bench, const char *why);

/* ---- for a case's functions ---- */

/* Which memory gpubench_alloc takes it from. */
enum {
    GPUBENCH_DEVICE = 0,   /* the device that is measured; host memory on the CPU */
    GPUBENCH_PINNED = 1,   /* page-locked host memory */
    GPUBENCH_PAGEABLE = 2, /* ordinary host memory */
    GPUBENCH_OUTPUT = 16   /* add: poisoned with 0xff bytes before the timed loop */
};

/* Memory for the case whose setup calls this, aligned to 512 bytes, freed after
 * teardown. What is written within 512 bytes of either end is found after the
 * timed loop and fails the case. NULL if there is not enough: return GPUBENCH_OOM then. */
void *gpubench_alloc(gpubench *bench, size_t bytes, int kind);

/* Copies between any two kinds of memory, synchronously. 0 or a cudaError_t. */
int gpubench_copy(gpubench *bench, void *destination, const void *source, size_t bytes);

/* Says why, and returns status: return gpubench_fail(bench, GPUBENCH_FAILED, "...").
 * bench may be NULL, as in run and reset: then it is the handle that measures now. */
int gpubench_fail(gpubench *bench, int status, const char *format, ...) GPUBENCH_PRINTF(3, 4);

/* Returns from a case's function, and says what failed, if call does not give 0:
 *
 *     GPUBENCH_TRY(cublasSetStream(handle, stream), cublasGetStatusString);
 *     GPUBENCH_TRY(cudaMemsetAsync(p, 0, bytes, stream), cudaGetErrorString);
 *
 * Each library numbers its errors from 1, so that a positive code which a function
 * returns is taken for CUDA's (on the CPU: for errno's). string: what gives the code's
 * text; strerror will do for errno's. */
#define GPUBENCH_TRY(call, string)                                                         \
    do {                                                                                   \
        const __typeof__(call) gpubench_code = (call);                                     \
        if (GPUBENCH_AS_CODE(gpubench_code) != 0)                                          \
            return gpubench_fail_call(#call, GPUBENCH_AS_CODE(gpubench_code),              \
                                      string(gpubench_code));                              \
    } while (0)
#ifdef __cplusplus
#define GPUBENCH_AS_CODE(value) static_cast<int>(value)
#else
#define GPUBENCH_AS_CODE(value) ((int)(value))
#endif

/* What GPUBENCH_TRY does with the text of the call, whose function's name is what stands
 * in front of its first bracket, with its code, and what that means (NULL: unknown).
 * Returns GPUBENCH_OOM where that is CUDA's text for its code of too little memory, else
 * GPUBENCH_FAILED. */
int gpubench_fail_call(const char *call, int code, const char *text);

/* Names memory that setup got elsewhere (on a GPU: device memory) as one that
 * run writes, so that it is poisoned as GPUBENCH_OUTPUT's is. Called in setup,
 * forgotten at teardown. Returns GPUBENCH_OK or, outside a case, GPUBENCH_FAILED. */
int gpubench_output(gpubench *bench, void *memory, size_t bytes);

/* Called in setup, for --memory: these bytes, of gpubench_alloc or device memory from
 * elsewhere, belong to a category: "parameters", "gradients", "optimizer", "activations",
 * "workspace", "inputs" or any other word. Parts do not overlap. What nobody names is
 * "outputs" where it was allocated as GPUBENCH_OUTPUT, else "other". Returns GPUBENCH_OK
 * or, outside a case, GPUBENCH_FAILED. */
int gpubench_category(gpubench *bench, const void *memory, uint64_t bytes, const char *category);

/* The same of what the case would take if it were another one: change is "batch x2",
 * "context x2" or the like. */
int gpubench_category_if(gpubench *bench, const char *change, uint64_t bytes,
                         const char *category);

/* Called in setup: run puts its work on this stream, whatever it is given; then reset
 * and run are given this one, and the case is timed on it, with the row flag own-stream.
 * NULL: the default stream, where a launch <<<grid, block>>> goes; of code that is
 * built with --default-stream per-thread, cudaStreamPerThread. A stream of the case's
 * own lives until teardown. Without this the samples take turns on streams of the
 * framework's. Returns GPUBENCH_OK or, outside setup, GPUBENCH_FAILED. Does nothing
 * on the CPU. */
int gpubench_use_stream(gpubench *bench, gpubench_stream stream);

/* Reports verify's finding; of several, the columns max_error and tolerance
 * show the one nearest to its tolerance, or the first beyond it. Returns
 * GPUBENCH_OK, or GPUBENCH_MISMATCH if error exceeds tolerance or one of them
 * is negative, infinite or NaN, which ends the case whatever verify returns. */
int gpubench_check(gpubench *bench, double error, double tolerance);

/* ---- less to write: what setups and verifies do again and again ----
 *
 * dtype is "f64", "f32", "tf32" (stored as f32), "f16", "bf16" or "e4m3" (8 bits, 4 of them
 * exponent); any other is refused by name, and gpubench_close returns 2. */

/* What a setup may return at its end: GPUBENCH_OK, or GPUBENCH_OOM if one of its
 * allocations gave NULL. */
int gpubench_allocated(const gpubench *bench);

/* gpubench_alloc of GPUBENCH_DEVICE, with a copy of so many bytes of the host's. */
void *gpubench_upload(gpubench *bench, const void *source, size_t bytes);

/* The same with count random elements, as gpubench_fill gives them. */
void *gpubench_random(gpubench *bench, const char *dtype, size_t count);

/* Fills memory of any kind (outside a case's functions: the host's) with count
 * random elements of mean 0 and standard deviation 1: sums of four uniform
 * numbers, no element beyond 3.47. They follow from --seed and from how many
 * fills came before in this setup, so that all variants of a case get the same.
 * 0 or a cudaError_t. */
int gpubench_fill(gpubench *bench, void *memory, const char *dtype, size_t count);

/* Holds count elements of output against reference, both in memory of any kind:
 * gpubench_check of norm(output - reference) / norm(reference); where the
 * reference is 0 all through, the output must be. tolerance may be
 * GPUBENCH_OF_DTYPE: f64 1e-12, f32 1e-5, tf32 and f16 1e-3, bf16 6e-3, e4m3 3.61e-2
 * (one rounding: 2^-3 / sqrt(12), the root mean square over the spacing of its numbers), by
 * the coarser of the two. An element that is infinite or NaN, as one is that was not
 * written, never passes, nor does a comparison of nothing. The reason names the
 * element that is farthest off. GPUBENCH_OK, GPUBENCH_MISMATCH or a cudaError_t. */
#define GPUBENCH_OF_DTYPE (-1.0)
int gpubench_compare(gpubench *bench, const void *output, const char *dtype, const void *reference,
                     const char *reference_dtype, size_t count, double tolerance);

/* What gpubench_close calls after everything else, the last one first. */
void gpubench_at_close(gpubench *bench, void (*function)(void *argument), void *argument);

/* Memory of the host for a case's context, all bytes 0, and a formatted text for
 * its variant or params. Both live until gpubench_close. */
void *gpubench_own(gpubench *bench, size_t bytes);
const char *gpubench_text(gpubench *bench, const char *format, ...) GPUBENCH_PRINTF(2, 3);

/* ---- more for a case's functions ---- */
/* In setup or verify of a case of gpubench_sweep: its value on this axis, as a whole
 * number or as it was written. Without such an axis, or for the first where the value
 * is no whole number up to INT64_MAX, the case fails and says why: 0 or "". */
int64_t gpubench_axis_number(gpubench *bench, const char *name);
const char *gpubench_axis_text(gpubench *bench, const char *name);

/* In setup or verify: the bytes and flops of one run, where they are not known when
 * the case is queued. Take the place of the case's own. */
void gpubench_work(gpubench *bench, uint64_t bytes, uint64_t flops);

/* In setup or verify: a number of the case's own, for the column counters of the file,
 * the table and gpubench-compare --metric. A counter stands there as it is, under its
 * name, and less of it is better; of a rate the amount per second of the median, as
 * NAME/s, is. The same name again replaces the value. At most 8 of a case, with names of
 * at most 31 bytes without blanks, commas, quotes and '='; values are finite. What is
 * not fails the case.
 *
 *     gpubench_counter(bench, "iterations", 17);
 *     gpubench_rate(bench, "tokens", batch * length);     in the table as Mtokens/s */
void gpubench_counter(gpubench *bench, const char *name, double value);
void gpubench_rate(gpubench *bench, const char *name, double of_one_run);

/* Adds a word to the row's flags. */
void gpubench_flag(gpubench *bench, const char *word);

/* Calls use for every output of the case: what it has from gpubench_alloc as
 * GPUBENCH_OUTPUT, the last one first, then what gpubench_output named. Ends at the
 * first code other than 0 that use gives, and returns that. */
int gpubench_for_each_output(gpubench *bench,
                             int (*use)(void *context, void *memory, size_t bytes), void *context);

/* Waits until the device has done all that was enqueued, as verify must that calls
 * run once more. 0 or the error that shows then. */
int gpubench_finish(gpubench *bench);

/* gpubench_alloc, but the memory is no case's: it lives until gpubench_close, and
 * what is written beside it is not found. For what many cases use in turn. */
void *gpubench_alloc_until_close(gpubench *bench, size_t bytes, int kind);

/* gpubench_keep(value): a host function's result counts as used. A compiler
 * removes work whose result nobody sees, and what is left measures nothing. Of
 * a pointer (or an array), all memory that was written counts as used. value is
 * a scalar, a pointer or an array; in C++ anything. Costs at most a store.
 *
 *     gpubench_keep(memchr(text, 'x', length)); */
#if !defined(__cplusplus)
#define gpubench_keep(value)                                                               \
    do { /* The conditional makes an array a pointer and an integer of a bit-field. */     \
        const __typeof__(1 ? (value) : (value)) gpubench_kept = (value);                   \
        __asm__ volatile("" : : "r"(&gpubench_kept) : "memory");                           \
    } while (0)
#endif

/* ---- for a program that chooses its cases by the device ---- */

int gpubench_is_cuda(const gpubench *bench);            /* 1: a GPU is measured */
int gpubench_compute_capability(const gpubench *bench); /* 90 for 9.0; 0 on the CPU */
uint64_t gpubench_seed(const gpubench *bench);          /* for the inputs */

/* Refuses the command line: prints the message; gpubench_close returns 2. */
void gpubench_usage_error(gpubench *bench, const char *format, ...) GPUBENCH_PRINTF(2, 3);

/* Says something on standard error behind the program's name, unless --quiet. */
void gpubench_note(const gpubench *bench, const char *format, ...) GPUBENCH_PRINTF(2, 3);

/* A name as a terminal or a CI's log may show it, in room, cut to bytes - 1: control
 * characters, bytes that are no UTF-8, and what begins a command of a log ("::" in front,
 * "##") become '?'. Gives back room. */
const char *gpubench_plain(const char *text, char *room, size_t bytes);

/* ---- looking inside one execution: --kernels, --memory and --trace ---- */

/* Watches further executions of each case that was measured, after all that is timed:
 * begin, run, end, the device idle before and after each of them, then tell; those of an
 * empty kernel first, where the device has one. gpubench_trace.h has one. They return 0,
 * or an exit status after a message of their own. */
typedef struct gpubench_watcher {
    int (*open)(gpubench *bench); /* before the first case */
    int (*begin)(gpubench *bench, const gpubench_case *one);
    int (*end)(gpubench *bench, const gpubench_case *one, int code); /* not 0: forget it */
    /* What the case's executions were, which all were as this mode has them. one is NULL
     * for the empty kernel. */
    int (*tell)(gpubench *bench, const gpubench_case *one, const char *mode);
    int (*close)(gpubench *bench);                         /* after the last: print and write */
    void (*range)(const char *name);                       /* NULL: the innermost one ends */
} gpubench_watcher;

/* Memory of a case, or (change is not NULL) what a change would make of it. */
typedef struct gpubench_part {
    const char *category, *change;
    uint64_t bytes;
    double at_us; /* when it was there, or was named, since setup began */
} gpubench_part;

/* Calls use for every part that the case at hand has, as they came, and then for what
 * nobody named. For a watcher, in tell. */
void gpubench_for_each_part(gpubench *bench,
                            void (*use)(void *context, const gpubench_part *part), void *context);

/* Without one those options are refused. Before gpubench_run and gpubench_close. */
void gpubench_watch(gpubench *bench, const gpubench_watcher *watcher);

/* The text that a standard option ("--trace") was given, "" if it takes none; NULL if
 * it was not given. */
const char *gpubench_given(const gpubench *bench, const char *option);

/* Names what is enqueued between the two, for NVTX and for --trace; they nest. Cost
 * a comparison each while nobody watches. */
void gpubench_range_begin(const char *name);
void gpubench_range_end(void);

/* ---- results ---- */

/* Measures what is queued, as gpubench_close does, but keeps the handle, so
 * that the program can read the rows. */
void gpubench_run(gpubench *bench);
/* So far; under --runs those of this run. */
size_t gpubench_row_count(const gpubench *bench);
/* The text of a column ("median_us") of row i; "" where it does not apply;
 * NULL for an unknown column or row. */
const char *gpubench_value(const gpubench *bench, size_t row, const char *column);

/* ---- statistics, text and numbers: pure functions ---- */

typedef struct gpubench_statistics {
    size_t count;
    double min, max, mean, stddev; /* stddev divides by n-1; 0 for n = 1 */
    double p5, p25, median, p75, p95, p99;
    double ci95_low, ci95_high; /* of the median: see gpubench_median_ranks */
} gpubench_statistics;

/* Sorts samples and describes them. -1, and nothing written, if count is 0 or
 * one of them is infinite or NaN. */
int gpubench_describe(double *samples, size_t count, gpubench_statistics *out);

/* The p-quantile (0 to 1) of count sorted values, count > 0: linear between
 * the order statistics around (count-1)*p (Hyndman and Fan, "Sample quantiles
 * in statistical packages", 1996, definition 7). */
double gpubench_quantile(const double *sorted, size_t count, double p);

/* Zero-based ranks of the order statistics that enclose the median with 95 %
 * confidence (Conover, "Practical nonparametric statistics", 3.2): exact
 * binomial tails up to 64 values, normal approximation above. Below 6 values
 * no such pair exists and the ranks are the extremes. */
void gpubench_median_ranks(size_t count, size_t *low, size_t *high);

/* How many samples, in the order in which they were measured, say as much of
 * the median as one that is independent of the others: at least 1. A row's
 * ci95 columns are wider by its square root. By batch means (Flegal and Jones,
 * "Batch means and spectral variance estimators in Markov chain Monte Carlo",
 * 2010): of the sign of sample - median, over sqrt(count) batches. 1 for fewer
 * than 64 samples or equal ones. */
double gpubench_dependence(const double *samples_in_order, size_t count);

/* By what fraction the median of the last fifth of the samples is above that of
 * the first; 0 for fewer than 20. It is more than noise, which the second
 * function says, if it is above 1 % and the 95 % intervals of the two medians
 * do not meet; fifths below 6 samples have no such interval. */
double gpubench_drift(const double *samples_in_order, size_t count);
int gpubench_drift_is_real(const double *samples_in_order, size_t count);

/* Shortest decimal text that reads back as value, with a point in any locale.
 * "" for NaN and infinities. text has room for 32 bytes. */
void gpubench_format_number(double value, char *text);

/* The whole text as an unsigned decimal (digits, optional point and digits,
 * optional exponent; a point in any locale) or as a whole number of digits
 * only. 0, or -1 if it is anything else or does not fit. */
int gpubench_parse_number(const char *text, double *value);
int gpubench_parse_count(const char *text, uint64_t *value);

/* 0 for infinities and NaNs. By bits, because with -ffast-math compilers take
 * comparisons with NaN for constants. */
int gpubench_is_finite(double value);

/* The square root without libm: NaN of a NaN and of what is below 0, with
 * -ffast-math too. */
double gpubench_sqrt(double x);

/* splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
 * generators", 2014): one step of a generator whose whole state is one word. */
uint64_t gpubench_random_word(uint64_t *state);

#ifdef __cplusplus
}
extern "C++" { /* also where the whole header is included as C */
#include <type_traits>
#include <utility>
#if GPUBENCH_CUDA
struct __half; /* defined in cuda_fp16.h and cuda_bf16.h, for whoever includes those */
struct __nv_bfloat16;
#endif

template <class gpubench_type> inline void gpubench_keep(const gpubench_type &value)
{
    __asm__ volatile("" : : "r"(&value) : "memory");
}

/* ---- in C++: cases from lambdas, elements instead of bytes ----
 *
 *     gpubench_case c = gpubench_case_of(
 *         bench, "square",
 *         [&](gpubench *bench) { x = gpubench_random<float>(bench, count), ...; },
 *         [&](gpubench_stream stream) { square<<<blocks, 256, 0, stream>>>(x, y); },
 *         [&](gpubench *bench) { gpubench_compare(bench, y, expected, count); });
 *
 * Exceptions and RTTI are not needed. */

/* new Type(arguments...), deleted by gpubench_close. */
template <class Type, class... Arguments>
Type *gpubench_own(gpubench *bench, Arguments &&...arguments);

/* A case of an object that has the members run(gpubench_stream) and, if it needs
 * them, setup(gpubench *), reset(gpubench_stream), verify(gpubench *), teardown();
 * or of a function to run. A copy of it lives until gpubench_close. They return
 * what those of a gpubench_case do, or nothing: then it went well, or for setup
 * what gpubench_allocated says. Functions may leave out their parameter. */
template <class Type>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Type what);

/* The same of two or three functions. */
template <class Setup, class Run>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Setup setup, Run run);
template <class Setup, class Run, class Verify>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Setup setup, Run run,
                               Verify verify);

/* The functions of these names above, counting elements; the first three want their
 * type written, as in gpubench_alloc<float>(bench, count). Types of elements that
 * can be filled and compared: float, double, __half, __nv_bfloat16. */
template <class Type>
Type *gpubench_alloc(gpubench *bench, size_t count, int kind = GPUBENCH_DEVICE);
template <class Type>
Type *gpubench_upload(gpubench *bench, const typename std::common_type<Type>::type *source,
                      size_t count);
template <class Type> Type *gpubench_random(gpubench *bench, size_t count);
template <class Type> int gpubench_fill(gpubench *bench, Type *memory, size_t count);
template <class Type, class Reference>
int gpubench_compare(gpubench *bench, const Type *output, const Reference *reference, size_t count,
                     double tolerance = GPUBENCH_OF_DTYPE);

/* ---- how that is done: nothing to call ---- */

namespace gpb_cpp
{
/* What a function of a case gave. (function(), code{0}) is the built-in comma if the
 * function gives nothing, and the one below if it gives an int or an enum. */
struct code {
    int value;
};
template <class Type> inline code operator,(Type value, code)
{
    static_assert(!std::is_same<Type, bool>::value, "0 means that it went well: return an int");
    code given = {static_cast<int>(value)};
    return given;
}

/* A function may leave out its parameter. */
template <class Function, class Argument>
auto call(Function &function, Argument argument, int) -> decltype(function(argument))
{
    return function(argument);
}
template <class Function, class Argument>
auto call(Function &function, Argument, long) -> decltype(function())
{
    return function();
}

/* Lambdas as an object with the members of a case. */
template <class Run> struct runs {
    Run function;
    int run(gpubench_stream stream)
    {
        return (gpb_cpp::call(function, stream, 0), code{0}).value;
    }
};
template <class Setup, class Run> struct sets_up : runs<Run> {
    Setup setup_function;
    sets_up(Setup first, Run then) : runs<Run>{std::move(then)}, setup_function(std::move(first)) {}
    int setup(gpubench *bench)
    {
        return (gpb_cpp::call(setup_function, bench, 0), code{gpubench_allocated(bench)}).value;
    }
};
template <class Setup, class Run, class Verify> struct verifies : sets_up<Setup, Run> {
    Verify verify_function;
    verifies(Setup first, Run then, Verify last)
        : sets_up<Setup, Run>(std::move(first), std::move(then)), verify_function(std::move(last))
    {
    }
    int verify(gpubench *bench)
    {
        return (gpb_cpp::call(verify_function, bench, 0), code{0}).value;
    }
};

/* What has no member run is a function. */
template <class Type> auto object_of(Type &what, int) -> decltype(&Type::run, Type(std::move(what)))
{
    return std::move(what);
}
template <class Type> runs<Type> object_of(Type &what, long)
{
    return runs<Type>{std::move(what)};
}

/* A member function as a case's function; NULL where Type has none of that name. */
typedef int (*on_bench)(void *, gpubench *);
typedef int (*on_stream)(void *, gpubench_stream);
typedef void (*on_end)(void *);
template <class Type> int call_setup(void *context, gpubench *bench)
{
    /* The comma's left side is evaluated first: what failed there is known. */
    return (static_cast<Type *>(context)->setup(bench), code{gpubench_allocated(bench)}).value;
}
template <class Type> int call_reset(void *context, gpubench_stream stream)
{
    return (static_cast<Type *>(context)->reset(stream), code{0}).value;
}
template <class Type> int call_run(void *context, gpubench_stream stream)
{
    return (static_cast<Type *>(context)->run(stream), code{0}).value;
}
template <class Type> int call_verify(void *context, gpubench *bench)
{
    return (static_cast<Type *>(context)->verify(bench), code{0}).value;
}
template <class Type> void call_teardown(void *context)
{
    static_cast<Type *>(context)->teardown();
}
template <class Type> void destroy(void *object)
{
    delete static_cast<Type *>(object);
}
template <class Type> auto find_setup(int) -> decltype(&Type::setup, on_bench())
{
    return call_setup<Type>;
}
template <class Type> on_bench find_setup(long) { return nullptr; }
template <class Type> auto find_reset(int) -> decltype(&Type::reset, on_stream())
{
    return call_reset<Type>;
}
template <class Type> on_stream find_reset(long) { return nullptr; }
template <class Type> auto find_verify(int) -> decltype(&Type::verify, on_bench())
{
    return call_verify<Type>;
}
template <class Type> on_bench find_verify(long) { return nullptr; }
template <class Type> auto find_teardown(int) -> decltype(&Type::teardown, on_end())
{
    return call_teardown<Type>;
}
template <class Type> on_end find_teardown(long) { return nullptr; }

/* What fills and comparisons know of a type; any other does not compile. */
template <class Type> struct dtype;
template <> struct dtype<float> {
    static const char *name() { return "f32"; }
};
template <> struct dtype<double> {
    static const char *name() { return "f64"; }
};
#if GPUBENCH_CUDA
template <> struct dtype< ::__half> {
    static const char *name() { return "f16"; }
};
template <> struct dtype< ::__nv_bfloat16> {
    static const char *name() { return "bf16"; }
};
#endif

/* A count of elements that does not fit is more memory than there is. */
template <class Type> size_t bytes_of(size_t count)
{
    return count <= SIZE_MAX / sizeof(Type) ? count * sizeof(Type) : SIZE_MAX;
}
} /* namespace gpb_cpp */

template <class Type, class... Arguments>
Type *gpubench_own(gpubench *bench, Arguments &&...arguments)
{
    Type *made = new Type(std::forward<Arguments>(arguments)...);
    gpubench_at_close(bench, gpb_cpp::destroy<Type>, made);
    return made;
}

template <class Type>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Type what)
{
    typedef decltype(gpb_cpp::object_of(what, 0)) object;
    object *context = gpubench_own<object>(bench, gpb_cpp::object_of(what, 0));
    gpubench_case one = gpubench_case_init(name, gpb_cpp::call_run<object>, context);
    one.setup = gpb_cpp::find_setup<object>(0);
    one.reset = gpb_cpp::find_reset<object>(0);
    one.verify = gpb_cpp::find_verify<object>(0);
    one.teardown = gpb_cpp::find_teardown<object>(0);
    return one;
}

template <class Setup, class Run>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Setup setup, Run run)
{
    return gpubench_case_of(
        bench, name, gpb_cpp::sets_up<Setup, Run>(std::move(setup), std::move(run)));
}
template <class Setup, class Run, class Verify>
gpubench_case gpubench_case_of(gpubench *bench, const char *name, Setup setup, Run run,
                               Verify verify)
{
    return gpubench_case_of(bench, name,
                            gpb_cpp::verifies<Setup, Run, Verify>(
                                std::move(setup), std::move(run), std::move(verify)));
}

template <class Type>
Type *gpubench_alloc(gpubench *bench, size_t count, int kind)
{
    return static_cast<Type *>(gpubench_alloc(bench, gpb_cpp::bytes_of<Type>(count), kind));
}
template <class Type>
Type *gpubench_upload(gpubench *bench, const typename std::common_type<Type>::type *source,
                      size_t count)
{
    return static_cast<Type *>(gpubench_upload(bench, source, gpb_cpp::bytes_of<Type>(count)));
}
template <class Type> Type *gpubench_random(gpubench *bench, size_t count)
{
    return static_cast<Type *>(gpubench_random(bench, gpb_cpp::dtype<Type>::name(), count));
}
template <class Type> int gpubench_fill(gpubench *bench, Type *memory, size_t count)
{
    return gpubench_fill(bench, memory, gpb_cpp::dtype<Type>::name(), count);
}
template <class Type, class Reference>
int gpubench_compare(gpubench *bench, const Type *output, const Reference *reference, size_t count,
                     double tolerance)
{
    return gpubench_compare(bench, output, gpb_cpp::dtype<Type>::name(), reference,
                            gpb_cpp::dtype<Reference>::name(), count, tolerance);
}
}
#endif
#endif /* GPUBENCH_H */

#if defined(GPUBENCH_IMPLEMENTATION) && !defined(GPUBENCH_IMPLEMENTED)
#define GPUBENCH_IMPLEMENTED

/* The sections, in this order; each begins with a line of equals signs. Private
 * names begin with gpb_ or GPB_: what begins with gpubench_ is for the user.
 *
 *   numbers and text              formatting and parsing in any locale, roots, random words
 *   statistics                    quantiles, intervals of the median, dependence, drift
 *   rows and CSV, schema 2        the columns, and a row as text
 *   an index of texts             a hash table, for names that must not repeat
 *   the handle                    what gpubench and a case being measured hold; a backend's table
 *   memory of a case              allocations with guards, poison
 *   less to write                 uploads, random elements, comparison, what close frees
 *   backend: the host             functions, by the monotonic clock
 *   backend: CUDA                 gate, sweep, events, graphs, NVML
 *   rows on disk                  the journal, and FILE.partial
 *   a case that ends the process  exits, signals, timeouts; a fresh process goes on
 *   measuring                     warm-up, batches, when to stop
 *   from measurements to rows     statistics, rates and flags of a row
 *   the samples' file             --samples
 *   the rows as JSON              --json
 *   one group, mode by mode       members side by side, verification
 *   further executions, watched   --kernels, --memory and --trace
 *   the table                     what is printed
 *   processes                     --runs
 *   command line                  options, --help, --list
 *   sweeps                        the values of axes, and their product
 *   the public functions          what is declared above
 */

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif
#if GPUBENCH_CUDA
#include <dlfcn.h>
#include <pthread.h>
#endif

#ifndef CLOCK_MONOTONIC
#error "gpubench.h needs POSIX: include it first where GPUBENCH_IMPLEMENTATION is defined"
#endif

/* What built the program, for the CSV's last columns. */
#ifndef GPUBENCH_GIT
#define GPUBENCH_GIT ""
#endif
#ifndef GPUBENCH_COMPILER
#if defined(__clang__)
#define GPUBENCH_COMPILER __VERSION__
#else
#define GPUBENCH_COMPILER "gcc " __VERSION__
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Measured to learn what the method itself costs: as cold as a case's function,
 * so on a page of its own, and compiled as those are, so in front of the pragmas. */
__attribute__((aligned(4096))) static int gpb_run_nothing(void *context,
                                                          gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

/* What is timed on the host, up to the first error: as fast a loop as the compiler
 * makes, because a function of nanoseconds is as long as it. */
__attribute__((noinline)) static int gpb_run_often(int (*run)(void *, gpubench_stream),
                                                   void *context, uint64_t count)
{
    uint64_t i;
    int code = 0;
    for (i = 0; i < count && code == 0; i++)
        code = run(context, NULL);
    return code;
}

/* Nothing below runs in a timed section but the loop that enqueues, so most of
 * the optimizer's time is saved for whoever includes this. Not all of it: the
 * inline functions that _FORTIFY_SOURCE puts in front of libc's do not compile
 * without optimization. */
#if defined(__clang__)
#pragma clang optimize off
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C has no others */
#elif defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC push_options
#pragma GCC optimize("Og")
#endif

#define GPB_COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ==== numbers and text ==================================================== */

/* Without a clock nothing can be measured, and no wait ends. */
static double gpb_now_s(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        perror("gpubench: clock_gettime");
        exit(2);
    }
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* No clock that is used here resolves less than a nanosecond. */
static double gpb_round_to_ns(double us)
{
    return (double)(uint64_t)(us * 1e3 + 0.5) / 1e3;
}

/* By bits: with -ffast-math compilers take comparisons with NaN for constants.
 * They could still see through the bits to what they know of the number, but
 * not through a volatile. */
static uint64_t gpb_magnitude(double value)
{
    uint64_t bits;
    volatile uint64_t seen;
    memcpy(&bits, &value, sizeof bits);
    seen = bits;
    return seen & (UINT64_MAX >> 1);
}

#define GPB_INFINITY_BITS ((uint64_t)0x7ff << 52)

int gpubench_is_finite(double value)
{
    return gpb_magnitude(value) < GPB_INFINITY_BITS;
}

static double gpb_nan(void)
{
    const uint64_t bits = (uint64_t)0xfff << 51;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Newton's iteration from above: the header must not make its users link libm.
 * Infinity is its own root, NaN and what is below 0 have none. */
double gpubench_sqrt(double x)
{
    double root = x > 1 ? x : 1;
    if (gpb_magnitude(x) == 0)
        return 0;
    if (gpb_magnitude(x) > GPB_INFINITY_BITS || x < 0)
        return gpb_nan();
    if (!gpubench_is_finite(x))
        return x;
    for (;;) {
        volatile double next = 0.5 * (root + x / root);
        if (!(next < root))
            return root;
        root = next; /* in memory: registers of the x87 hold more digits */
    }
}

/* The process is out of memory for its own bookkeeping: nothing can be saved. */
static void *gpb_must(void *memory)
{
    if (!memory) {
        fputs("gpubench: out of host memory\n", stderr);
        exit(2);
    }
    return memory;
}

/* Makes room for one more element in an array of count that grows one by one:
 * whenever count is a power of two, for twice as many. */
static void *gpb_grow(void *array, size_t count, size_t element_bytes)
{
    if ((count & (count - 1)) != 0)
        return array;
    return gpb_must(realloc(array, (count ? 2 * count : 1) * element_bytes));
}

static char *gpb_duplicate(const char *text)
{
    size_t bytes = strlen(text ? text : "") + 1;
    return (char *)memcpy(gpb_must(malloc(bytes)), text ? text : "", bytes);
}

/* Whatever the locale's decimal point is, it is one run of foreign bytes. */
static void gpb_use_point(char *text)
{
    char *at = text + strspn(text, "+-0123456789");
    if (*at && *at != 'e') {
        size_t width = strcspn(at, "0123456789e");
        *at = '.';
        memmove(at + 1, at + width, strlen(at + width) + 1);
    }
}

void gpubench_format_number(double value, char *text)
{
    int digits;
    text[0] = '\0';
    if (!gpubench_is_finite(value))
        return;
    for (digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    gpb_use_point(text);
}

int gpubench_parse_number(const char *text, double *value)
{
    const char *point = localeconv()->decimal_point;
    size_t whole = strspn(text, "0123456789"), fraction = 0, used;
    char local[96], *end;
    double parsed;
    if (text[whole] == '.')
        fraction = strspn(text + whole + 1, "0123456789");
    used = whole + (text[whole] == '.' ? 1 + fraction : 0);
    if (whole == 0 || (text[whole] == '.' && fraction == 0))
        return -1;
    if (text[used] == 'e') {
        size_t sign = (text[used + 1] == '-' || text[used + 1] == '+') ? 1 : 0;
        size_t exponent = strspn(text + used + 1 + sign, "0123456789");
        used += exponent ? 1 + sign + exponent : 0;
    }
    if (text[used] != '\0' || used + strlen(point) >= sizeof local)
        return -1;
    snprintf(local, sizeof local, "%.*s%s%s", (int)whole, text, text[whole] == '.' ? point : "",
             text + whole + (text[whole] == '.' ? 1 : 0));
    parsed = strtod(local, &end);
    if (*end != '\0' || !gpubench_is_finite(parsed))
        return -1;
    *value = parsed;
    return 0;
}

int gpubench_parse_count(const char *text, uint64_t *value)
{
    uint64_t parsed = 0;
    const char *at;
    if (!*text)
        return -1;
    for (at = text; *at; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*at < '0' || *at > '9' || parsed > (UINT64_MAX - digit) / 10)
            return -1;
        parsed = parsed * 10 + digit;
    }
    *value = parsed;
    return 0;
}

uint64_t gpubench_random_word(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ==== statistics ========================================================== */

static int gpb_compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double gpubench_quantile(const double *sorted, size_t count, double p)
{
    double position = (double)(count - 1) * p;
    size_t below = (size_t)position;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* The ranks where dependence samples count as one. */
static void gpb_dependent_ranks(size_t count, double dependence, size_t *low, size_t *high)
{
    size_t outside = 0; /* how many values may be left out on each side */
    if (count > 64 || dependence > 1) {
        /* 1.96 * sqrt(n) / 2, and a continuity correction */
        double half_width = 0.98 * gpubench_sqrt((double)count * dependence) - 0.5;
        outside = half_width < (double)count / 2 ? (size_t)((double)count / 2 - half_width) : 0;
    } else {
        double term = 1, tail; /* binomial(count, k) / 2^count, summed from k = 0 */
        size_t k;
        for (k = 0; k < count; k++)
            term /= 2;
        for (tail = term, k = 0; tail <= 0.025 && k < count; k++) {
            outside = k + 1;
            term *= (double)(count - k) / (double)(k + 1);
            tail += term;
        }
    }
    *low = outside > 0 ? outside - 1 : 0;
    *high = count - 1 - *low;
}

void gpubench_median_ranks(size_t count, size_t *low, size_t *high)
{
    gpb_dependent_ranks(count, 1, low, high);
}

int gpubench_describe(double *samples, size_t count, gpubench_statistics *out)
{
    double sum = 0, squares = 0;
    size_t i, low, high;
    for (i = 0; i < count && gpubench_is_finite(samples[i]); i++)
        continue;
    if (count == 0 || i < count)
        return -1;
    qsort(samples, count, sizeof *samples, gpb_compare_doubles);
    for (i = 0; i < count; i++)
        sum += samples[i] - samples[0]; /* around the minimum: equal samples give exactly 0 */
    out->count = count;
    out->mean = samples[0] + sum / (double)count;
    for (i = 0; i < count; i++)
        squares += (samples[i] - out->mean) * (samples[i] - out->mean);
    out->stddev = count > 1 ? gpubench_sqrt(squares / (double)(count - 1)) : 0;
    out->min = samples[0];
    out->max = samples[count - 1];
    out->p5 = gpubench_quantile(samples, count, 0.05);
    out->p25 = gpubench_quantile(samples, count, 0.25);
    out->median = gpubench_quantile(samples, count, 0.5);
    out->p75 = gpubench_quantile(samples, count, 0.75);
    out->p95 = gpubench_quantile(samples, count, 0.95);
    out->p99 = gpubench_quantile(samples, count, 0.99);
    gpubench_median_ranks(count, &low, &high);
    out->ci95_low = samples[low];
    out->ci95_high = samples[high];
    return 0;
}

static double gpb_dependence_around(double median, const double *samples, size_t count)
{
    size_t batches = (size_t)gpubench_sqrt((double)count), length = count / batches, batch, i;
    double sum = 0, squares = 0, batch_squares = 0, mean, variance, dependence;
    if (count < 64)
        return 1;
    for (batch = 0; batch < batches; batch++) {
        int signs = 0, used = 0;
        for (i = batch * length; i < (batch + 1) * length; i++) {
            int sign = (samples[i] > median) - (samples[i] < median);
            signs += sign;
            used += sign * sign;
        }
        sum += signs;
        squares += used;
        batch_squares += (double)signs * signs;
    }
    mean = sum / (double)(batches * length);
    variance = squares / (double)(batches * length) - mean * mean;
    if (variance < 1e-12) /* but for rounding 0 */
        return 1;
    batch_squares -= sum * sum / (double)batches;
    dependence = batch_squares / (double)(batches - 1) / (double)length / variance;
    return dependence > 1 ? dependence : 1;
}

/* The same as gpubench_describe, of samples in the order of measuring, which
 * stay so. *dependence is what the interval is widened by; 0 asks for theirs. */
static int gpb_describe_in_order(const double *samples, size_t count, gpubench_statistics *out,
                                 double *dependence)
{
    double *sorted = (double *)gpb_must(malloc((count + 1) * sizeof *sorted));
    size_t low, high;
    int code;
    if (count > 0)
        memcpy(sorted, samples, count * sizeof *sorted);
    code = gpubench_describe(sorted, count, out);
    if (code == 0) {
        if (*dependence <= 0)
            *dependence = gpb_dependence_around(out->median, samples, count);
        gpb_dependent_ranks(count, *dependence, &low, &high);
        out->ci95_low = sorted[low];
        out->ci95_high = sorted[high];
    }
    free(sorted);
    return code;
}

double gpubench_dependence(const double *samples_in_order, size_t count)
{
    gpubench_statistics statistics;
    double dependence = 0;
    int code = gpb_describe_in_order(samples_in_order, count, &statistics, &dependence);
    return code == 0 ? dependence : 1;
}

/* How much they depend on each other beside a drift: around each fifth's own
 * median. 0 if one of them is no finite number. */
static double gpb_dependence_in_fifths(const double *samples, size_t count)
{
    double *rests = (double *)gpb_must(malloc((count + 1) * sizeof *rests));
    size_t fifth = count / 5, part, i;
    double dependence = 0;
    int code = 0;
    for (part = 0; part < 5 && code == 0; part++) {
        gpubench_statistics statistics;
        dependence = 1;
        code = gpb_describe_in_order(samples + part * fifth, fifth, &statistics, &dependence);
        for (i = part * fifth; i < (part + 1) * fifth && code == 0; i++)
            rests[i] = samples[i] - statistics.median;
    }
    dependence = code == 0 ? gpb_dependence_around(0, rests, 5 * fifth) : 0;
    free(rests);
    return dependence;
}

/* The first fifth of the samples, and the last. -1 if there is none. */
static int gpb_describe_ends(const double *samples, size_t count, gpubench_statistics *first,
                             gpubench_statistics *last)
{
    size_t fifth = count / 5;
    double dependence = count < 20 ? 0 : gpb_dependence_in_fifths(samples, count);
    if (dependence <= 0 || gpb_describe_in_order(samples, fifth, first, &dependence) != 0)
        return -1;
    return gpb_describe_in_order(samples + count - fifth, fifth, last, &dependence);
}

double gpubench_drift(const double *samples_in_order, size_t count)
{
    gpubench_statistics first, last;
    if (gpb_describe_ends(samples_in_order, count, &first, &last) != 0 || first.median <= 0)
        return 0;
    return last.median / first.median - 1;
}

int gpubench_drift_is_real(const double *samples_in_order, size_t count)
{
    gpubench_statistics first, last;
    double drift = gpubench_drift(samples_in_order, count);
    return (drift > 0.01 || drift < -0.01) && count / 5 >= 6 &&
           gpb_describe_ends(samples_in_order, count, &first, &last) == 0 &&
           (first.ci95_high < last.ci95_low || last.ci95_high < first.ci95_low);
}

/* ==== rows and CSV, schema 2 ============================================== */

/* counters holds NAME=VALUE, separated by blanks: a column for each would make every
 * program's file another. The last one, share_of_peak, is for the table and is not
 * written to files. */
#define GPB_COLUMNS(X)                                                                          \
    X(schema) X(suite) X(case) X(variant) X(backend) X(dtype) X(params) X(mode)                 \
    X(campaign) X(run) X(order) X(status) X(flags)                                              \
    X(samples) X(batch) X(warmup) X(min_us) X(p5_us) X(p25_us) X(median_us) X(p75_us) X(p95_us) \
    X(p99_us) X(max_us) X(mean_us) X(stddev_us) X(ci95_low_us) X(ci95_high_us) X(overhead_us)   \
    X(events_us) X(host_us)                                                                     \
    X(bytes) X(flops) X(gb_per_s) X(tflop_per_s) X(max_error) X(tolerance) X(device_bytes)      \
    X(sm_mhz) X(mem_mhz) X(temperature_c) X(power_w) X(energy_mj)                               \
    X(device) X(uuid) X(pci) X(compute_capability) X(sm_count) X(l2_bytes) X(memory_bytes)      \
    X(power_limit_w) X(driver) X(cuda_runtime) X(cpu)                                           \
    X(gpubench_version) X(compiler) X(git) X(seed) X(settings) X(timestamp) X(counters)         \
    X(runs_on) X(share_of_peak)

#define GPB_ENUM(name) GPB_COLUMN_##name,
#define GPB_TEXT(name) #name,
enum { GPB_COLUMNS(GPB_ENUM) GPB_COLUMN_COUNT };
enum { GPB_FILE_COLUMNS = GPB_COLUMN_share_of_peak };
static const char *const gpb_column_names[] = {GPB_COLUMNS(GPB_TEXT)};

typedef struct gpb_row {
    char *fields[GPB_COLUMN_COUNT]; /* NULL: does not apply */
} gpb_row;

static void gpb_set_text(gpb_row *row, int column, const char *text)
{
    free(row->fields[column]);
    row->fields[column] = text && *text ? gpb_duplicate(text) : NULL;
}

static void gpb_set_number(gpb_row *row, int column, double value)
{
    char text[32];
    gpubench_format_number(value, text);
    gpb_set_text(row, column, text);
}

static void gpb_set_count(gpb_row *row, int column, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    gpb_set_text(row, column, text);
}

static const char *gpb_text(const gpb_row *row, int column)
{
    return row->fields[column] ? row->fields[column] : "";
}

static double gpb_number(const gpb_row *row, int column)
{
    double value = 0;
    return gpubench_parse_number(gpb_text(row, column), &value) == 0 ? value : 0;
}

static void gpb_free_row(gpb_row *row)
{
    int column;
    for (column = 0; column < GPB_COLUMN_COUNT; column++)
        free(row->fields[column]);
}

/* RFC 4180: quoted when it must be, inner quotes doubled. */
static void gpb_write_field(FILE *file, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

static void gpb_write_row(FILE *file, const gpb_row *row, int columns)
{
    int column;
    for (column = 0; column < columns; column++) {
        if (column > 0)
            putc(',', file);
        gpb_write_field(file, gpb_text(row, column));
    }
    putc('\n', file);
}

static void gpb_write_header(FILE *file)
{
    int column;
    for (column = 0; column < GPB_FILE_COLUMNS; column++)
        fprintf(file, "%s%s", column ? "," : "", gpb_column_names[column]);
    putc('\n', file);
}

/* Reads one row that gpb_write_row wrote. 0 at the end of the file. */
static int gpb_read_row(FILE *file, gpb_row *row)
{
    int column = 0, quoted = 0, c = getc(file);
    size_t length = 0, capacity = 64;
    char *field;
    if (c == EOF)
        return 0;
    field = (char *)gpb_must(malloc(capacity));
    for (; c != EOF; c = getc(file)) {
        if (c == '"') {
            int next = quoted ? getc(file) : 0;
            if (!quoted) {
                quoted = 1;
                continue;
            }
            if (next != '"') {
                quoted = 0;
                ungetc(next, file);
                continue;
            }
        } else if (!quoted && (c == ',' || c == '\n')) {
            field[length] = '\0';
            if (column < GPB_COLUMN_COUNT)
                gpb_set_text(row, column++, field);
            length = 0;
            if (c == '\n')
                break;
            continue;
        }
        if (length + 1 == capacity)
            field = (char *)gpb_must(realloc(field, capacity *= 2));
        field[length++] = (char)c;
    }
    free(field);
    return 1;
}

/* ==== an index of texts ==================================================== */

/* Which number each of many texts has: a hash table with open addressing, at
 * most half full. */
typedef struct gpb_index {
    char **keys; /* its own; NULL: a free place */
    size_t *values, capacity, count;
} gpb_index;

#define GPB_NOWHERE SIZE_MAX

/* FNV-1a (Fowler, Noll and Vo): where the search for a key starts. */
static size_t gpb_index_place(const gpb_index *index, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    const char *at;
    size_t place;
    for (at = key; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    place = (size_t)hash % index->capacity;
    while (index->keys[place] && strcmp(index->keys[place], key) != 0)
        place = (place + 1) % index->capacity;
    return place;
}

static void gpb_index_grow(gpb_index *index)
{
    gpb_index old = *index;
    size_t i;
    index->capacity = old.capacity ? 2 * old.capacity : 64;
    index->keys = (char **)gpb_must(calloc(index->capacity, sizeof *index->keys));
    index->values = (size_t *)gpb_must(calloc(index->capacity, sizeof *index->values));
    for (i = 0; i < old.capacity; i++)
        if (old.keys[i]) {
            size_t place = gpb_index_place(index, old.keys[i]);
            index->keys[place] = old.keys[i];
            index->values[place] = old.values[i];
        }
    free(old.keys);
    free(old.values);
}

/* The value of the first that was added under this key, or GPB_NOWHERE. */
static size_t gpb_index_find(const gpb_index *index, const char *key)
{
    size_t place = index->capacity ? gpb_index_place(index, key) : 0;
    return index->capacity && index->keys[place] ? index->values[place] : GPB_NOWHERE;
}

static void gpb_index_add(gpb_index *index, const char *key, size_t value)
{
    size_t place;
    if (2 * (index->count + 1) > index->capacity)
        gpb_index_grow(index);
    place = gpb_index_place(index, key);
    if (index->keys[place])
        return;
    index->keys[place] = gpb_duplicate(key);
    index->values[place] = value;
    index->count++;
}

static void gpb_index_free(gpb_index *index)
{
    size_t i;
    for (i = 0; i < index->capacity; i++)
        free(index->keys[i]);
    free(index->keys);
    free(index->values);
}

/* ==== the handle ========================================================== */

/* What a case of a sweep is on one axis. */
typedef struct gpb_place {
    char *axis, *value;
} gpb_place;

typedef struct gpb_item {
    gpubench_case one;
    gpb_place *places;
    size_t place_count, group;
    char *key; /* what --list prints and --filter matches */
} gpb_item;

/* The row of a case that ends the process: made before the case may do so, so
 * that what is left to do then needs no memory. The reason goes in at split. */
typedef struct gpb_guilty {
    char *text; /* with room for GPB_REASON_BYTES more */
    size_t bytes, split;
} gpb_guilty;

/* A number of a case's own. */
typedef struct gpb_counter {
    char name[32];
    double value;
    int is_rate; /* value is the amount of one run, and per second is wanted */
} gpb_counter;

enum { GPB_COUNTERS = 8 };

/* What the host's processors did since they started, in clock ticks, and how often
 * this one was held back. 0 where nobody says. */
typedef struct gpb_pressure {
    double total, others, stolen; /* of all processors; by other programs, by other guests */
    double throttled_us, too_hot; /* by the cgroup's quota; times */
} gpb_pressure;

/* A case while it is measured in one mode. */
typedef struct gpb_live {
    const gpb_item *item;
    struct gpb_live *fresh; /* keeps what setup made for the next mode; NULL: there is none */
    unsigned mode;
    uint64_t bytes, flops; /* of one run */
    const char *status; /* NULL while nothing went wrong */
    char reason[256], flags[512];
    double *samples;
    size_t count, capacity, next_check;
    double spent_s, first_s; /* first_s: what one execution took at begin, as the host saw it */
    double enqueue_us, host_us; /* of one run: until it returned, until the device was done */
    uint64_t warmup, batch, turn, streams; /* streams: how many of them it takes turns on */
    gpubench_stream stream;  /* if it has its own: the one that it works on */
    int has_own_stream;
    int unswept;             /* host: flushing the known lines alone gives the same time */
    gpb_pressure before;     /* host: at the first execution */
    int set_up, begun, done, ungated, time_outs, power_limited, hot_looks, leads_alone;
    int crowded;  /* there was no memory for it beside its group */
    int misused;  /* it asked for what it has not: reason says what */
    const char *enough; /* why it needs no more samples; NULL while it does */
    int precise;
    gpb_counter counters[GPB_COUNTERS];
    size_t counter_count;
    double max_error, tolerance;
    int checked, check_failed, starved, allocation_error;
    uint64_t fills; /* gpubench_fill so far */
    uint64_t device_bytes, needed_bytes, free_bytes;
    double sm_mhz, mem_mhz, temperature_c, power_w, energy_mj;
    void *graph; /* the backend's: what graph mode replays */
    gpb_guilty guilty;
} gpb_live;

typedef struct gpb_allocation {
    struct gpb_allocation *next;
    const gpb_item *owner;
    unsigned char *base; /* guard zone, then the caller's bytes, then guard zone */
    size_t bytes;
    int kind;
    double at_s;
} gpb_allocation;

/* Memory that gpubench_output named. */
typedef struct gpb_output_range {
    struct gpb_output_range *next;
    const gpb_item *owner;
    void *memory;
    size_t bytes;
} gpb_output_range;

/* What a case said of its memory. */
typedef struct gpb_part {
    struct gpb_part *next;
    const gpb_item *owner;
    const void *memory; /* NULL: what a change would take */
    char *category, *change;
    uint64_t bytes;
    double at_s;
} gpb_part;

/* What gpubench_close is to call. */
typedef struct gpb_at_close {
    struct gpb_at_close *next;
    void (*function)(void *argument);
    void *argument;
} gpb_at_close;

/* What differs between a GPU and the host. Codes are the case's: 0, positive
 * API errors, negative GPUBENCH_ statuses. */
typedef struct gpb_backend {
    const char *name;
    int (*choose)(gpubench *bench); /* what to measure: 0, or 2 after a message */
    int (*open)(gpubench *bench);   /* prepares it: 0, or 2 after a message */
    void (*close)(gpubench *bench);
    int (*make_current)(gpubench *bench); /* whatever a case left current: 0 or a code */
    int (*allocate)(size_t bytes, int kind, void **memory); /* code GPUBENCH_OOM: not enough */
    void (*release)(void *base, int kind);
    int (*copy)(void *destination, const void *source, size_t bytes);
    int (*fill)(void *destination, int byte, size_t bytes, int kind);
    uint64_t (*free_bytes)(void);
    int (*begin)(gpubench *bench, gpb_live *live); /* first execution, guards, capture */
    int (*sample)(gpubench *bench, gpb_live *live, double *us);
    int (*hold)(gpubench *bench, gpubench_stream stream); /* what follows on it waits ... */
    void (*let_go)(gpubench *bench);                      /* ... until this */
    int (*finish)(gpubench *bench); /* waits for everything; errors nobody looked at */
    int (*replay)(void *graph, gpubench_stream stream); /* what begin captured */
    int (*run_empty)(void *device_state, gpubench_stream stream); /* NULL: it has no kernels */
    void (*end)(gpb_live *live);                   /* undoes begin */
    int (*alive)(gpubench *bench);                      /* after an error: can it go on? */
    const char *(*error_name)(int code);
    const char *(*error_string)(int code);
    void (*read_state)(gpubench *bench, gpb_live *live);
    int (*measure_energy)(gpubench *bench, gpb_live *live); /* 0 or a code */
    int (*takes)(const char *device); /* does this text of --device, or "auto", name one of its? */
    int (*is_oom)(int code);          /* does this positive code say that memory does not suffice? */
    int (*calibrate)(gpubench *bench, unsigned mode); /* what the method costs: 0 or a code */
    size_t calibration_samples; /* that takes, of those with caches as in cold */
    double max_time_s;          /* what --max-time is by default */
    uint64_t warmup;            /* and --warmup */
    uint64_t most_batch;        /* runs that its queue holds; 0: there is none */
    int is_patient;   /* a slow case gets its warm-up and samples, though it takes a while */
    int owns_memory;  /* what free_bytes lost in a setup was the case's to take */
    int runs_on_host; /* run is what is measured, and done when it returns */
} gpb_backend;

/* What the columns say of the machine; empty or 0 where unknown. */
typedef struct gpb_machine {
    char device[256], uuid[64], pci[32], compute_capability[16], driver[96], cuda_runtime[16];
    char cpu[256];
    int ordinal, capability, sm_count, max_sm_mhz, threads_per_sm;
    uint64_t l2_bytes, memory_bytes;
    double power_limit_w, peak_gb_per_s;
    double measured_gb_per_s, measured_tflop_per_s; /* where the device does not say */
} gpb_machine;

/* That samples take turns on, at most; the CUDA backend says why so many. */
#define GPB_STREAMS 28
#define GPB_LONG_US 1000 /* of a run that the power cap may slow before it is sampled */

typedef struct gpb_settings {
    const char *filter, *device, *mode, *csv, *json, *samples, *campaign, *sort;
    const char *kernels_csv, *memory_csv, *trace;
    double precision, max_time_s, timeout_s; /* precision is a fraction: 0.005 */
    uint64_t min_samples, max_samples, warmup, streams, runs, seed;
    int list, energy, quiet, profile, no_verify, kernels, memory;
    unsigned modes;
} gpb_settings;

/* --axis NAME=VALUES. */
typedef struct gpb_axis_given {
    const char *text;
    size_t name_bytes;
    int used;
} gpb_axis_given;

/* What gpubench_before_all was told; item owns its memory. */
typedef struct gpb_before {
    int (*function)(void *context, gpubench *bench);
    void *context;
    gpb_item item;
    int called;
} gpb_before;

/* Where finished rows go at once, as CSV. */
typedef struct gpb_journal {
    int file;      /* -1: nowhere */
    int is_stream; /* somebody else's: it keeps its name and its length */
    char *path;    /* what it is to be called; NULL: not this process's to name */
    char *partial; /* what it is called until then; NULL: path already */
    int renamed;   /* from partial to path */
    int old;       /* the file that it will replace, locked; -1: none */
    size_t rows;   /* in it, as this process knows */
    off_t header_bytes;
    int error; /* errno of the first row that could not be written */
} gpb_journal;

/* How to become a fresh process of the same program. */
typedef struct gpb_restart {
    const char *why_not; /* NULL: it can be done */
    char *program, **command, **environment;
    char *command_text;
    char **next_environment; /* the same and what the fresh process is told */
    char *told[4];
    sigset_t mask;
} gpb_restart;

/* For the estimate of the time that is left. */
typedef struct gpb_progress {
    double shown_s, began_s, row_s; /* row_s: when the last row was finished */
    size_t began_rows, rows;
} gpb_progress;

struct gpubench {
    char *suite;
    char **argv;
    gpb_settings settings;
    regex_t filter;
    int has_filter, refused, device_chosen, device_open, lost, failed;
    int calibrating; /* what the method costs is measured, not a case */
    int is_never_calm; /* the end of another program's load was waited for in vain */
    unsigned calibrated; /* the modes of which that is known */
    const gpb_backend *backend;
    gpb_machine machine;
    /* By the same method, for each mode: two events with nothing between them, a
     * memset of 4 bytes, an empty kernel (CPU: an empty function). 0: unknown. */
    double nothing_us[GPUBENCH_DIRTY + 1], memset_us[GPUBENCH_DIRTY + 1];
    double overhead_us[GPUBENCH_DIRTY + 1];
    double clock_step_us; /* the smallest difference that was seen between two times */
    gpb_item *items;
    size_t item_count, group_count, filtered_out;
    size_t groups_done; /* by gpubench_run so far */
    const char **arguments; /* those that are no options */
    size_t argument_count;
    gpb_axis_given *axes_given;
    size_t axes_given_count;
    char axis_names[256]; /* of all sweeps, for a message */
    gpb_before before;
    gpubench_threads *sweep_on; /* NULL: the calling thread alone */
    gpb_row *rows;
    size_t row_count, rows_imported;
    uint64_t order; /* rows of this run so far */
    gpb_live *current; /* whose setup, run or verify is executing */
    gpb_allocation *allocations;
    gpb_part *parts, **last_part; /* in the order in which they came */
    double set_up_s;              /* when the setup at hand began */
    gpb_output_range *outputs;
    gpb_at_close *at_close;
    uint64_t fills; /* gpubench_fill outside cases so far */
    gpb_index item_keys; /* of items by key */
    gpb_index row_keys;  /* of the first rows_indexed rows */
    size_t rows_indexed;
    char *samples_path; /* what --samples names, links followed, or NULL */
    char *samples_temporary; /* where all processes of one invocation gather them */
    int samples_lost;        /* they could not be written */
    char *json_path, *json_temporary; /* as for --samples */
    size_t json_rows;                 /* that the latter holds, as this process knows */
    int json_error;                   /* errno of the first row that could not be written */
    char **devices;  /* of --device, where there are several: each is a process's */
    size_t device_count;
    char *device_told; /* the one of the process that is started next, or of this one */
    uint64_t run;    /* 1 for the first process of --runs */
    int is_child;    /* one of the processes of --runs */
    int rows_file;   /* a file without a name that goes from process to process, or -1 */
    off_t rows_at, json_at; /* where this run's rows begin there and in --json's file */
    int rows_error;  /* errno of the first row that could not be written there */
    uint64_t most_rows; /* that the queue can give in this run */
    gpb_journal journal;
    gpb_restart restart;
    char campaign[64];
    gpb_progress progress;
    const gpubench_watcher *watcher;
    const char **given, **given_standard; /* options' texts: all, and behind the program's own */
    void *device_state; /* the backend's */
};

/* Of ranges, under --profile only: NVTX's, where the CUDA backend found it. */
static int (*gpb_profiler_push)(const char *name);
static int (*gpb_profiler_pop)(void);

static void gpb_keep_watch(const gpubench *bench, double now_s);
static void gpb_clear_progress(void);
static int gpb_calibrate(gpubench *bench, unsigned mode, int (*run)(void *, gpubench_stream),
                         double *median_us);

/* Bytes of the character of UTF-8 at text; 0: it is none (RFC 3629). */
static size_t gpb_utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0, i;
    for (i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90))
        return 0;
    return length;
}

/* Control characters of ASCII, and those that UTF-8 spells with two bytes. */
static int gpb_is_control(const unsigned char *at)
{
    return *at < 0x20 || *at == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

/* Is nothing in front that a CI's log would not trim? */
static int gpb_begins(const char *text, const char *at)
{
    while (at > text && !(at[-1] > 0x20 && at[-1] < 0x7f))
        at--;
    return at == text;
}

/* Bytes of the character at `at` in text; *shown: whether it may be shown as it is. A CI's
 * log takes "::error::" for a command at the beginning of a line, "##[error]" anywhere. */
static size_t gpb_look_at(const char *text, const char *at, int *shown)
{
    const unsigned char *bytes = (const unsigned char *)at;
    size_t length = gpb_utf8_length(bytes);
    *shown = length > 0 && !gpb_is_control(bytes) &&
             !(at > text && at[-1] == '#' && at[0] == '#') &&
             !(at[0] == ':' && at[1] == ':' && gpb_begins(text, at));
    return length > 0 ? length : 1;
}

/* As many bytes as the text has, so that columns keep their widths. */
static void gpb_put_plain(FILE *file, const char *text)
{
    const char *at = text;
    while (*at) {
        int shown;
        size_t length = gpb_look_at(text, at, &shown);
        for (; length > 0; length--, at++)
            putc(shown ? *at : '?', file);
    }
}

const char *gpubench_plain(const char *text, char *room, size_t bytes)
{
    const char *at = text;
    size_t used = 0;
    while (*at) {
        int shown;
        size_t length = gpb_look_at(text, at, &shown);
        if (used + length >= bytes)
            break;
        for (; length > 0; length--, at++)
            room[used++] = shown ? *at : '?';
    }
    room[used] = '\0';
    return room;
}

/* Whose cases are executed: for those functions of a case that get no handle. */
static gpubench *gpb_measuring;

GPUBENCH_PRINTF(2, 0)
static void gpb_complain(const gpubench *bench, const char *format, va_list arguments)
{
    char room[512], *text = room, *line, *end;
    va_list again;
    int length;
    va_copy(again, arguments);
    length = vsnprintf(room, sizeof room, format, arguments);
    if (length >= (int)sizeof room) {
        text = (char *)malloc((size_t)length + 1);
        if (text)
            vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    gpb_clear_progress();
    gpb_put_plain(stderr, bench->suite);
    fputs(": ", stderr);
    for (line = text ? text : room; line; line = end) { /* a message may have several lines */
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        gpb_put_plain(stderr, line);
        putc('\n', stderr);
    }
    if (text != room)
        free(text);
}

GPUBENCH_PRINTF(2, 3)
static void gpb_message(const gpubench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    gpb_complain(bench, format, arguments);
    va_end(arguments);
}

void gpubench_usage_error(gpubench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    gpb_complain(bench, format, arguments);
    va_end(arguments);
    bench->refused = 1;
}

void gpubench_note(const gpubench *bench, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!bench->settings.quiet)
        gpb_complain(bench, format, arguments);
    va_end(arguments);
}

/* Appends a word; blanks inside become '_', because flags are separated by them. */
static void gpb_add_flag(gpb_live *live, const char *word)
{
    size_t length = strlen(live->flags), i;
    if (length + strlen(word) + 2 > sizeof live->flags)
        return;
    if (length > 0)
        live->flags[length++] = ' ';
    for (i = 0; word[i]; i++)
        live->flags[length + i] = word[i];
    live->flags[length + i] = '\0';
    for (; live->flags[length]; length++)
        if (live->flags[length] == ' ' || live->flags[length] == '\n')
            live->flags[length] = '_';
}

void gpubench_work(gpubench *bench, uint64_t bytes, uint64_t flops)
{
    if (bench->current) {
        bench->current->bytes = bytes;
        bench->current->flops = flops;
    }
}

/* The case asked for what there is not: it fails, with the first reason. */
GPUBENCH_PRINTF(2, 3)
static void gpb_misuse(gpubench *bench, const char *format, ...)
{
    gpb_live *live = bench->current;
    va_list arguments;
    if (!live || live->misused)
        return;
    live->misused = 1;
    va_start(arguments, format);
    vsnprintf(live->reason, sizeof live->reason, format, arguments);
    va_end(arguments);
}

static void gpb_count(gpubench *bench, const char *name, double value, int is_rate)
{
    gpb_live *live = bench->current;
    size_t i = 0;
    if (!live)
        return;
    if (!name || !*name || strlen(name) >= sizeof live->counters[0].name ||
        name[strcspn(name, " ,=\"\t\r\n")]) {
        gpb_misuse(bench, "counter '%s': wants a name of 1 to 31 bytes without blanks, commas, "
                   "quotes and '='", name ? name : "");
        return;
    }
    if (!gpubench_is_finite(value)) {
        gpb_misuse(bench, "counter '%s' is no finite number", name);
        return;
    }
    while (i < live->counter_count && (strcmp(live->counters[i].name, name) != 0 ||
                                       live->counters[i].is_rate != is_rate))
        i++;
    if (i == GPB_COUNTERS) {
        gpb_misuse(bench, "counter '%s': has %d already", name, GPB_COUNTERS);
        return;
    }
    live->counter_count += i == live->counter_count;
    strcpy(live->counters[i].name, name);
    live->counters[i].value = value;
    live->counters[i].is_rate = is_rate;
}

void gpubench_counter(gpubench *bench, const char *name, double value)
{
    gpb_count(bench, name, value, 0);
}

void gpubench_rate(gpubench *bench, const char *name, double of_one_run)
{
    gpb_count(bench, name, of_one_run, 1);
}

void gpubench_flag(gpubench *bench, const char *word)
{
    if (bench->current)
        gpb_add_flag(bench->current, word);
}

static const char *gpb_status_word(int code)
{
    switch (code) {
    case GPUBENCH_OOM: return "oom";
    case GPUBENCH_UNSUPPORTED: return "unsupported";
    case GPUBENCH_SKIPPED: return "skipped";
    case GPUBENCH_MISMATCH: return "mismatch";
    default: return "failed";
    }
}

int gpubench_fail(gpubench *bench, int status, const char *format, ...)
{
    gpb_live *live = bench ? bench->current : gpb_measuring ? gpb_measuring->current : NULL;
    if (live) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(live->reason, sizeof live->reason, format, arguments);
        va_end(arguments);
    }
    return status;
}

int gpubench_fail_call(const char *call, int code, const char *text)
{
    const gpb_backend *backend = gpb_measuring ? gpb_measuring->backend : NULL;
    int starved = text && backend && backend->is_oom(code) &&
                  !strcmp(backend->error_string(code), text);
    return gpubench_fail(NULL, starved ? GPUBENCH_OOM : GPUBENCH_FAILED, "%.*s: %s (%d)",
                         (int)strcspn(call, "("), call, text ? text : "unknown error", code);
}

int gpubench_check(gpubench *bench, double error, double tolerance)
{
    gpb_live *live = bench->current;
    int error_is_one = gpubench_is_finite(error) && error >= 0;
    int tolerance_is_one = gpubench_is_finite(tolerance) && tolerance >= 0;
    int fine = error_is_one && tolerance_is_one && error <= tolerance;
    if (live && !live->check_failed &&
        (!fine || !live->checked || error * live->tolerance > live->max_error * tolerance)) {
        live->max_error = error;
        live->tolerance = tolerance;
        live->checked = 1;
        live->check_failed = !fine; /* stays, whatever else is checked and returned */
    }
    if (!error_is_one || !tolerance_is_one)
        gpubench_fail(bench, GPUBENCH_MISMATCH, "the %s %.3g is no finite number from 0 on",
                      error_is_one ? "tolerance" : "error", error_is_one ? tolerance : error);
    else if (!fine)
        gpubench_fail(bench, GPUBENCH_MISMATCH, "error %.3g exceeds the tolerance %.3g", error,
                      tolerance);
    return fine ? GPUBENCH_OK : GPUBENCH_MISMATCH;
}

/* What a positive code means, as far as that is known: libraries number theirs from 1
 * too, and a program that is built for CUDA returns CUDA's also on the CPU. */
static void gpb_explain_code(const gpubench *bench, int code, const char *stage, char *text,
                             size_t capacity)
{
    const gpb_backend *backend = bench->backend;
    const char *name = backend->error_name(code), *other = "";
    int shared = code >= 3 && code <= 16 && code != 9; /* rare of CUDA's, usual of cuBLAS's */
#if GPUBENCH_CUDA
    if (!gpubench_is_cuda(bench))
        other = cudaGetErrorName((cudaError_t)code);
    if (strncmp(other, "cudaError", 9) != 0)
        other = "";
    if (gpubench_is_cuda(bench) && strncmp(name, "cudaError", 9) != 0) {
        snprintf(text, capacity, "%s: code %d is none of CUDA's; GPUBENCH_TRY tells what another "
                 "library's means", stage, code);
        return;
    }
#endif
    snprintf(text, capacity, "%s: %s: %s%s%s", stage, name, backend->error_string(code),
             *other ? ", or of CUDA's " : "", other);
    if (gpubench_is_cuda(bench) && shared)
        snprintf(text + strlen(text), capacity - strlen(text),
                 ", if %d is CUDA's; GPUBENCH_TRY tells what another library's means", code);
}

static void gpb_enter(const gpubench *bench, gpb_live *live, const char *stage);
static void gpb_leave(const gpubench *bench);

/* What a case left on its device may never end, and then asking does not: what is said of
 * it then begins with why it failed. */
static int gpb_is_alive(gpubench *bench, gpb_live *live)
{
    int alive;
    gpb_enter(bench, live, live->reason);
    alive = bench->backend->alive(bench);
    gpb_leave(bench);
    return alive;
}

/* Ends a case with what code means. stage: what it was doing. */
static void gpb_blame(gpubench *bench, gpb_live *live, int code, const char *stage)
{
    const char *own = NULL;
    if (code == GPUBENCH_OOM && live->allocation_error)
        code = live->allocation_error;
    if (code > 0 && live->item->one.error_string)
        own = live->item->one.error_string(code);
    if (code > 0 && !own && bench->backend->is_oom(code))
        code = GPUBENCH_OOM;
    live->status = gpb_status_word(code);
    live->done = 1;
    if (code == GPUBENCH_OOM && live->free_bytes == 0)
        live->free_bytes = bench->backend->free_bytes();
    if (own) {
        snprintf(live->reason, sizeof live->reason, "%s: %s", stage, own);
    } else if (code > 0) {
        gpb_explain_code(bench, code, stage, live->reason, sizeof live->reason);
    } else if (live->reason[0] == '\0') {
        snprintf(live->reason, sizeof live->reason, "%s: %s", stage,
                 code == GPUBENCH_OOM ? "not enough memory" : "returned without a reason");
    }
    if (code != GPUBENCH_UNSUPPORTED && code != GPUBENCH_SKIPPED && !gpb_is_alive(bench, live))
        bench->lost = 1;
}

/* ==== memory of a case ==================================================== */

enum { GPB_GUARD_BYTES = 512, GPB_GUARD_BYTE = 0xa5 };

/* Why gpubench_alloc gives NULL: no memory, or an error that only shows here. */
static void gpb_note_starved(gpubench *bench, int code, size_t bytes)
{
    gpb_live *live = bench->current;
    live->starved = 1;
    if (code != GPUBENCH_OOM) {
        live->allocation_error = code;
        return;
    }
    live->needed_bytes = bytes;
    live->free_bytes = bench->backend->free_bytes();
    gpubench_fail(bench, GPUBENCH_OOM, "needed %llu bytes, %llu are free",
                  (unsigned long long)bytes, (unsigned long long)live->free_bytes);
}

/* owner NULL: no case's, freed by gpubench_close. */
static void *gpb_allocate(gpubench *bench, const gpb_item *owner, size_t bytes, int kind)
{
    const gpb_backend *backend = bench->backend;
    gpb_allocation *made;
    void *memory = NULL;
    unsigned char *base;
    int code = GPUBENCH_OOM;
    if (bytes <= SIZE_MAX - 2 * GPB_GUARD_BYTES)
        code = backend->allocate(bytes + 2 * GPB_GUARD_BYTES, kind, &memory);
    base = (unsigned char *)memory;
    if (code == 0)
        code = backend->fill(base, GPB_GUARD_BYTE, GPB_GUARD_BYTES, kind);
    if (code == 0)
        code = backend->fill(base + GPB_GUARD_BYTES + bytes, GPB_GUARD_BYTE,
                             GPB_GUARD_BYTES, kind);
    if (code != 0) {
        if (memory)
            backend->release(memory, kind);
        gpb_note_starved(bench, code, bytes);
        return NULL;
    }
    made = (gpb_allocation *)gpb_must(calloc(1, sizeof *made));
    made->owner = owner;
    made->base = base;
    made->bytes = bytes;
    made->kind = kind;
    made->at_s = gpb_now_s();
    made->next = bench->allocations;
    bench->allocations = made;
    return base + GPB_GUARD_BYTES;
}

void *gpubench_alloc(gpubench *bench, size_t bytes, int kind)
{
    void *memory;
    if (!bench->current) {
        gpubench_usage_error(bench, "gpubench_alloc outside a case's setup");
        return NULL;
    }
    memory = gpb_allocate(bench, bench->current->item, bytes, kind);
    if (memory && (kind & ~GPUBENCH_OUTPUT) == GPUBENCH_DEVICE)
        bench->current->device_bytes += bytes;
    return memory;
}

void *gpubench_alloc_until_close(gpubench *bench, size_t bytes, int kind)
{
    if (!bench->current) {
        gpubench_usage_error(bench, "gpubench_alloc_until_close outside a case's functions");
        return NULL;
    }
    return gpb_allocate(bench, NULL, bytes, kind & ~GPUBENCH_OUTPUT);
}

int gpubench_copy(gpubench *bench, void *destination, const void *source, size_t bytes)
{
    return bench->backend->copy(destination, source, bytes);
}

static int gpb_add_part(gpubench *bench, const void *memory, uint64_t bytes, const char *category,
                        const char *change)
{
    gpb_part *made;
    if (!bench->current) {
        gpubench_usage_error(bench, "gpubench_category outside a case's setup");
        return GPUBENCH_FAILED;
    }
    made = (gpb_part *)gpb_must(calloc(1, sizeof *made));
    made->owner = bench->current->item;
    made->memory = memory;
    made->bytes = bytes;
    made->category = gpb_duplicate(category);
    made->change = change ? gpb_duplicate(change) : NULL;
    made->at_s = gpb_now_s();
    if (!bench->last_part)
        bench->last_part = &bench->parts;
    *bench->last_part = made;
    bench->last_part = &made->next;
    return GPUBENCH_OK;
}

int gpubench_category(gpubench *bench, const void *memory, uint64_t bytes, const char *category)
{
    return memory ? gpb_add_part(bench, memory, bytes, category, NULL) : GPUBENCH_OK;
}

int gpubench_category_if(gpubench *bench, const char *change, uint64_t bytes, const char *category)
{
    return gpb_add_part(bench, NULL, bytes, category, change);
}

/* Whether it lies inside the allocation. */
static int gpb_is_part_of(const gpb_part *part, const gpb_allocation *whole)
{
    const unsigned char *begin = whole->base + GPB_GUARD_BYTES;
    const unsigned char *at = (const unsigned char *)part->memory;
    return at && part->owner == whole->owner && at >= begin && at < begin + whole->bytes;
}

static uint64_t gpb_unnamed_bytes(const gpubench *bench, const gpb_allocation *whole)
{
    uint64_t named = 0;
    const gpb_part *part;
    for (part = bench->parts; part; part = part->next)
        named += gpb_is_part_of(part, whole) ? part->bytes : 0;
    return named < whole->bytes ? whole->bytes - named : 0;
}

void gpubench_for_each_part(gpubench *bench,
                            void (*use)(void *context, const gpubench_part *part), void *context)
{
    const gpb_item *owner = bench->current ? bench->current->item : NULL;
    const gpb_allocation *one;
    const gpb_part *part;
    for (part = bench->parts; part; part = part->next)
        if (part->owner == owner && part->bytes > 0) {
            gpubench_part told = {part->category, part->change, part->bytes,
                                  (part->at_s - bench->set_up_s) * 1e6};
            use(context, &told);
        }
    for (one = bench->allocations; one; one = one->next) {
        int is_output = (one->kind & GPUBENCH_OUTPUT) != 0;
        gpubench_part told = {is_output ? "outputs" : "other", NULL, gpb_unnamed_bytes(bench, one),
                              (one->at_s - bench->set_up_s) * 1e6};
        if (one->owner == owner && (one->kind & ~GPUBENCH_OUTPUT) == GPUBENCH_DEVICE && told.bytes > 0)
            use(context, &told);
    }
}

int gpubench_output(gpubench *bench, void *memory, size_t bytes)
{
    gpb_output_range *made;
    if (!bench->current) {
        gpubench_usage_error(bench, "gpubench_output outside a case's setup");
        return GPUBENCH_FAILED;
    }
    made = (gpb_output_range *)gpb_must(calloc(1, sizeof *made));
    made->owner = bench->current->item;
    made->memory = memory;
    made->bytes = bytes;
    made->next = bench->outputs;
    bench->outputs = made;
    return GPUBENCH_OK;
}

int gpubench_for_each_output(gpubench *bench,
                             int (*use)(void *context, void *memory, size_t bytes), void *context)
{
    const gpb_allocation *one;
    const gpb_output_range *range;
    const gpb_item *owner = bench->current ? bench->current->item : NULL;
    int code = 0;
    for (one = bench->allocations; one && code == 0; one = one->next)
        if (one->owner == owner && (one->kind & GPUBENCH_OUTPUT))
            code = use(context, one->base + GPB_GUARD_BYTES, one->bytes);
    for (range = bench->outputs; range && code == 0; range = range->next)
        if (range->owner == owner)
            code = use(context, range->memory, range->bytes);
    return code;
}

int gpubench_finish(gpubench *bench)
{
    return bench->backend->finish(bench);
}

/* Of a case whose work was not found there. */
static const char *gpb_stream_name(const gpb_live *live)
{
    return live->has_own_stream ? "the stream that it named" : "the stream it was given";
}

static const char *gpb_stream_hint(const gpb_live *live)
{
    return live->has_own_stream
               ? ""
               : "; if it works on one of its own, or on the default one, name that in setup: "
                 "gpubench_use_stream(bench, stream)";
}

int gpubench_use_stream(gpubench *bench, gpubench_stream stream)
{
    gpb_live *live = bench->current;
    if (!live || live->begun || live->item == &bench->before.item) {
        gpubench_usage_error(bench, "gpubench_use_stream outside a case's setup");
        return GPUBENCH_FAILED;
    }
    live->stream = stream;
    if (!live->has_own_stream && !bench->backend->runs_on_host)
        gpb_add_flag(live, "own-stream");
    live->has_own_stream = 1;
    return GPUBENCH_OK;
}

static void gpb_forget_parts(gpubench *bench, const gpb_item *owner)
{
    gpb_part **link = &bench->parts;
    while (*link) {
        gpb_part *one = *link;
        if (one->owner != owner) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        free(one->category);
        free(one->change);
        free(one);
    }
    bench->last_part = link;
}

static void gpb_forget_outputs(gpubench *bench, const gpb_item *owner)
{
    gpb_output_range **link = &bench->outputs;
    while (*link) {
        gpb_output_range *one = *link;
        if (one->owner == owner) {
            *link = one->next;
            free(one);
        } else {
            link = &one->next;
        }
    }
}

/* Of a lost device nothing can be given back, and a kernel that never ends would be
 * waited for: only what is the host's goes. */
static void gpb_forget_memory(gpubench *bench)
{
    while (bench->parts)
        gpb_forget_parts(bench, bench->parts->owner);
    while (bench->allocations) {
        gpb_allocation *one = bench->allocations;
        bench->allocations = one->next;
        if ((one->kind & ~GPUBENCH_OUTPUT) == GPUBENCH_PAGEABLE)
            bench->backend->release(one->base, one->kind);
        free(one);
    }
    while (bench->outputs) {
        gpb_output_range *one = bench->outputs;
        bench->outputs = one->next;
        free(one);
    }
}

static void gpb_release_memory(gpubench *bench, const gpb_item *owner)
{
    gpb_allocation **link = &bench->allocations;
    gpb_forget_outputs(bench, owner);
    gpb_forget_parts(bench, owner);
    while (*link) {
        gpb_allocation *one = *link;
        if (one->owner != owner) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        bench->backend->release(one->base, one->kind);
        free(one);
    }
}

/* A case uses its own memory and what gpubench_before_all took for all. */
static int gpb_uses(const gpubench *bench, const gpb_item *item, const gpb_item *owner)
{
    return owner == item || owner == &bench->before.item;
}

/* A verify that sees what an earlier run left behind could pass by accident.
 * item NULL: the outputs of all cases that are set up. */
static int gpb_poison_outputs(gpubench *bench, const gpb_item *item)
{
    const gpb_allocation *one;
    const gpb_output_range *range;
    int code = 0;
    for (one = bench->allocations; one && code == 0; one = one->next)
        if ((!item || gpb_uses(bench, item, one->owner)) && (one->kind & GPUBENCH_OUTPUT))
            code = bench->backend->fill(one->base + GPB_GUARD_BYTES, 0xff, one->bytes,
                                        one->kind);
    for (range = bench->outputs; range && code == 0; range = range->next)
        if (!item || gpb_uses(bench, item, range->owner))
            code = bench->backend->fill(range->memory, 0xff, range->bytes, GPUBENCH_DEVICE);
    return code;
}

/* 0 if nobody wrote there, GPUBENCH_MISMATCH if somebody did, or why that cannot be known. */
static int gpb_check_guard(gpubench *bench, const unsigned char *zone)
{
    unsigned char bytes[GPB_GUARD_BYTES];
    size_t i;
    int code = bench->backend->copy(bytes, zone, sizeof bytes);
    for (i = 0; i < sizeof bytes && code == 0; i++)
        if (bytes[i] != GPB_GUARD_BYTE)
            code = GPUBENCH_MISMATCH;
    return code;
}

static int gpb_check_guards(gpubench *bench, const gpb_item *item)
{
    const gpb_allocation *one;
    int code = 0;
    for (one = bench->allocations; one && code == 0; one = one->next) {
        const char *where = "in front of";
        if (!gpb_uses(bench, item, one->owner))
            continue;
        code = gpb_check_guard(bench, one->base);
        if (code == 0) {
            where = "behind";
            code = gpb_check_guard(bench, one->base + GPB_GUARD_BYTES + one->bytes);
        }
        if (code == GPUBENCH_MISMATCH)
            return gpubench_fail(bench, code, "wrote out of bounds: %s a buffer of %llu bytes",
                                 where, (unsigned long long)one->bytes);
    }
    return code;
}

/* ==== less to write ======================================================= */

int gpubench_allocated(const gpubench *bench)
{
    return bench->current && bench->current->starved ? GPUBENCH_OOM : GPUBENCH_OK;
}

void *gpubench_upload(gpubench *bench, const void *source, size_t bytes)
{
    void *memory = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE);
    int code = memory ? gpubench_copy(bench, memory, source, bytes) : 0;
    if (code == 0)
        return memory;
    gpb_note_starved(bench, code, bytes);
    return NULL;
}

typedef struct gpb_dtype {
    const char *name;
    size_t bytes;
    double tolerance;
} gpb_dtype;

static const gpb_dtype gpb_dtypes[] = {
    {"f64", 8, 1e-12}, {"f32", 4, 1e-5},  {"tf32", 4, 1e-3},
    {"f16", 2, 1e-3},  {"bf16", 2, 6e-3}, {"e4m3", 1, 3.61e-2}};

static const gpb_dtype *gpb_find_dtype(gpubench *bench, const char *name)
{
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_dtypes); i++)
        if (!strcmp(gpb_dtypes[i].name, name ? name : ""))
            return &gpb_dtypes[i];
    gpubench_usage_error(bench, "dtype '%s': wants f64, f32, tf32, f16, bf16 or e4m3",
                         name ? name : "");
    return NULL;
}

/* The sum of four uniform numbers has a variance of four twelfths. */
static float gpb_random_element(uint64_t *state)
{
    const double scale = 1.7320508075688772 / 65536; /* sqrt(3): one over the deviation */
    uint64_t word = gpubench_random_word(state);
    int sum = (int)(word & 0xffff) + (int)(word >> 16 & 0xffff) + (int)(word >> 32 & 0xffff) +
              (int)(word >> 48);
    return (float)(scale * (sum - 2 * 0xffff));
}

static uint32_t gpb_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double gpb_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* The upper bits of a float's, to nearest, ties to even. */
static uint32_t gpb_round_bits(uint32_t bits, unsigned dropped)
{
    return (bits + (1u << (dropped - 1)) - 1 + (bits >> dropped & 1u)) >> dropped;
}

/* Of numbers that gpb_random_element gives: none is too large, none a NaN. */
static uint16_t gpb_f16_of_float(float value)
{
    uint32_t bits = gpb_bits_of_float(value), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x38800000u) { /* 2^-14: below, steps of 2^-24, as floats from 0.5 on have */
        float absolute = value < 0 ? -value : value;
        return (uint16_t)(sign | (gpb_bits_of_float(absolute + 0.5f) - 0x3f000000u));
    }
    return (uint16_t)(sign | (gpb_round_bits(magnitude, 13) - (112u << 10)));
}

static double gpb_double_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0)
        return (sign ? -1.0 : 1.0) * fraction / (1 << 24);
    exponent = exponent == 31 ? 255 : exponent + 112;
    return gpb_float_of_bits(sign | exponent << 23 | fraction << 13);
}

/* Of numbers that gpb_random_element gives, as above. */
static uint8_t gpb_e4m3_of_float(float value)
{
    uint32_t bits = gpb_bits_of_float(value), sign = bits >> 24 & 0x80u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude < 0x3c800000u) { /* 2^-6: below, steps of 2^-9, as floats from 2^14 on have */
        float absolute = value < 0 ? -value : value;
        return (uint8_t)(sign | (gpb_bits_of_float(absolute + 16384.0f) - 0x46800000u));
    }
    return (uint8_t)(sign | (gpb_round_bits(magnitude, 20) - (120u << 3)));
}

/* No infinity, and of each sign one NaN. */
static double gpb_double_of_e4m3(uint8_t byte)
{
    uint32_t sign = (uint32_t)(byte & 0x80u) << 24, exponent = byte >> 3 & 15u;
    uint32_t fraction = byte & 7u;
    if (exponent == 0)
        return (sign ? -1.0 : 1.0) * fraction / 512;
    exponent = (byte & 0x7fu) == 0x7fu ? 255 : exponent + 120;
    return gpb_float_of_bits(sign | exponent << 23 | fraction << 20);
}

static void gpb_store(void *elements, const gpb_dtype *dtype, size_t i, float value)
{
    if (dtype->bytes == 8)
        ((double *)elements)[i] = (double)value;
    else if (dtype->bytes == 4)
        ((float *)elements)[i] = value;
    else if (dtype->bytes == 1)
        ((uint8_t *)elements)[i] = gpb_e4m3_of_float(value);
    else if (dtype->name[0] == 'f')
        ((uint16_t *)elements)[i] = gpb_f16_of_float(value);
    else
        ((uint16_t *)elements)[i] = (uint16_t)gpb_round_bits(gpb_bits_of_float(value), 16);
}

static double gpb_load(const void *elements, const gpb_dtype *dtype, size_t i)
{
    if (dtype->bytes == 8)
        return ((const double *)elements)[i];
    if (dtype->bytes == 4)
        return (double)((const float *)elements)[i];
    if (dtype->bytes == 1)
        return gpb_double_of_e4m3(((const uint8_t *)elements)[i]);
    if (dtype->name[0] == 'f')
        return gpb_double_of_f16(((const uint16_t *)elements)[i]);
    return gpb_float_of_bits((uint32_t)((const uint16_t *)elements)[i] << 16);
}

/* Elements of another memory that are on the host at a time. */
enum { GPB_CHUNK = 1 << 15 };

static size_t gpb_chunk(size_t begin, size_t count)
{
    return count - begin < GPB_CHUNK ? count - begin : (size_t)GPB_CHUNK;
}

static void *gpb_new_chunk(const gpb_dtype *dtype)
{
    return gpb_must(malloc(GPB_CHUNK * dtype->bytes));
}

int gpubench_fill(gpubench *bench, void *memory, const char *dtype, size_t count)
{
    const gpb_dtype *type = gpb_find_dtype(bench, dtype);
    uint64_t key = bench->settings.seed, state;
    unsigned char *to = (unsigned char *)memory;
    size_t begin, i;
    int code = 0;
    void *chunk;
    if (!type)
        return GPUBENCH_FAILED;
    key = gpubench_random_word(&key) + (bench->current ? bench->current->fills++ : bench->fills++);
    state = gpubench_random_word(&key);
    chunk = gpb_new_chunk(type);
    for (begin = 0; begin < count && code == 0; begin += GPB_CHUNK) {
        size_t length = gpb_chunk(begin, count);
        for (i = 0; i < length; i++)
            gpb_store(chunk, type, i, gpb_random_element(&state));
        if (bench->current)
            code = gpubench_copy(bench, to + begin * type->bytes, chunk, length * type->bytes);
        else /* no device is in use yet */
            memcpy(to + begin * type->bytes, chunk, length * type->bytes);
    }
    free(chunk);
    return code;
}

void *gpubench_random(gpubench *bench, const char *dtype, size_t count)
{
    const gpb_dtype *type = gpb_find_dtype(bench, dtype);
    size_t bytes = type && count <= SIZE_MAX / type->bytes ? count * type->bytes : SIZE_MAX;
    void *memory = type ? gpubench_alloc(bench, bytes, GPUBENCH_DEVICE) : NULL;
    int code = memory ? gpubench_fill(bench, memory, dtype, count) : 0;
    if (code == 0)
        return memory;
    gpb_note_starved(bench, code, bytes);
    return NULL;
}

/* One output against its reference so far. */
typedef struct gpb_comparison {
    double difference2, reference2;
    double worst, is, should_be; /* the largest difference, and between what */
    size_t at;
    int broken; /* one of them is no finite number: the first such */
} gpb_comparison;

static void gpb_compare_element(gpb_comparison *c, size_t at, double is, double should_be)
{
    double difference = is - should_be, absolute = difference < 0 ? -difference : difference;
    int broken = !gpubench_is_finite(is) || !gpubench_is_finite(should_be);
    if (c->broken)
        return;
    if (broken || absolute > c->worst) {
        c->broken = broken;
        c->worst = absolute;
        c->at = at;
        c->is = is;
        c->should_be = should_be;
    }
    c->difference2 += difference * difference;
    c->reference2 += should_be * should_be;
}

static double gpb_relative_error(const gpb_comparison *c)
{
    if (c->broken)
        return gpb_nan();
    if (c->reference2 > 0)
        return gpubench_sqrt(c->difference2 / c->reference2);
    return c->difference2 > 0 ? gpubench_sqrt(DBL_MAX) : 0;
}

/* By bits, as what is compared may be a NaN where compilers believe in none. */
static const char *gpb_number_text(double value, char *text)
{
    if (gpubench_is_finite(value))
        snprintf(text, 32, "%.6g", value);
    else
        snprintf(text, 32, "%s", gpb_magnitude(value) > GPB_INFINITY_BITS ? "nan" : "infinite");
    return text;
}

static int gpb_judge_comparison(gpubench *bench, const gpb_comparison *c, double tolerance)
{
    double error = gpb_relative_error(c);
    char is[32], should_be[32];
    int status = gpubench_check(bench, error, tolerance);
    if (status != GPUBENCH_OK && bench->current) {
        char *reason = bench->current->reason;
        size_t length = strlen(reason), room = sizeof bench->current->reason - length;
        snprintf(reason + length, room, ": element %llu is %s instead of %s",
                 (unsigned long long)c->at, gpb_number_text(c->is, is),
                 gpb_number_text(c->should_be, should_be));
    }
    return status;
}

int gpubench_compare(gpubench *bench, const void *output, const char *dtype, const void *reference,
                     const char *reference_dtype, size_t count, double tolerance)
{
    const gpb_dtype *type = gpb_find_dtype(bench, dtype);
    const gpb_dtype *other = gpb_find_dtype(bench, reference_dtype);
    gpb_comparison c;
    size_t begin, i;
    int code = 0;
    void *is, *should_be;
    memset(&c, 0, sizeof c);
    if (!type || !other)
        return GPUBENCH_FAILED;
    if (count == 0) { /* which ends the case, whatever verify makes of it */
        (void)gpubench_check(bench, gpb_nan(), 0);
        return gpubench_fail(bench, GPUBENCH_MISMATCH, "gpubench_compare: there is no element");
    }
    if (tolerance < 0)
        tolerance = type->tolerance > other->tolerance ? type->tolerance : other->tolerance;
    is = gpb_new_chunk(type);
    should_be = gpb_new_chunk(other);
    for (begin = 0; begin < count && code == 0; begin += GPB_CHUNK) {
        size_t length = gpb_chunk(begin, count);
        code = gpubench_copy(bench, is, (const char *)output + begin * type->bytes,
                             length * type->bytes);
        if (code == 0)
            code = gpubench_copy(bench, should_be, (const char *)reference + begin * other->bytes,
                                 length * other->bytes);
        for (i = 0; i < length && code == 0; i++)
            gpb_compare_element(&c, begin + i, gpb_load(is, type, i),
                                gpb_load(should_be, other, i));
    }
    free(is);
    free(should_be);
    return code != 0 ? code : gpb_judge_comparison(bench, &c, tolerance);
}

void gpubench_at_close(gpubench *bench, void (*function)(void *), void *argument)
{
    gpb_at_close *made = (gpb_at_close *)gpb_must(calloc(1, sizeof *made));
    made->function = function;
    made->argument = argument;
    made->next = bench->at_close;
    bench->at_close = made;
}

void *gpubench_own(gpubench *bench, size_t bytes)
{
    void *memory = gpb_must(calloc(1, bytes ? bytes : 1));
    gpubench_at_close(bench, free, memory);
    return memory;
}

const char *gpubench_text(gpubench *bench, const char *format, ...)
{
    va_list arguments;
    int length;
    char *text;
    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) { /* a character that the locale cannot encode */
        gpubench_usage_error(bench, "gpubench_text: '%s' cannot be formatted", format);
        return "";
    }
    text = (char *)gpubench_own(bench, (size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

static void gpb_call_at_close(gpubench *bench)
{
    while (bench->at_close) {
        gpb_at_close *one = bench->at_close;
        bench->at_close = one->next;
        one->function(one->argument);
        free(one);
    }
}

/* Does --device mean a GPU by this: its number, or its UUID or a part's of it? */
static int gpb_names_gpu(const char *device)
{
    uint64_t number;
    return !strncmp(device, "GPU-", 4) || !strncmp(device, "MIG-", 4) ||
           gpubench_parse_count(device, &number) == 0;
}

/* ==== backend: the host =================================================== */

static uint64_t gpb_host_free_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (uint64_t)kib * 1024;
}

/* From this size on memory is of pages of 2 MiB where the system has them for those who
 * ask: rows that are read in any order find their addresses in the processor's table then. */
enum { GPB_HUGE_PAGE = 2 << 20 };

static void gpb_ask_for_huge_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* refused: small ones do as well */
#else
    (void)memory;
    (void)bytes;
#endif
}

/* Linux hands out more than it has and kills whoever touches it, so ask
 * first, and touch every page now rather than inside a sample. */
static int gpb_host_allocate(size_t bytes, int kind, void **memory)
{
    const size_t alignment = bytes >= GPB_HUGE_PAGE ? GPB_HUGE_PAGE : 512;
    uint64_t available = gpb_host_free_bytes();
    (void)kind;
    *memory = NULL;
    if ((available > 0 && bytes > available) || posix_memalign(memory, alignment, bytes) != 0)
        return GPUBENCH_OOM;
    if (bytes >= GPB_HUGE_PAGE)
        gpb_ask_for_huge_pages(*memory, bytes / GPB_HUGE_PAGE * GPB_HUGE_PAGE);
    memset(*memory, 0xff, bytes);
    return 0;
}

static void gpb_host_release(void *base, int kind)
{
    (void)kind;
    free(base);
}

static int gpb_host_copy(void *destination, const void *source, size_t bytes)
{
    if (bytes > 0) /* of none both may be NULL, which memcpy does not take */
        memcpy(destination, source, bytes);
    return 0;
}

static int gpb_host_fill(void *destination, int byte, size_t bytes, int kind)
{
    (void)kind;
    memset(destination, byte, bytes);
    return 0;
}

/* ---- the processor's name, from the text of /proc/cpuinfo ---- */

/* Cores by implementer and part, as their manuals number them (MIDR_EL1). */
static const struct { unsigned implementer, part; const char *name; } gpb_arm_cores[] = {
    {0x41, 0xc07, "Cortex-A7"}, {0x41, 0xc09, "Cortex-A9"}, {0x41, 0xc0f, "Cortex-A15"},
    {0x41, 0xd02, "Cortex-A34"}, {0x41, 0xd03, "Cortex-A53"}, {0x41, 0xd04, "Cortex-A35"},
    {0x41, 0xd05, "Cortex-A55"}, {0x41, 0xd07, "Cortex-A57"}, {0x41, 0xd08, "Cortex-A72"},
    {0x41, 0xd09, "Cortex-A73"}, {0x41, 0xd0a, "Cortex-A75"}, {0x41, 0xd0b, "Cortex-A76"},
    {0x41, 0xd0c, "Neoverse-N1"}, {0x41, 0xd0d, "Cortex-A77"}, {0x41, 0xd40, "Neoverse-V1"},
    {0x41, 0xd41, "Cortex-A78"}, {0x41, 0xd42, "Cortex-A78AE"}, {0x41, 0xd44, "Cortex-X1"},
    {0x41, 0xd46, "Cortex-A510"}, {0x41, 0xd47, "Cortex-A710"}, {0x41, 0xd48, "Cortex-X2"},
    {0x41, 0xd49, "Neoverse-N2"}, {0x41, 0xd4a, "Neoverse-E1"}, {0x41, 0xd4b, "Cortex-A78C"},
    {0x41, 0xd4d, "Cortex-A715"}, {0x41, 0xd4e, "Cortex-X3"}, {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd80, "Cortex-A520"}, {0x41, 0xd81, "Cortex-A720"}, {0x41, 0xd82, "Cortex-X4"},
    {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd85, "Cortex-X925"}, {0x41, 0xd87, "Cortex-A725"},
    {0x41, 0xd8e, "Neoverse-N3"}, {0x43, 0x0a1, "ThunderX"}, {0x43, 0x0af, "ThunderX2"},
    {0x46, 0x001, "A64FX"}, {0x48, 0xd01, "TSV110"}, {0x4e, 0x003, "Denver 2"},
    {0x4e, 0x004, "Carmel"}, {0x51, 0x001, "Oryon"}, {0x51, 0xc00, "Falkor"},
    {0x61, 0x022, "M1 Icestorm"}, {0x61, 0x023, "M1 Firestorm"}, {0x61, 0x032, "M2 Blizzard"},
    {0x61, 0x033, "M2 Avalanche"}, {0xc0, 0xac3, "Ampere-1"}, {0xc0, 0xac4, "Ampere-1A"}};

static const struct { unsigned code; const char *name; } gpb_arm_implementers[] = {
    {0x41, "Arm"}, {0x42, "Broadcom"}, {0x43, "Cavium"}, {0x46, "Fujitsu"}, {0x48, "HiSilicon"},
    {0x4e, "NVIDIA"}, {0x51, "Qualcomm"}, {0x53, "Samsung"}, {0x61, "Apple"},
    {0x6d, "Microsoft"}, {0xc0, "Ampere"}};

/* Appends a core's name, unless it is there already: a big.LITTLE processor
 * has several. */
static void gpb_add_arm_core(char *name, size_t capacity, unsigned implementer, unsigned part)
{
    const char *maker = NULL, *core = NULL;
    char text[64];
    size_t i, length = strlen(name);
    for (i = 0; i < GPB_COUNT_OF(gpb_arm_implementers); i++)
        if (gpb_arm_implementers[i].code == implementer)
            maker = gpb_arm_implementers[i].name;
    for (i = 0; i < GPB_COUNT_OF(gpb_arm_cores); i++)
        if (gpb_arm_cores[i].implementer == implementer && gpb_arm_cores[i].part == part)
            core = gpb_arm_cores[i].name;
    if (core)
        snprintf(text, sizeof text, "%s %s", maker, core);
    else
        snprintf(text, sizeof text, "ARM implementer 0x%02x part 0x%03x", implementer, part);
    for (i = 0; name[i];) { /* names joined by " + " */
        const char *end = strstr(name + i, " + ");
        size_t width = end ? (size_t)(end - name) - i : strlen(name + i);
        if (strlen(text) == width && !strncmp(name + i, text, width))
            return;
        i += width + (end ? 3 : 0);
    }
    snprintf(name + length, capacity - length, "%s%s", length ? " + " : "", text);
}

/* Splits "key : value" in place; NULL for a line without a colon. */
static char *gpb_split_cpuinfo(char *line)
{
    char *colon = strchr(line, ':'), *end = colon;
    if (!colon)
        return NULL;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    colon[1 + strcspn(colon + 1, "\n")] = '\0';
    return colon + 1 + strspn(colon + 1, " \t");
}

/* The key that names the processor on x86, LoongArch, MIPS, RISC-V and POWER,
 * the best first: an emulated RISC-V has only "isa". */
static int gpb_rank_cpuinfo(const char *key)
{
    static const char *const keys[] = {"model name", "Model Name", "cpu model", "uarch", "cpu",
                                       "isa"};
    size_t i = 0;
    while (i < GPB_COUNT_OF(keys) && strcmp(keys[i], key) != 0)
        i++;
    return (int)i;
}

/* ARM's cores by their numbers, because what 32-bit kernels call model name is
 * the architecture's; s390 puts the machine's number behind "processor 0". */
static void gpb_parse_cpu_name(FILE *file, char *name, size_t capacity)
{
    char line[512], cores[256] = "", machine[32];
    int best = INT_MAX;
    unsigned implementer = 0, part;
    snprintf(name, capacity, "unknown CPU");
    while (fgets(line, sizeof line, file)) {
        int whole = strchr(line, '\n') != NULL, rank;
        const char *value = gpb_split_cpuinfo(line);
        while (!whole && !feof(file))
            whole = getc(file) == '\n'; /* x86's flags are longer than a line */
        if (!value) {
            if (best == 0 && !cores[0])
                return; /* the other processors of an x86 are the same */
            continue;
        }
        rank = gpb_rank_cpuinfo(line);
        if (!strcmp(line, "CPU implementer"))
            implementer = (unsigned)strtoul(value, NULL, 16);
        else if (!strcmp(line, "CPU part") && sscanf(value, "%x", &part) == 1)
            gpb_add_arm_core(cores, sizeof cores, implementer, part);
        else if (!strncmp(line, "processor ", 10) && best == INT_MAX &&
                 strstr(value, "machine = ") &&
                 sscanf(strstr(value, "machine = ") + 10, "%31[0-9A-Fa-f]", machine) == 1)
            snprintf(name, capacity, "s390 machine %s", machine);
        else if (rank < best && rank <= 5 && *value) {
            snprintf(name, capacity, "%s%s", rank == 5 ? "RISC-V " : "", value);
            best = rank;
        }
    }
    if (cores[0])
        snprintf(name, capacity, "%s", cores);
}

static void gpb_read_cpu_name(char *name, size_t capacity)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, capacity, "unknown CPU");
    if (!file)
        return;
    gpb_parse_cpu_name(file, name, capacity);
    fclose(file);
}

/* ---- the caches of the processors that this process may run on ---- */

/* The least number from `least` on in a list as "0-3,8", which is ascending; -1: none. */
static long gpb_next_in(const char *list, long least)
{
    const char *at = list;
    while (*at >= '0' && *at <= '9') {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last >= least)
            return first > least ? first : least;
        at = *end == ',' ? end + 1 : end;
    }
    return -1;
}

/* The first line of a file that is in the folder, without its end; "": there is none. */
static void gpb_read_line(const char *folder, const char *name, char *line, size_t bytes)
{
    char path[512];
    FILE *file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "r");
    if (!file || !fgets(line, (int)bytes, file))
        line[0] = 0;
    line[strcspn(line, "\n")] = 0;
    if (file)
        fclose(file);
}

typedef struct gpb_cache {
    long level;
    size_t bytes;
    char shared[1024]; /* the list of the processors that use it */
} gpb_cache;

/* A processor's last cache, and the bytes of those of data in front of it. */
static size_t gpb_read_caches(const char *processors, long cpu, gpb_cache *last)
{
    size_t nearer_bytes = 0;
    int i;
    memset(last, 0, sizeof *last);
    for (i = 0; i < 8; i++) {
        char folder[400], text[64];
        gpb_cache one;
        snprintf(folder, sizeof folder, "%.320s/cpu%ld/cache/index%d", processors, cpu, i);
        gpb_read_line(folder, "type", text, sizeof text);
        if (!strcmp(text, "Instruction"))
            continue;
        gpb_read_line(folder, "level", text, sizeof text);
        one.level = strtol(text, NULL, 10);
        gpb_read_line(folder, "size", text, sizeof text);
        one.bytes = (size_t)strtoul(text, NULL, 10) * 1024;
        gpb_read_line(folder, "shared_cpu_list", one.shared, sizeof one.shared);
        nearer_bytes += one.level > last->level ? last->bytes : one.bytes;
        if (one.level > last->level)
            *last = one;
    }
    return nearer_bytes;
}

/* Whether no processor before it may be used too and shares the cache. */
static int gpb_is_first_of(long cpu, const char *shared, const char *allowed)
{
    long other = gpb_next_in(shared, 0);
    while (other >= 0 && other < cpu && gpb_next_in(allowed, other) != other)
        other = gpb_next_in(shared, other + 1);
    return other < 0 || other >= cpu;
}

typedef struct gpb_caches {
    size_t last_bytes;   /* of all last caches together: each shared one once */
    size_t nearer_bytes; /* that a processor has in front of its last */
} gpb_caches;

static gpb_caches gpb_find_caches(const char *processors, const char *allowed)
{
    gpb_caches all = {0, 0};
    long cpu = gpb_next_in(allowed, 0);
    for (; cpu >= 0; cpu = gpb_next_in(allowed, cpu + 1)) {
        gpb_cache last;
        size_t nearer_bytes = gpb_read_caches(processors, cpu, &last);
        if (nearer_bytes > all.nearer_bytes)
            all.nearer_bytes = nearer_bytes;
        if (gpb_is_first_of(cpu, last.shared, allowed))
            all.last_bytes += last.bytes;
    }
    return all;
}

/* The list of the processors that the process may use, as /proc/self/status has it. */
static void gpb_find_allowed(char *list, size_t bytes)
{
    static const char name[] = "Cpus_allowed_list:";
    char line[2048];
    FILE *file = fopen("/proc/self/status", "r");
    snprintf(list, bytes, "0");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, sizeof name - 1)) {
            const char *at = line + sizeof name - 1;
            snprintf(list, bytes, "%s", at + strspn(at, " \t"));
        }
    if (file)
        fclose(file);
}

/* Where Linux does not say how large the last cache is sysconf may; it multiplies, and told
 * of 320 MiB in a virtual machine that had 32, so 32 is all that is believed, and taken
 * where nobody says. */
static size_t gpb_told_cache_bytes(void)
{
    const size_t most = 32 << 20;
    long told = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    told = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return told > 0 && (size_t)told < most ? (size_t)told : most;
}

/* Twice the last caches, for what was read once does not push out all else; at most an
 * eighth of the memory (0: unknown). In whole pairs of lines. */
static size_t gpb_find_sweep_bytes(size_t last_bytes, uint64_t memory_bytes)
{
    uint64_t bytes = 2 * (uint64_t)(last_bytes > 0 ? last_bytes : gpb_told_cache_bytes());
    if (memory_bytes > 0 && bytes > memory_bytes / 8)
        bytes = memory_bytes / 8;
    return (size_t)bytes / 128 * 128;
}

/* What --device cpu keeps: memory that a sweep reads, which pushes everything
 * else out of the caches, what was written there too. */
typedef struct gpb_host {
    unsigned char *sweep; /* NULL until it is needed */
    size_t sweep_bytes;
    size_t nearer_bytes;    /* of the caches of one processor */
    size_t most_line_bytes; /* of a case's memory that is flushed line by line */
    int has_clflushopt;
} gpb_host;

/* The step of the monotonic clock in us; 0 if it stands still. A clock that
 * often says the same twice goes by its increments. One that never does is
 * finer than reading it takes: then by what the increments differ. */
static double gpb_find_clock_step(void)
{
    double increments[64], before = gpb_now_s(), start = before, step;
    size_t count = 0, i;
    uint64_t reads, most_reads = 50000000;
    for (reads = 0; reads < most_reads && count < GPB_COUNT_OF(increments); reads++) {
        double now = gpb_now_s();
        if (now > before)
            increments[count++] = gpb_round_to_ns((now - before) * 1e6);
        before = now;
        if (count >= 3 && now - start > 0.002)
            break;
    }
    if (count == 0)
        return 0;
    qsort(increments, count, sizeof *increments, gpb_compare_doubles);
    step = increments[count / 2];
    if ((double)reads > 1.1 * (double)count)
        return step;
    for (i = 1; i < count; i++) {
        double difference = gpb_round_to_ns(increments[i] - increments[i - 1]);
        if (difference > 0 && difference < step)
            step = difference;
    }
    return step;
}

/* Flushing a line of an old processor waits for it: 0.5 us; newer ones have an
 * instruction that does not. */
static int gpb_find_clflushopt(void)
{
#if defined(__x86_64__) && defined(__SSE2__)
    unsigned a = 0, b, c = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c) : : "edx");
    if (a < 7)
        return 0;
    a = 7, c = 0;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c) : : "edx");
    return (b >> 23) & 1;
#else
    return 0;
#endif
}

/* The first number behind `name` in a file, or, without a name, in it; 0: none. */
static double gpb_number_in(const char *path, const char *name)
{
    char line[512];
    double value = 0;
    int found = 0;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t length = name ? strlen(name) : 0;
        found = !name || (!strncmp(line, name, length) && line[length] == ' ');
        if (found)
            value = strtod(line + length, NULL);
    }
    if (file)
        fclose(file);
    return value;
}

/* The line of all processors in /proc/stat (proc(5)): ticks of user, nice, system,
 * idle, iowait, irq, softirq and steal. own: of this process, which is no other. */
static void gpb_parse_processors(const char *line, double own, gpb_pressure *load)
{
    double ticks[8] = {0};
    size_t i;
    char *at;
    if (strncmp(line, "cpu ", 4) != 0)
        return;
    at = (char *)(uintptr_t)(line + 4);
    for (i = 0; i < GPB_COUNT_OF(ticks); i++) {
        ticks[i] = strtod(at, &at);
        load->total += ticks[i];
    }
    load->stolen = ticks[7];
    load->others = load->total - ticks[3] - ticks[4] - ticks[7] - own;
}

/* Where this process's limits of version 2 are; those of the tree's root elsewhere. */
static void gpb_limit_file(char *path, size_t bytes, const char *name)
{
    char line[512];
    FILE *file = fopen("/proc/self/cgroup", "r");
    snprintf(path, bytes, "/sys/fs/cgroup/%s", name);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "0::/", 4) && line[4])
            snprintf(path, bytes, "/sys/fs/cgroup%s/%s", line + 3, name);
    }
    if (file)
        fclose(file);
}

static gpb_pressure gpb_pressure_now(void)
{
    gpb_pressure load;
    char text[600] = "";
    FILE *file = fopen("/proc/stat", "r");
    memset(&load, 0, sizeof load);
    if (file && fgets(text, sizeof text, file))
        gpb_parse_processors(text, (double)clock() / CLOCKS_PER_SEC *
                                       (double)sysconf(_SC_CLK_TCK), &load);
    if (file)
        fclose(file);
    gpb_limit_file(text, sizeof text, "cpu.stat");
    load.throttled_us = gpb_number_in(text, "throttled_usec");
    load.too_hot = gpb_number_in(
        "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", NULL);
    return load;
}

/* Ticks are of 10 ms: with fewer than 20 of all processors nothing is said. A tenth
 * of the machine for others is more than its own background. */
static void gpb_flag_pressure(gpb_live *live, const gpb_pressure *before,
                              const gpb_pressure *now)
{
    const double share = 0.1, least = 20;
    double total = now->total - before->total;
    if (total >= least && now->others - before->others > share * total)
        gpb_add_flag(live, "busy");
    if (total >= least && now->stolen - before->stolen > share * total / 2)
        gpb_add_flag(live, "steal");
    if (now->throttled_us > before->throttled_us)
        gpb_add_flag(live, "throttle=quota");
    if (now->too_hot > before->too_hot)
        gpb_add_flag(live, "throttle=hot");
}

/* Below what the processor promises for any load; both in kHz. */
static void gpb_flag_clock(gpb_live *live, double now, double promised)
{
    if (now > 0 && now < 0.9 * promised)
        gpb_add_flag(live, "throttle=clock");
}

/* Of the machine or, where that is less, of the process's control group. */
static uint64_t gpb_memory_limit(uint64_t machine_bytes)
{
    char path[600];
    double most;
    gpb_limit_file(path, sizeof path, "memory.max");
    most = gpb_number_in(path, NULL);
    return most > 0 && most < (double)machine_bytes ? (uint64_t)most : machine_bytes;
}

static void gpb_size_sweep(gpb_host *host, uint64_t memory_bytes)
{
    char allowed[2048];
    gpb_caches caches;
    gpb_find_allowed(allowed, sizeof allowed);
    caches = gpb_find_caches("/sys/devices/system/cpu", allowed);
    host->nearer_bytes = caches.nearer_bytes;
    host->sweep_bytes = gpb_find_sweep_bytes(caches.last_bytes, gpb_memory_limit(memory_bytes));
}

static int gpb_host_open(gpubench *bench)
{
    gpb_host *host = (gpb_host *)gpb_must(calloc(1, sizeof *host));
    long l2 = -1;
#ifdef _SC_LEVEL2_CACHE_SIZE
    l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    bench->machine.l2_bytes = l2 > 0 ? (uint64_t)l2 : 0;
    bench->machine.memory_bytes =
        (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(bench->machine.device, sizeof bench->machine.device, "%s", bench->machine.cpu);
    bench->device_state = host;
    host->has_clflushopt = gpb_find_clflushopt();
    host->most_line_bytes = host->has_clflushopt ? 4 << 20 : 1 << 20;
    bench->clock_step_us = gpb_find_clock_step();
    if (bench->clock_step_us > 0)
        return 0;
    gpb_message(bench, "the monotonic clock stands still");
    return 2;
}

static void gpb_host_close(gpubench *bench)
{
    gpb_host *host = (gpb_host *)bench->device_state;
    free(host->sweep);
    free(host);
}

/* Flushes the lines of the memory that the case has from gpubench_alloc out of
 * every cache of every core, if it is small. */
static void gpb_flush_lines(const gpubench *bench, const gpb_live *live)
{
#if defined(__SSE2__)
    const gpb_host *host = (const gpb_host *)bench->device_state;
    const gpb_allocation *one;
    size_t bytes = 0, offset;
    for (one = bench->allocations; one; one = one->next)
        bytes += gpb_uses(bench, live->item, one->owner) ? one->bytes + 2 * GPB_GUARD_BYTES : 0;
    if (bytes > host->most_line_bytes)
        return;
    for (one = bench->allocations; one; one = one->next)
        for (offset = 0; gpb_uses(bench, live->item, one->owner) &&
                         offset < one->bytes + 2 * GPB_GUARD_BYTES; offset += 64) {
            if (host->has_clflushopt) /* is clflush behind a prefix */
                __asm__ volatile(".byte 0x66; clflush %0" : "+m"(one->base[offset]));
            else
                __asm__ volatile("clflush %0" : "+m"(one->base[offset]));
        }
    __asm__ volatile("mfence" : : : "memory");
#else
    (void)bench;
    (void)live;
#endif
}

/* Reads one word of each line of `count` pairs of lines from a pair on. */
static uintptr_t gpb_read_pairs(const unsigned char *memory, size_t first, size_t count)
{
    const unsigned char *at = memory + 128 * first, *end = at + 128 * count;
    uintptr_t sum = 0;
    for (; at < end; at += 128)
        sum += at[0] + (uintptr_t)at[64];
    return sum;
}

typedef struct gpb_sweeping {
    const gpb_host *host;
    int written; /* in mode dirty what is written; else -1 */
} gpb_sweeping;

/* A thread's share: so much that all together fill the last caches, and that it fills those
 * of its own processor, which may take some of the next thread's share. */
static void gpb_sweep_share(void *context, int thread, int threads)
{
    const gpb_sweeping *sweep = (const gpb_sweeping *)context;
    const gpb_host *host = sweep->host;
    const size_t pairs = host->sweep_bytes / 128, least = 2 * host->nearer_bytes / 128;
    const size_t each = pairs / (size_t)threads, rest = pairs % (size_t)threads;
    const size_t number = (size_t)thread, over = number < rest ? number : rest;
    const size_t first = number * each + over;
    size_t count = each + (number < rest), beyond;
    if (sweep->written >= 0) {
        memset(host->sweep + 128 * first, sweep->written, 128 * count);
        gpubench_keep(host->sweep);
        return;
    }
    if (count < least)
        count = least < pairs ? least : pairs;
    beyond = count > pairs - first ? count - (pairs - first) : 0;
    gpubench_keep(gpb_read_pairs(host->sweep, first, count - beyond) +
                  gpb_read_pairs(host->sweep, 0, beyond));
}

/* Reads, so that the caches hold nothing else, and nothing dirty; or, in mode dirty,
 * writes. Caches of processors on which none of the threads is keep what those alone have
 * used and the case allocated itself. */
static void gpb_sweep(gpubench *bench, const gpb_live *live)
{
    gpb_host *host = (gpb_host *)bench->device_state;
    gpb_sweeping sweep = {host, live->mode == GPUBENCH_DIRTY ? (int)(live->turn & 0xff) : -1};
    if (!host->sweep_bytes)
        gpb_size_sweep(host, bench->machine.memory_bytes);
    if (!host->sweep) { /* written once, else all its pages are one page of zeros */
        host->sweep = (unsigned char *)gpb_must(malloc(host->sweep_bytes));
        memset(host->sweep, 1, host->sweep_bytes);
    }
    if (bench->sweep_on)
        bench->sweep_on(gpb_sweep_share, &sweep);
    else
        gpb_sweep_share(&sweep, 0, 1);
}

/* Times count runs, up to the first error. With 0 it only touches what the
 * timing itself needs: after a sweep the clock's code and data are cold, which
 * added 1.1 to 1.6 us. */
static int gpb_host_time(const gpubench_case *one, uint64_t count, double *us)
{
    double start = gpb_now_s();
    int code = gpb_run_often(one->run, one->context, count);
    *us = gpb_round_to_ns((gpb_now_s() - start) * 1e6);
    return code;
}

/* Reset and flush, and warmed run or flush; then the timed runs. */
static int gpb_host_sample(gpubench *bench, gpb_live *live, double *us)
{
    const gpubench_case *one = &live->item->one;
    int long_run = live->first_s > bench->settings.max_time_s;
    int code = one->reset ? one->reset(one->context, NULL) : 0;
    live->turn++;
    if (live->mode == GPUBENCH_HOT) {
        if (code == 0 && live->first_s > 0 && !long_run)
            code = one->run(one->context, NULL);
    } else {
        if (live->mode == GPUBENCH_COLD)
            gpb_flush_lines(bench, live);
        if (!live->unswept)
            gpb_sweep(bench, live);
    }
    (void)gpb_host_time(one, 0, us);
    return code ? code : gpb_host_time(one, live->batch, us);
}

/* The code of a function that returns 0 and does nothing else. */
typedef struct gpb_code {
    size_t length;
    unsigned char bytes[8];
} gpb_code;

#if defined(__x86_64__)
#define GPB_EMPTY_CODES                                      \
    {3, {0x31, 0xc0, 0xc3}},          /* xor eax,eax; ret */ \
    {6, {0xb8, 0, 0, 0, 0, 0xc3}},    /* mov eax,0; ret */   \
    {8, {0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3}} /* in a frame */
#define GPB_BRANCH_TARGET {4, {0xf3, 0x0f, 0x1e, 0xfa}} /* endbr64 */
#elif defined(__i386__)
#define GPB_EMPTY_CODES            \
    {3, {0x31, 0xc0, 0xc3}},       \
    {6, {0xb8, 0, 0, 0, 0, 0xc3}}, \
    {7, {0x55, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3}}
#define GPB_BRANCH_TARGET {4, {0xf3, 0x0f, 0x1e, 0xfb}} /* endbr32 */
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define GPB_EMPTY_CODES                                             \
    {8, {0, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6}}, /* mov w0,0; ret */ \
    {8, {0xe0, 3, 0x1f, 0x2a, 0xc0, 3, 0x5f, 0xd6}} /* mov w0,wzr; ret */
#define GPB_BRANCH_TARGET {4, {0x5f, 0x24, 3, 0xd5}}                 /* bti c */
#elif defined(__riscv)
#define GPB_EMPTY_CODES                             \
    {4, {1, 0x45, 0x82, 0x80}}, /* c.li a0,0; ret */ \
    {8, {0x13, 5, 0, 0, 0x67, 0x80, 0, 0}}
#define GPB_BRANCH_TARGET {4, {0x17, 0, 0, 0}} /* lpad 0 */
#endif

#ifdef GPB_EMPTY_CODES
static int gpb_starts_with(const unsigned char *at, const gpb_code *code)
{
    size_t i = 0; /* byte by byte: what follows a function may not be there to read */
    while (i < code->length && at[i] == code->bytes[i])
        i++;
    return i == code->length;
}
#endif

/* Its code tells whether a function is empty; times do not: an empty one takes
 * 1.5 to 2.8 ns by its place in memory, and as much work as that hides behind
 * the calls. */
static int gpb_is_empty(int (*run)(void *, gpubench_stream))
{
#ifdef GPB_EMPTY_CODES
    static const gpb_code empty[] = {GPB_EMPTY_CODES}, mark = GPB_BRANCH_TARGET;
    const unsigned char *at = (const unsigned char *)(uintptr_t)run;
    size_t i;
    at += gpb_starts_with(at, &mark) ? mark.length : 0;
    for (i = 0; i < GPB_COUNT_OF(empty); i++)
        if (gpb_starts_with(at, &empty[i]))
            return 1;
#else
    (void)run;
#endif
    return 0;
}

/* A case that touches nothing but its known lines needs no sweep, which takes
 * more than many a run. Believed of short runs only, and only if behind the
 * sweep as well as without it at least 10 of 12 pairs neither gain nor lose more
 * than 2 %: where the median of the pairs is further away, that happens to at
 * most one case in 50 (binomial tail), so in doubt there is a sweep. */
static int gpb_try_without_sweep(gpubench *bench, gpb_live *live)
{
    const double margin = 0.02, longest_s = 0.001;
    int faster = 0, slower = 0, pair, code = 0;
    if (live->first_s > longest_s)
        return 0;
    for (pair = 0; pair < 12 && faster < 3 && slower < 3 && code == 0; pair++) {
        double swept_us = 0, lines_us = 0;
        live->unswept = 1;
        code = gpb_host_sample(bench, live, &lines_us);
        live->unswept = 0;
        if (code == 0)
            code = gpb_host_sample(bench, live, &swept_us);
        slower += !(swept_us <= lines_us * (1 + margin));
        faster += !(swept_us >= lines_us * (1 - margin));
    }
    live->unswept = code == 0 && faster < 3 && slower < 3;
    return code;
}

static int gpb_host_begin(gpubench *bench, gpb_live *live)
{
    int (*run)(void *, gpubench_stream) = live->item->one.run;
    double us;
    int code;
    if (live->mode == GPUBENCH_GRAPH)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "graph mode needs a GPU");
    live->before = gpb_pressure_now();
    if (run != gpb_run_nothing && gpb_is_empty(run))
        return gpubench_fail(bench, GPUBENCH_FAILED, "did nothing: an empty function; hand the "
                                                     "result to gpubench_keep");
    code = gpb_host_sample(bench, live, &us);
    live->first_s = (us > 0 ? us : bench->clock_step_us) * 1e-6;
    if (code == 0 && live->mode == GPUBENCH_COLD && run != gpb_run_nothing)
        code = gpb_try_without_sweep(bench, live);
    return code;
}

/* Nothing is enqueued on the host. */
static int gpb_host_hold(gpubench *bench, gpubench_stream stream)
{
    (void)bench;
    (void)stream;
    return 0;
}

static void gpb_host_let_go(gpubench *bench)
{
    (void)bench;
}

static int gpb_host_finish(gpubench *bench)
{
    (void)bench;
    return 0;
}

static void gpb_host_end(gpb_live *live)
{
    (void)live;
}

/* There is one host: nothing is to be chosen, and nothing else can be current. */
static int gpb_host_choose(gpubench *bench)
{
    (void)bench;
    return 0;
}

static int gpb_host_alive(gpubench *bench)
{
    (void)bench;
    return 1;
}

static const char *gpb_host_error_name(int code)
{
    (void)code;
    return "error";
}

static const char *gpb_host_error_string(int code)
{
    return strerror(code);
}

/* Of a case that was begun; others look at the state of a GPU. */
static void gpb_host_read_state(gpubench *bench, gpb_live *live)
{
    static const char clock_now[] = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq";
    static const char promised[] = "/sys/devices/system/cpu/cpu0/cpufreq/base_frequency";
    gpb_pressure now;
    (void)bench;
    if (!live->begun)
        return;
    now = gpb_pressure_now();
    gpb_flag_pressure(live, &live->before, &now);
    gpb_flag_clock(live, gpb_number_in(clock_now, NULL), gpb_number_in(promised, NULL));
}

static int gpb_host_measure_energy(gpubench *bench, gpb_live *live)
{
    (void)bench;
    gpb_add_flag(live, "no-energy-counter");
    return 0;
}

static int gpb_host_takes(const char *device)
{
    return !strcmp(device, "auto") || !strcmp(device, "cpu");
}

static int gpb_host_is_oom(int code)
{
    (void)code; /* an errno says why a call failed, and OOM is a status of the case's own */
    return 0;
}

/* Of a backend whose only overhead is the call. */
static int gpb_calibrate_call(gpubench *bench, unsigned mode)
{
    if (mode == GPUBENCH_GRAPH)
        return 0;
    return gpb_calibrate(bench, mode, gpb_run_nothing, &bench->overhead_us[mode]);
}

/* A plain run of a suite on the host has to end within seconds. */
static const gpb_backend gpb_host_backend = {
    "cpu", gpb_host_choose, gpb_host_open, gpb_host_close, gpb_host_choose,
    gpb_host_allocate, gpb_host_release, gpb_host_copy, gpb_host_fill,
    gpb_host_free_bytes, gpb_host_begin, gpb_host_sample, gpb_host_hold, gpb_host_let_go,
    gpb_host_finish, NULL, NULL, /* no graphs, no kernels */
    gpb_host_end, gpb_host_alive, gpb_host_error_name, gpb_host_error_string,
    gpb_host_read_state, gpb_host_measure_energy,
    gpb_host_takes, gpb_host_is_oom, gpb_calibrate_call,
    9,   /* calibration_samples: each takes 5 ms */
    0.1, /* max_time_s: fifty cases are over in some six seconds */
    1,   /* warmup */
    0,   /* most_batch */
    0, 0, 1 /* neither is_patient nor owns_memory; runs_on_host */};

#if GPUBENCH_CUDA
/* ==== backend: CUDA ======================================================= */

const int gpubench_implementation_lacks_GPUBENCH_CUDA = 0;

/* Samples take turns on several streams: the hardware channel behind a stream
 * makes short kernels some percent slower or faster for as long as a process
 * lives (on an H100 an empty kernel took 3.07 to 3.39 us on six streams of one
 * process), so a single channel would decide the median. With 1, 16 and 32
 * streams the medians of five processes ranged over 5.2, 3.0 and 2.0 %. Streams
 * share 8 channels unless CUDA_DEVICE_MAX_CONNECTIONS says otherwise, of 32 at
 * most; a few are left to the case's own streams, which would else wait behind
 * the gate of the one that they share a channel with. */
#define GPB_CHANNELS "32"

/* A case's launches wait behind the gate at most this long, so that one that
 * synchronizes inside goes on, marked. */
#define GPB_GATE_TIMEOUT_S 0.25

/* Lives as long as whoever may still look at it: a host function that the stream has taken
 * up can run on behind an error of the sample, when all else is given back. */
typedef struct gpb_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int open, timed_out, users; /* the device's state, and each enqueued host function */
} gpb_gate;

/* NVML's functions, found at run time; what is missing stays NULL. */
typedef struct gpb_nvml {
    void *library, *device;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*driver_version)(char *text, unsigned length);
    int (*clock)(void *device, int which, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *mw);
    int (*power_limit)(void *device, unsigned *mw);
    int (*energy)(void *device, unsigned long long *mj);
    int (*throttle_reasons)(void *device, unsigned long long *reasons);
    int (*field_values)(void *device, int count, void *values);
} gpb_nvml;

/* What the host and the kernels tell each other, in memory that both see. */
typedef struct gpb_hold {
    volatile unsigned released, resident, timed_out, unused;
    volatile uint64_t stamps[2]; /* the GPU's time in ns, in front of the work and behind it */
} gpb_hold;

typedef struct gpb_cuda {
    cudaStream_t streams[GPB_STREAMS], hold_stream;
    cudaEvent_t start, stop, batches[2];
    void *flush; /* swept in front of each sample; its first words are the kernels' too */
    size_t flush_bytes;
    double idle_us; /* what cudaDeviceSynchronize costs when there is nothing to wait for */
    gpb_hold *hold;
    gpb_gate *gate;
    gpb_nvml nvml;
    void *nvtx;
    int (*range_push)(const char *name);
    int (*range_pop)(void);
    void *module, *empty, *sweep, *hold_kernel, *stamp; /* of the PTX below; NULL: none */
    void *discard_module, *discard;
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  cudaStream_t stream, void **arguments, void **extra);
    int (*module_unload)(void *module);
} gpb_cuda;

static gpb_cuda *gpb_cuda_of(const gpubench *bench)
{
    return (gpb_cuda *)bench->device_state;
}

static gpb_gate *gpb_gate_make(void)
{
    gpb_gate *gate = (gpb_gate *)gpb_must(calloc(1, sizeof *gate));
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    gate->users = 1;
    return gate;
}

/* With the mutex, which it gives back. */
static void gpb_gate_drop(gpb_gate *gate)
{
    int users = --gate->users;
    pthread_mutex_unlock(&gate->mutex);
    if (users > 0)
        return;
    pthread_mutex_destroy(&gate->mutex);
    pthread_cond_destroy(&gate->changed);
    free(gate);
}

static void CUDART_CB gpb_gate_wait(void *argument)
{
    gpb_gate *gate = (gpb_gate *)argument;
    struct timespec until = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* without a clock the gate opens at once */
    until.tv_nsec += (long)(GPB_GATE_TIMEOUT_S * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&gate->mutex);
    while (!gate->open && !gate->timed_out)
        if (pthread_cond_timedwait(&gate->changed, &gate->mutex, &until) == ETIMEDOUT)
            gate->timed_out = !gate->open;
    gpb_gate_drop(gate);
}

/* What comes on the stream from here on waits for the gate. */
static int gpb_gate_enqueue(gpb_gate *gate, cudaStream_t stream)
{
    cudaError_t code;
    pthread_mutex_lock(&gate->mutex);
    gate->users++;
    pthread_mutex_unlock(&gate->mutex);
    code = cudaLaunchHostFunc(stream, gpb_gate_wait, gate);
    if (code != cudaSuccess) {
        pthread_mutex_lock(&gate->mutex);
        gpb_gate_drop(gate);
    }
    return (int)code;
}

static void gpb_gate_close(gpb_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->open = gate->timed_out = 0;
    pthread_mutex_unlock(&gate->mutex);
}

/* 1 if the stream went on before this. */
static int gpb_gate_open(gpb_gate *gate)
{
    int timed_out;
    pthread_mutex_lock(&gate->mutex);
    gate->open = 1;
    timed_out = gate->timed_out;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
    return timed_out;
}

static void gpb_find(void *library, const char *symbol, void *function)
{
    *(void **)function = library ? dlsym(library, symbol) : NULL;
}

static void gpb_nvml_open(gpubench *bench, gpb_nvml *nvml)
{
    unsigned limit_mw;
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    gpb_find(nvml->library, "nvmlInit_v2", &nvml->init);
    gpb_find(nvml->library, "nvmlShutdown", &nvml->shutdown);
    gpb_find(nvml->library, "nvmlDeviceGetHandleByUUID", &nvml->by_uuid);
    gpb_find(nvml->library, "nvmlSystemGetDriverVersion", &nvml->driver_version);
    gpb_find(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock);
    gpb_find(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature);
    gpb_find(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power);
    gpb_find(nvml->library, "nvmlDeviceGetEnforcedPowerLimit", &nvml->power_limit);
    gpb_find(nvml->library, "nvmlDeviceGetTotalEnergyConsumption", &nvml->energy);
    gpb_find(nvml->library, "nvmlDeviceGetCurrentClocksThrottleReasons",
             &nvml->throttle_reasons);
    gpb_find(nvml->library, "nvmlDeviceGetFieldValues", &nvml->field_values);
    if (!nvml->init || nvml->init() != 0)
        return;
    if (!nvml->by_uuid || nvml->by_uuid(bench->machine.uuid, &nvml->device) != 0)
        nvml->device = NULL;
    if (nvml->driver_version)
        nvml->driver_version(bench->machine.driver, sizeof bench->machine.driver);
    if (nvml->device && nvml->power_limit && nvml->power_limit(nvml->device, &limit_mw) == 0)
        bench->machine.power_limit_w = limit_mw / 1000.0;
}

static double gpb_nvml_clock(const gpb_nvml *nvml, int which)
{
    unsigned mhz;
    return nvml->device && nvml->clock && nvml->clock(nvml->device, which, &mhz) == 0 ? mhz : 0;
}

/* The words of nvml.h's nvmlClocksThrottleReason bits that slow a kernel. */
static void gpb_flag_throttling(gpb_live *live, unsigned long long reasons)
{
    static const struct { unsigned long long bit; const char *word; } words[] = {
        {0x4, "throttle=power-cap"}, {0x8, "throttle=hw-slowdown"},
        {0x10, "throttle=sync-boost"}, {0x20, "throttle=sw-thermal"},
        {0x40, "throttle=hw-thermal"}, {0x80, "throttle=power-brake"}};
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(words); i++)
        if (reasons & words[i].bit)
            gpb_add_flag(live, words[i].word);
}

/* The power that the board draws now, in W; 0: unknown. The usual query answers
 * with the mean of the last second, which a load has to outlast; field 186 of
 * nvml.h (NVML_FI_DEV_POWER_INSTANT) does not. */
static double gpb_nvml_power_now(const gpb_nvml *nvml)
{
    struct {
        unsigned field, scope;
        long long timestamp, latency_us;
        int type, code;
        union { double d; unsigned u; unsigned long long ull; } value;
    } power;
    memset(&power, 0, sizeof power);
    power.field = 186;
    if (!nvml->device || !nvml->field_values ||
        nvml->field_values(nvml->device, 1, &power) != 0 || power.code != 0 || power.type != 1)
        return 0;
    return power.value.u / 1000.0;
}

/* At the cap, or so near to it that a load which goes on will get there. */
static int gpb_is_power_limited(const gpubench *bench, const gpb_nvml *nvml,
                                unsigned long long reasons)
{
    double limit_w = bench->machine.power_limit_w;
    return (reasons & 0x4) || (limit_w > 0 && gpb_nvml_power_now(nvml) > 0.9 * limit_w);
}

static void gpb_cuda_read_state(gpubench *bench, gpb_live *live)
{
    const gpb_nvml *nvml = &gpb_cuda_of(bench)->nvml;
    unsigned value;
    unsigned long long reasons = 0;
    live->sm_mhz = gpb_nvml_clock(nvml, 1);
    live->mem_mhz = gpb_nvml_clock(nvml, 2);
    if (!nvml->device)
        return;
    if (nvml->temperature && nvml->temperature(nvml->device, 0, &value) == 0)
        live->temperature_c = value;
    live->power_w = gpb_nvml_power_now(nvml);
    if (live->power_w == 0 && nvml->power && nvml->power(nvml->device, &value) == 0)
        live->power_w = value / 1000.0;
    if (nvml->throttle_reasons && nvml->throttle_reasons(nvml->device, &reasons) == 0)
        gpb_flag_throttling(live, reasons);
    live->power_limited |= gpb_is_power_limited(bench, nvml, reasons);
}

/* NVTX 3 is a header of inline code; its shared form is enough for two calls. */
static void gpb_nvtx_open(gpb_cuda *cuda)
{
    cuda->nvtx = dlopen("libnvtx3interop.so.1", RTLD_NOW);
    if (!cuda->nvtx)
        cuda->nvtx = dlopen("libnvToolsExt.so.1", RTLD_NOW);
    gpb_find(cuda->nvtx, "nvtxRangePushA", &cuda->range_push);
    gpb_find(cuda->nvtx, "nvtxRangePop", &cuda->range_pop);
}

static int gpb_driver_function(const char *symbol, void *function)
{
    enum cudaDriverEntryPointQueryResult found;
    void *address = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t code =
        cudaGetDriverEntryPointByVersion(symbol, &address, 12000, cudaEnableDefault, &found);
#else
    cudaError_t code = cudaGetDriverEntryPoint(symbol, &address, cudaEnableDefault, &found);
#endif
    *(void **)function = address;
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess && address;
}

/* The framework's own kernels without nvcc: PTX, compiled by the driver.
 * gpubench_empty does nothing. gpubench_stamp writes the time. gpubench_sweep
 * reads `vectors` times 16 bytes and writes nothing (but for one value of their
 * exclusive-or, lest the loads be optimized away). gpubench_hold keeps every
 * thread slot that it was launched for until the host releases it, or for
 * `limit_ns`: nothing else can start on the multiprocessors meanwhile. `arrived`
 * counts its blocks. */
static const char *const gpb_ptx =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry gpubench_empty()\n{\nret;\n}\n"
    ".visible .entry gpubench_stamp(.param .u64 at)\n{\n.reg .b64 %a, %t;\n"
    "ld.param.u64 %a, [at];\ncvta.to.global.u64 %a, %a;\nmov.u64 %t, %globaltimer;\n"
    "st.volatile.global.u64 [%a], %t;\nret;\n}\n"
    ".visible .entry gpubench_sweep(.param .u64 at, .param .u64 vectors, .param .u64 sink)\n{\n"
    ".reg .pred %p; .reg .b32 %b, %n, %t, %g, %x, %v<4>; .reg .b64 %a, %c, %i, %s, %o;\n"
    "ld.param.u64 %a, [at];\nld.param.u64 %c, [vectors];\nld.param.u64 %o, [sink];\n"
    "cvta.to.global.u64 %a, %a;\ncvta.to.global.u64 %o, %o;\n"
    "mov.u32 %b, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmov.u32 %g, %nctaid.x;\n"
    "mul.wide.u32 %s, %g, %n;\ncvt.u64.u32 %i, %t;\nmad.wide.u32 %i, %b, %n, %i;\n"
    "mov.u32 %x, 0;\nNEXT:\nsetp.ge.u64 %p, %i, %c;\n@%p bra LAST;\n"
    "shl.b64 %o, %i, 4;\nadd.s64 %o, %a, %o;\nld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%o];\n"
    "xor.b32 %x, %x, %v0;\nxor.b32 %v1, %v1, %v2;\nxor.b32 %x, %x, %v3;\nxor.b32 %x, %x, %v1;\n"
    "add.s64 %i, %i, %s;\nbra NEXT;\nLAST:\nsetp.ne.u32 %p, %x, 0x5bd1e995;\n@%p bra END;\n"
    "ld.param.u64 %o, [sink];\ncvta.to.global.u64 %o, %o;\nst.global.u32 [%o], %x;\nEND:\nret;\n}\n"
    ".visible .entry gpubench_hold(.param .u64 host, .param .u64 limit_ns,"
    " .param .u64 arrived)\n{\n"
    ".reg .pred %p; .reg .b32 %x, %g; .reg .b64 %h, %l, %a, %s, %n;\n"
    "ld.param.u64 %h, [host];\nld.param.u64 %l, [limit_ns];\nld.param.u64 %a, [arrived];\n"
    "cvta.to.global.u64 %h, %h;\ncvta.to.global.u64 %a, %a;\n"
    "mov.u32 %x, %tid.x;\nsetp.ne.u32 %p, %x, 0;\n@%p bra MEET;\n"
    "mov.u64 %s, %globaltimer;\nmov.u32 %g, %nctaid.x;\nsub.u32 %g, %g, 1;\n"
    "atom.global.add.u32 %x, [%a], 1;\nsetp.ne.u32 %p, %x, %g;\n@%p bra SPIN;\n"
    "mov.u32 %x, 1;\nst.volatile.global.u32 [%h+4], %x;\nSPIN:\n"
    "ld.volatile.global.u32 %x, [%h];\nsetp.ne.u32 %p, %x, 0;\n@%p bra MEET;\n"
    "mov.u64 %n, %globaltimer;\nsub.u64 %n, %n, %s;\nsetp.lt.u64 %p, %n, %l;\n@%p bra SPIN;\n"
    "mov.u32 %x, 1;\nst.volatile.global.u32 [%h+8], %x;\nMEET:\nbar.sync 0;\nret;\n}\n";

/* Drops `lines` cache lines of 128 bytes without writing them back (compute
 * capability 8.0 and above). */
static const char *const gpb_discard_ptx =
    ".version 7.4\n.target sm_80\n.address_size 64\n"
    ".visible .entry gpubench_discard(.param .u64 at, .param .u64 lines)\n{\n"
    ".reg .pred %p; .reg .b32 %b, %n, %t, %g; .reg .b64 %a, %c, %i, %s, %o;\n"
    "ld.param.u64 %a, [at];\nld.param.u64 %c, [lines];\ncvta.to.global.u64 %a, %a;\n"
    "mov.u32 %b, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\nmov.u32 %g, %nctaid.x;\n"
    "mul.wide.u32 %s, %g, %n;\ncvt.u64.u32 %i, %t;\nmad.wide.u32 %i, %b, %n, %i;\n"
    "NEXT:\nsetp.ge.u64 %p, %i, %c;\n@%p bra LAST;\nshl.b64 %o, %i, 7;\nadd.s64 %o, %a, %o;\n"
    "discard.global.L2 [%o], 128;\nadd.s64 %i, %i, %s;\nbra NEXT;\nLAST:\nret;\n}\n";

/* The function called name of a module; NULL if it is not to be had. */
static void *gpb_find_kernel(void *module, const char *name)
{
    int (*get)(void **function, void *module, const char *name);
    void *function = NULL;
    if (!module || !gpb_driver_function("cuModuleGetFunction", &get) ||
        get(&function, module, name) != 0)
        return NULL;
    return function;
}

static void gpb_load_kernels(gpb_cuda *cuda)
{
    int (*load)(void **module, const void *image);
    if (gpb_driver_function("cuModuleLoadData", &load) &&
        gpb_driver_function("cuModuleUnload", &cuda->module_unload) &&
        gpb_driver_function("cuLaunchKernel", &cuda->launch)) {
        if (load(&cuda->module, gpb_ptx) != 0)
            cuda->module = NULL;
        if (load(&cuda->discard_module, gpb_discard_ptx) != 0)
            cuda->discard_module = NULL;
    }
    cuda->empty = gpb_find_kernel(cuda->module, "gpubench_empty");
    cuda->sweep = gpb_find_kernel(cuda->module, "gpubench_sweep");
    cuda->hold_kernel = gpb_find_kernel(cuda->module, "gpubench_hold");
    cuda->stamp = gpb_find_kernel(cuda->module, "gpubench_stamp");
    cuda->discard = gpb_find_kernel(cuda->discard_module, "gpubench_discard");
    (void)cudaGetLastError();
}

static void gpb_format_uuid(const struct cudaDeviceProp *properties, char *text)
{
    int i;
    text += sprintf(text, "GPU-");
    for (i = 0; i < 16; i++)
        text += sprintf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        (unsigned)(unsigned char)properties->uuid.bytes[i]);
}

/* Whether wanted ("GPU-..." or, of a part of one, "MIG-...", in any case)
 * begins the uuid. */
static int gpb_names_uuid(const char *wanted, const char *uuid)
{
    size_t i;
    if (strlen(wanted) < 8)
        return 0;
    for (i = 4; wanted[i]; i++) {
        char c = wanted[i] >= 'A' && wanted[i] <= 'F' ? (char)(wanted[i] - 'A' + 'a') : wanted[i];
        if (c != uuid[i])
            return 0;
    }
    return 1;
}

/* The ordinal that --device names, or -1 after a message. */
static int gpb_cuda_find_device(gpubench *bench, int count)
{
    const char *wanted = bench->settings.device;
    uint64_t number;
    int i;
    if (!strcmp(wanted, "auto"))
        return 0;
    if (gpubench_parse_count(wanted, &number) == 0 && number < (uint64_t)count)
        return (int)number;
    for (i = 0; i < count; i++) {
        struct cudaDeviceProp properties;
        char uuid[64];
        if (cudaGetDeviceProperties(&properties, i) != cudaSuccess)
            continue;
        gpb_format_uuid(&properties, uuid);
        if (gpb_names_uuid(wanted, uuid))
            return i;
    }
    gpb_message(bench, "--device %s: no such GPU; %d visible, numbered from 0", wanted, count);
    return -1;
}

static void gpb_cuda_describe(gpubench *bench, int ordinal,
                              const struct cudaDeviceProp *properties)
{
    gpb_machine *machine = &bench->machine;
    int khz = 0, bits = 0, memory_khz = 0, version = 0;
    (void)cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, ordinal);
    (void)cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, ordinal);
    (void)cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, ordinal);
    snprintf(machine->device, sizeof machine->device, "%s", properties->name);
    gpb_format_uuid(properties, machine->uuid);
    if (cudaDeviceGetPCIBusId(machine->pci, (int)sizeof machine->pci, ordinal) != cudaSuccess)
        machine->pci[0] = '\0';
    snprintf(machine->compute_capability, sizeof machine->compute_capability, "%d.%d",
             properties->major, properties->minor);
    machine->capability = properties->major * 10 + properties->minor;
    machine->ordinal = ordinal;
    machine->sm_count = properties->multiProcessorCount;
    machine->threads_per_sm = properties->maxThreadsPerMultiProcessor;
    machine->max_sm_mhz = khz / 1000;
    machine->l2_bytes = (uint64_t)properties->l2CacheSize;
    machine->memory_bytes = (uint64_t)properties->totalGlobalMem;
    /* Two transfers per clock on every memory that GPUs use. */
    machine->peak_gb_per_s = 2.0 * memory_khz * 1e3 * bits / 8 / 1e9;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess)
        snprintf(machine->cuda_runtime, sizeof machine->cuda_runtime, "%d.%d", version / 1000,
                 version % 1000 / 10);
}

static int gpb_cuda_explain(gpubench *bench, const char *what, cudaError_t code)
{
    gpb_message(bench, "--device %s: %s: %s: %s (--device cpu measures the CPU)",
                bench->settings.device, what, cudaGetErrorName(code),
                cudaGetErrorString(code));
    return 2;
}

/* Before anything else touches the GPU: what the program allocates from here on
 * belongs to the device that is measured. */
static int gpb_cuda_choose(gpubench *bench)
{
    struct cudaDeviceProp properties;
    cudaError_t code;
    int count = 0, ordinal;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", GPB_CHANNELS, 0); /* the user's own choice wins */
    code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0)
        return gpb_cuda_explain(bench, "no usable GPU",
                                code != cudaSuccess ? code : cudaErrorNoDevice);
    ordinal = gpb_cuda_find_device(bench, count);
    if (ordinal < 0)
        return 2;
    if ((code = cudaSetDevice(ordinal)) != cudaSuccess ||
        (code = cudaGetDeviceProperties(&properties, ordinal)) != cudaSuccess)
        return gpb_cuda_explain(bench, "cannot use the GPU", code);
    gpb_cuda_describe(bench, ordinal, &properties);
    return 0;
}

static int gpb_cuda_make_current(gpubench *bench)
{
    return (int)cudaSetDevice(bench->machine.ordinal);
}

/* Streams that synchronize with the default one: what a case launches there
 * comes behind the start event and in front of the stop event. */
static cudaError_t gpb_cuda_take_streams(gpb_cuda *cuda)
{
    cudaError_t code = cudaStreamCreateWithFlags(&cuda->hold_stream, cudaStreamNonBlocking);
    int i;
    for (i = 0; i < GPB_STREAMS && code == cudaSuccess; i++)
        code = cudaStreamCreateWithFlags(&cuda->streams[i], cudaStreamDefault);
    return code;
}

static cudaError_t gpb_cuda_take_events(gpb_cuda *cuda)
{
    cudaError_t code = cudaEventCreate(&cuda->start);
    if (code == cudaSuccess)
        code = cudaEventCreate(&cuda->stop);
    if (code == cudaSuccess)
        code = cudaEventCreate(&cuda->batches[0]);
    if (code == cudaSuccess)
        code = cudaEventCreate(&cuda->batches[1]);
    return code;
}

static cudaError_t gpb_cuda_take_memory(gpb_cuda *cuda)
{
    void *hold = NULL;
    cudaError_t code = cudaMalloc(&cuda->flush, cuda->flush_bytes);
    if (code == cudaSuccess)
        code = cudaMemset(cuda->flush, 0, cuda->flush_bytes);
    if (code == cudaSuccess)
        code = cudaHostAlloc(&hold, sizeof *cuda->hold, cudaHostAllocDefault);
    cuda->hold = (gpb_hold *)hold;
    return code == cudaSuccess ? cudaDeviceSynchronize() : code;
}

static double gpb_cuda_time_idle(void)
{
    double least = 0;
    int i;
    for (i = 0; i < 10; i++) {
        double start = gpb_now_s(), us;
        (void)cudaDeviceSynchronize();
        us = (gpb_now_s() - start) * 1e6;
        least = i == 0 || us < least ? us : least;
    }
    return least;
}

static int gpb_cuda_open(gpubench *bench)
{
    gpb_cuda *cuda = (gpb_cuda *)gpb_must(calloc(1, sizeof *cuda));
    cudaError_t code;
    bench->device_state = cuda;
    cuda->flush_bytes = 2 * (size_t)bench->machine.l2_bytes + 4096;
    cuda->gate = gpb_gate_make();
    code = cudaSetDevice(bench->machine.ordinal);
    if (code == cudaSuccess)
        code = gpb_cuda_take_streams(cuda);
    if (code == cudaSuccess)
        code = gpb_cuda_take_events(cuda);
    if (code == cudaSuccess)
        code = gpb_cuda_take_memory(cuda);
    if (code != cudaSuccess)
        return gpb_cuda_explain(bench, "cannot prepare", code);
    gpb_nvml_open(bench, &cuda->nvml);
    gpb_nvtx_open(cuda);
    gpb_profiler_push = bench->settings.profile ? cuda->range_push : NULL;
    gpb_profiler_pop = bench->settings.profile ? cuda->range_pop : NULL;
    gpb_load_kernels(cuda);
    cuda->idle_us = gpb_cuda_time_idle();
    return 0;
}

static void gpb_cuda_drop_event(cudaEvent_t event)
{
    if (event)
        (void)cudaEventDestroy(event);
}

static void gpb_cuda_drop_stream(cudaStream_t stream)
{
    if (stream)
        (void)cudaStreamDestroy(stream);
}

/* What lives on the device. */
static void gpb_cuda_give_back(gpubench *bench, gpb_cuda *cuda)
{
    int i;
    (void)cudaSetDevice(bench->machine.ordinal);
    if (cuda->module_unload && cuda->module)
        (void)cuda->module_unload(cuda->module);
    if (cuda->module_unload && cuda->discard_module)
        (void)cuda->module_unload(cuda->discard_module);
    (void)cudaFree(cuda->flush);
    if (cuda->hold)
        (void)cudaFreeHost(cuda->hold);
    for (i = 0; i < GPB_STREAMS; i++)
        gpb_cuda_drop_stream(cuda->streams[i]);
    gpb_cuda_drop_stream(cuda->hold_stream);
    gpb_cuda_drop_event(cuda->start);
    gpb_cuda_drop_event(cuda->stop);
    gpb_cuda_drop_event(cuda->batches[0]);
    gpb_cuda_drop_event(cuda->batches[1]);
}

static void gpb_cuda_close(gpubench *bench)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    if (!bench->lost)
        gpb_cuda_give_back(bench, cuda);
    if (cuda->nvml.shutdown)
        (void)cuda->nvml.shutdown();
    if (cuda->nvml.library)
        dlclose(cuda->nvml.library);
    if (cuda->nvtx)
        dlclose(cuda->nvtx);
    gpb_profiler_push = NULL;
    gpb_profiler_pop = NULL;
    pthread_mutex_lock(&cuda->gate->mutex);
    gpb_gate_drop(cuda->gate);
    free(cuda);
}

static int gpb_cuda_allocate(size_t bytes, int kind, void **memory)
{
    cudaError_t code;
    kind &= ~GPUBENCH_OUTPUT;
    *memory = NULL;
    if (kind == GPUBENCH_PAGEABLE)
        return gpb_host_allocate(bytes, kind, memory);
    code = kind == GPUBENCH_PINNED ? cudaHostAlloc(memory, bytes, cudaHostAllocDefault)
                                   : cudaMalloc(memory, bytes);
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    return code == cudaErrorMemoryAllocation ? GPUBENCH_OOM : (int)code;
}

static void gpb_cuda_release(void *base, int kind)
{
    kind &= ~GPUBENCH_OUTPUT;
    if (kind == GPUBENCH_PAGEABLE)
        free(base);
    else if (kind == GPUBENCH_PINNED)
        (void)cudaFreeHost(base);
    else
        (void)cudaFree(base);
}

static int gpb_cuda_copy(void *destination, const void *source, size_t bytes)
{
    cudaError_t code = cudaMemcpy(destination, source, bytes, cudaMemcpyDefault);
    return (int)(code != cudaSuccess ? code : cudaDeviceSynchronize());
}

static int gpb_cuda_fill(void *destination, int byte, size_t bytes, int kind)
{
    if ((kind & ~GPUBENCH_OUTPUT) != GPUBENCH_DEVICE)
        return gpb_host_fill(destination, byte, bytes, kind);
    if (cudaMemset(destination, byte, bytes) != cudaSuccess)
        return (int)cudaGetLastError();
    return (int)cudaDeviceSynchronize();
}

static uint64_t gpb_cuda_free_bytes(void)
{
    size_t available = 0, total = 0;
    return cudaMemGetInfo(&available, &total) == cudaSuccess ? available : 0;
}

/* Waits for an event that a hung kernel never reaches: in the end the case
 * fails, and the process is replaced, which ends the kernel. */
static int gpb_cuda_wait(gpubench *bench, cudaEvent_t event)
{
    double start = gpb_now_s();
    struct timespec pause = {0, 20000};
    gpb_keep_watch(bench, start);
    for (;;) {
        double waited = gpb_now_s() - start; /* before: the process may be stopped behind it */
        cudaError_t code = cudaEventQuery(event);
        if (code != cudaErrorNotReady)
            return (int)code;
        if (waited > bench->settings.timeout_s) {
            bench->lost = 1;
            return gpubench_fail(bench, GPUBENCH_FAILED, "not finished after %g s (--timeout)",
                                 bench->settings.timeout_s);
        }
        if (waited > 0.002)
            nanosleep(&pause, NULL);
    }
}

static int gpb_cuda_launch(const gpb_cuda *cuda, void *function, unsigned blocks,
                           unsigned threads, cudaStream_t stream, void **arguments)
{
    if (!function)
        return GPUBENCH_UNSUPPORTED;
    return cuda->launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL);
}

/* Drops the sweep's lines, so that the L2 is not only clean but empty; a GPU that
 * cannot do that keeps it full of clean lines. (Between the two there is 0.1 us
 * of a copy of 16 MiB on an H200.) */
static int gpb_cuda_discard(const gpb_cuda *cuda, cudaStream_t stream)
{
    void *at = cuda->flush;
    uint64_t lines = cuda->flush_bytes / 128;
    void *arguments[2];
    arguments[0] = &at;
    arguments[1] = &lines;
    if (!cuda->discard)
        return 0;
    return gpb_cuda_launch(cuda, cuda->discard, 1056, 256, stream, arguments);
}

/* Leaves nothing of the case's in the L2 and nothing dirty: what was dirty is
 * written back while the sweep reads. Twice the L2 in 16-byte loads, by as many
 * threads as hide the latency of memory. */
static int gpb_cuda_sweep(const gpb_cuda *cuda, cudaStream_t stream)
{
    void *at = cuda->flush, *sink = cuda->flush;
    uint64_t vectors = cuda->flush_bytes / 16;
    void *arguments[3];
    int code;
    arguments[0] = &at;
    arguments[1] = &vectors;
    arguments[2] = &sink;
    code = gpb_cuda_launch(cuda, cuda->sweep, 1056, 256, stream, arguments);
    return code != 0 ? code : gpb_cuda_discard(cuda, stream);
}

/* Everything that stands in front of the timed section, behind the gate. */
static int gpb_cuda_enqueue_lead(gpb_cuda *cuda, gpb_live *live, cudaStream_t stream)
{
    const gpubench_case *one = &live->item->one;
    if (live->mode == GPUBENCH_HOT)
        return one->run(one->context, stream);
    if (live->mode == GPUBENCH_DIRTY)
        return (int)cudaMemsetAsync(cuda->flush, (int)(live->turn & 0xff), cuda->flush_bytes,
                                    stream);
    return gpb_cuda_sweep(cuda, stream);
}

/* The work that is timed, batch times. */
static int gpb_cuda_enqueue_runs(gpb_live *live, cudaStream_t stream)
{
    const gpubench_case *one = &live->item->one;
    uint64_t i;
    int code = 0;
    for (i = 0; i < live->batch && code == 0; i++)
        code = live->graph ? (int)cudaGraphLaunch((cudaGraphExec_t)live->graph, stream)
                           : one->run(one->context, stream);
    return code != 0 ? code : (int)cudaGetLastError(); /* that the case did not look at */
}

/* What run is given, the turn-th time: one of the framework's streams, or the one
 * that the case named. */
static cudaStream_t gpb_cuda_stream(gpubench *bench, const gpb_live *live, uint64_t turn)
{
    uint64_t streams = live->streams ? live->streams : bench->settings.streams;
    return live->has_own_stream ? live->stream : gpb_cuda_of(bench)->streams[turn % streams];
}

/* One timed section: start event, the work, stop event. Without a gate the work
 * begins when the start event has happened, so that nothing that the host waits
 * for inside can be over before. */
static int gpb_cuda_enqueue(gpubench *bench, gpb_live *live, cudaStream_t stream)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    int code = (int)cudaEventRecord(cuda->start, stream);
    if (code == 0 && live->ungated)
        code = gpb_cuda_wait(bench, cuda->start);
    if (code == 0)
        code = gpb_cuda_enqueue_runs(live, stream);
    if (code == 0)
        code = (int)cudaEventRecord(cuda->stop, stream);
    return code;
}

/* A gate that ran out: a batch may have filled the launch queue; a single run
 * synchronizes inside. */
static void gpb_cuda_give_way(gpb_live *live)
{
    if (live->batch > 1) {
        live->batch /= 2;
    } else if (live->mode == GPUBENCH_HOT && !live->leads_alone) {
        live->leads_alone = 1; /* two runs may fill the queue that one does not */
    } else if (++live->time_outs >= 2) { /* once may be the host's scheduler */
        live->ungated = 1;
        gpb_add_flag(live, "ungated");
    }
}

static void gpb_wait_s(double seconds)
{
    double start = gpb_now_s();
    while (gpb_now_s() - start < seconds)
        continue;
}

/* The lead in front of the gate, and over before it closes. */
static int gpb_cuda_lead_alone(gpubench *bench, gpb_live *live, cudaStream_t stream)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    int code = gpb_cuda_enqueue_lead(cuda, live, stream);
    if (code == 0)
        code = (int)cudaEventRecord(cuda->stop, stream);
    return code != 0 ? code : gpb_cuda_wait(bench, cuda->stop);
}

/* Behind the gate: lead, start event, work, stop event; then the gate opens. */
static int gpb_cuda_enqueue_sample(gpubench *bench, gpb_live *live, cudaStream_t stream,
                                   int *timed_out)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    int code = 0;
    gpb_gate_close(cuda->gate);
    if (live->leads_alone)
        code = gpb_cuda_lead_alone(bench, live, stream);
    if (code == 0 && !live->ungated)
        code = gpb_gate_enqueue(cuda->gate, stream);
    if (code == 0 && !live->leads_alone)
        code = gpb_cuda_enqueue_lead(cuda, live, stream);
    if (code == 0)
        code = gpb_cuda_enqueue(bench, live, stream);
    *timed_out = gpb_gate_open(cuda->gate) && !live->ungated;
    return code;
}

static int gpb_cuda_time(gpubench *bench, gpb_live *live, double *us)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    const gpubench_case *one = &live->item->one;
    float ms = 0;
    for (;;) {
        cudaStream_t stream = gpb_cuda_stream(bench, live, live->turn++);
        int timed_out = 0, code = gpb_cuda_make_current(bench);
        if (code == 0 && one->reset)
            code = one->reset(one->context, stream);
        if (code == 0)
            code = gpb_cuda_enqueue_sample(bench, live, stream, &timed_out);
        if (code == 0)
            code = gpb_cuda_wait(bench, cuda->stop);
        if (code == 0 && timed_out) {
            gpb_cuda_give_way(live);
            continue;
        }
        live->time_outs = 0;
        if (code == 0)
            code = (int)cudaEventElapsedTime(&ms, cuda->start, cuda->stop);
        *us = gpb_round_to_ns((double)ms * 1e3);
        return code;
    }
}

/* A sample, as a range that Nsight shows by the case's name. */
static int gpb_cuda_sample(gpubench *bench, gpb_live *live, double *us)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    int code;
    if (cuda->range_push)
        cuda->range_push(live->item->key);
    code = gpb_cuda_time(bench, live, us);
    if (cuda->range_pop)
        cuda->range_pop();
    return code;
}

/* One run as a graph, which the caller destroys, and how many nodes it has. */
static int gpb_cuda_record(gpubench *bench, gpb_live *live, cudaGraph_t *graph,
                           size_t *nodes)
{
    const gpubench_case *one = &live->item->one;
    cudaStream_t stream = gpb_cuda_stream(bench, live, 0);
    int code = (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (code == 0) {
        int ended;
        code = one->run(one->context, stream);
        ended = (int)cudaStreamEndCapture(stream, graph);
        code = code ? code : ended;
    }
    if (code == 0)
        code = (int)cudaGraphGetNodes(*graph, NULL, nodes);
    if (code != 0)
        (void)cudaGetLastError();
    return code;
}

static int gpb_cuda_can_be_captured(gpubench *bench, gpb_live *live)
{
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    int code = gpb_cuda_record(bench, live, &graph, &nodes);
    if (graph)
        (void)cudaGraphDestroy(graph);
    return code == 0 && nodes > 0;
}

/* ---- does the work stay on its stream? ----
 *
 * Behind the gate only the stream itself waits: what a case does elsewhere goes
 * on, and the events do not see it. So each case is started with the whole GPU
 * held by a kernel that fills every thread slot. Then
 *   a run that waits for the device inside is stuck until that kernel gives up:
 *     such a case is timed without a gate and marked;
 *   what is never joined piles up, and the device is still busy when the stop
 *     event has happened.
 * And it is run without a gate, where work that is joined but was never forked
 * takes its true time. */
#define GPB_HOLD_S 0.02

/* How often a finding has to show before it is believed: a busy host's
 * scheduler adds time now and then, real work each time. */
#define GPB_ESCAPE_ATTEMPTS 8

/* 1 once every multiprocessor is held, 0 if that cannot be had. */
static int gpb_cuda_hold(gpubench *bench)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    const unsigned threads = 512, per_sm = (unsigned)bench->machine.threads_per_sm / threads;
    void *host = (void *)(uintptr_t)cuda->hold, *arrived = cuda->flush;
    uint64_t limit_ns = (uint64_t)(GPB_HOLD_S * 1e9);
    double start = gpb_now_s();
    void *arguments[3];
    if (!cuda->hold_kernel || per_sm == 0)
        return 0;
    arguments[0] = &host;
    arguments[1] = &limit_ns;
    arguments[2] = &arrived;
    cuda->hold->released = 0;
    cuda->hold->resident = 0;
    cuda->hold->timed_out = 0;
    if (cudaMemsetAsync(cuda->flush, 0, 4, cuda->hold_stream) != cudaSuccess ||
        gpb_cuda_launch(cuda, cuda->hold_kernel, (unsigned)bench->machine.sm_count * per_sm,
                        threads, cuda->hold_stream, arguments) != 0)
        return 0;
    while (!cuda->hold->resident && gpb_now_s() - start < GPB_HOLD_S)
        continue;
    if (!cuda->hold->resident)
        cuda->hold->released = 1;
    return cuda->hold->resident != 0;
}

/* What a start with the GPU held has shown. */
typedef struct gpb_release {
    int held;           /* the GPU was; it is not where others use it too */
    int waited;         /* the run waited for the device */
    double leftover_us; /* from the stop event until the device was idle */
} gpb_release;

/* By kernels that write the time: an event's time is taken when the GPU comes
 * to look at its stream again, which another stream's work may put off. */
static int gpb_cuda_stamp(const gpb_cuda *cuda, int which, cudaStream_t stream)
{
    void *at = (void *)(uintptr_t)&cuda->hold->stamps[which];
    void *arguments[1];
    arguments[0] = &at;
    return cuda->stamp ? gpb_cuda_launch(cuda, cuda->stamp, 1, 1, stream, arguments) : 0;
}

static double gpb_cuda_stamped_us(const gpb_cuda *cuda)
{
    return (double)(cuda->hold->stamps[1] - cuda->hold->stamps[0]) / 1e3;
}

/* count times run (and reset between them), with the time in front and behind. */
static int gpb_cuda_enqueue_stamped(gpubench *bench, gpb_live *live, uint64_t count,
                                    cudaStream_t stream)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    const gpubench_case *one = &live->item->one;
    uint64_t i;
    int code = gpb_cuda_stamp(cuda, 0, stream);
    for (i = 0; i < count && code == 0; i++) {
        if (i > 0 && one->reset)
            code = one->reset(one->context, stream);
        if (code == 0)
            code = one->run(one->context, stream);
    }
    if (code == 0)
        code = (int)cudaGetLastError();
    if (code == 0)
        code = gpb_cuda_stamp(cuda, 1, stream);
    return code != 0 ? code : (int)cudaEventRecord(cuda->stop, stream);
}

static int gpb_cuda_reset_and_wait(gpubench *bench, gpb_live *live, cudaStream_t stream)
{
    const gpubench_case *one = &live->item->one;
    int code = gpb_cuda_make_current(bench);
    if (code == 0 && one->reset)
        code = one->reset(one->context, stream);
    return code != 0 ? code : (int)cudaDeviceSynchronize();
}

static int gpb_cuda_release_runs(gpubench *bench, gpb_live *live, uint64_t count,
                                 gpb_release *seen)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    cudaStream_t stream = gpb_cuda_stream(bench, live, 0);
    double stopped;
    int code = gpb_cuda_reset_and_wait(bench, live, stream);
    memset(seen, 0, sizeof *seen);
    seen->held = code == 0 && gpb_cuda_hold(bench);
    if (code == 0)
        code = gpb_cuda_enqueue_stamped(bench, live, count, stream);
    seen->waited = seen->held && cuda->hold->timed_out;
    cuda->hold->released = 1;
    if (code == 0)
        code = gpb_cuda_wait(bench, cuda->stop);
    if (code == 0)
        code = gpb_cuda_make_current(bench);
    stopped = gpb_now_s();
    if (code == 0)
        code = (int)cudaDeviceSynchronize();
    seen->leftover_us = (gpb_now_s() - stopped) * 1e6;
    return code;
}

/* The GPU's own time of one run: behind a gate that stays closed for hold_s, or
 * without one for 0. */
static int gpb_cuda_time_stamped(gpubench *bench, gpb_live *live, double hold_s,
                                 cudaStream_t stream, double *us)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    int code = gpb_cuda_reset_and_wait(bench, live, stream);
    gpb_gate_close(cuda->gate);
    if (code == 0 && hold_s > 0)
        code = gpb_gate_enqueue(cuda->gate, stream);
    if (code == 0)
        code = gpb_cuda_enqueue_stamped(bench, live, 1, stream);
    if (code == 0)
        gpb_wait_s(hold_s);
    (void)gpb_gate_open(cuda->gate);
    if (code == 0)
        code = gpb_cuda_wait(bench, cuda->stop);
    *us = gpb_cuda_stamped_us(cuda);
    return code;
}

/* How often to run a case at a time so that what is never joined piles up: as
 * often as half a millisecond of enqueueing allows, and 5 ms of the device. */
static uint64_t gpb_escape_batch(const gpb_live *live)
{
    double most = 5e3 / (live->host_us + 0.1), queued = 500 / (live->enqueue_us + 0.1);
    most = most < queued ? most : queued;
    return most < 1 ? 1 : most > 128 ? 128 : (uint64_t)most;
}

/* Does the run wait for the device inside? Then it is timed without a gate. */
static int gpb_cuda_find_waiting(gpubench *bench, gpb_live *live)
{
    gpb_release seen;
    int attempt, code = 0;
    for (attempt = 0; attempt < 2 && code == 0; attempt++) {
        code = gpb_cuda_release_runs(bench, live, 1, &seen);
        if (code == 0 && !seen.waited)
            return 0;
    }
    if (code == 0) {
        live->ungated = 1;
        gpb_add_flag(live, "ungated");
    }
    return code;
}

/* Is the device busy after the stop event? */
static int gpb_cuda_find_unjoined(gpubench *bench, gpb_live *live)
{
    const double idle_us = gpb_cuda_of(bench)->idle_us;
    uint64_t batch = live->ungated ? 1 : gpb_escape_batch(live);
    gpb_release seen;
    int attempt, code = 0;
    for (attempt = 0; attempt < GPB_ESCAPE_ATTEMPTS && code == 0; attempt++) {
        code = gpb_cuda_release_runs(bench, live, batch, &seen);
        if (seen.leftover_us <= (batch > 1 ? 50 : 15) + idle_us + 0.01 * live->host_us)
            return code;
    }
    return code != 0 ? code
                     : gpubench_fail(bench, GPUBENCH_FAILED,
                                     "works outside %s: the device was busy for %.0f us after the "
                                     "stop event%s", gpb_stream_name(live), seen.leftover_us,
                                     gpb_stream_hint(live));
}

/* How much longer the run takes without a gate than behind one that was closed
 * for so long that work on other streams is over, beyond what enqueueing takes:
 * work that is joined but was never forked. 0 for a run that takes longer than a
 * gate can be closed. */
static int gpb_cuda_look_for_unforked(gpubench *bench, gpb_live *live, int look,
                                      double *open_us, double *gated_us)
{
    cudaStream_t stream = gpb_cuda_stream(bench, live, (uint64_t)look);
    const double most_us = 0.4 * 1e6 * GPB_GATE_TIMEOUT_S;
    int code = gpb_cuda_time_stamped(bench, live, 0, stream, open_us);
    *gated_us = *open_us;
    if (code != 0 || *open_us + live->host_us > most_us)
        return code;
    return gpb_cuda_time_stamped(bench, live, 1e-6 * (*open_us + live->host_us) + 1e-4,
                                 stream, gated_us);
}

/* A case of which most looks say so works outside its stream (one look may find
 * the gate's stream and the case's own on one channel). Unless it can be
 * captured: then all of it belongs to the stream, and what took longer was a
 * host function, whose thread the gate had woken. */
static int gpb_cuda_find_unforked(gpubench *bench, gpb_live *live)
{
    const int looks = 5;
    double open_us = 0, gated_us = 0;
    int found = 0, i, code = 0;
    for (i = 0; i < looks && code == 0 && found <= looks / 2 && i - found <= looks / 2; i++) {
        code = gpb_cuda_look_for_unforked(bench, live, i, &open_us, &gated_us);
        found += open_us > 1.1 * gated_us + live->enqueue_us + 20;
    }
    if (code != 0 || found <= looks / 2 || gpb_cuda_can_be_captured(bench, live))
        return code;
    return gpubench_fail(bench, GPUBENCH_FAILED,
                         "works outside %s: a run takes %.1f us, %.1f us of it behind the start "
                         "event%s", gpb_stream_name(live), open_us, gated_us,
                         gpb_stream_hint(live));
}

/* Host's times of one run on an idle device: until the call returned, and until
 * the device was done. The least of a few, because others use the host too. */
static int gpb_cuda_time_host(gpubench *bench, gpb_live *live)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    const gpubench_case *one = &live->item->one;
    double begun = gpb_now_s();
    int i, code = 0;
    for (i = 0; i < 10 && code == 0 && (i == 0 || gpb_now_s() - begun < 0.05); i++) {
        cudaStream_t stream = gpb_cuda_stream(bench, live, (uint64_t)i);
        double start, enqueued, done;
        code = gpb_cuda_make_current(bench);
        if (code == 0 && one->reset)
            code = one->reset(one->context, stream);
        if (code == 0)
            code = (int)cudaDeviceSynchronize();
        start = gpb_now_s();
        if (code == 0)
            code = gpb_cuda_enqueue_runs(live, stream);
        enqueued = (gpb_now_s() - start) * 1e6;
        if (code == 0)
            code = (int)cudaEventRecord(cuda->stop, stream);
        if (code == 0)
            code = gpb_cuda_wait(bench, cuda->stop);
        done = (gpb_now_s() - start) * 1e6;
        live->enqueue_us = i == 0 || enqueued < live->enqueue_us ? enqueued : live->enqueue_us;
        live->host_us = i == 0 || done < live->host_us ? done : live->host_us;
    }
    return code;
}

/* Stream-ordered memory that is freed goes back to the system when the device
 * is synchronized, which takes long and looks like work: kept meanwhile. */
static uint64_t gpb_cuda_keep_pool(gpubench *bench, uint64_t threshold)
{
    cudaMemPool_t pool = NULL;
    uint64_t before = 0;
    if (cudaDeviceGetMemPool(&pool, bench->machine.ordinal) != cudaSuccess ||
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &before) != cudaSuccess ||
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) != cudaSuccess)
        (void)cudaGetLastError(); /* a device without pools */
    return before;
}

static int gpb_cuda_find_escapes(gpubench *bench, gpb_live *live)
{
    uint64_t threshold = gpb_cuda_keep_pool(bench, UINT64_MAX);
    int code = gpb_cuda_time_host(bench, live);
    if (code == 0 && gpb_cuda_of(bench)->hold_kernel)
        code = gpb_cuda_find_waiting(bench, live);
    if (code == 0)
        code = gpb_cuda_find_unjoined(bench, live);
    if (code == 0 && !live->ungated && gpb_cuda_of(bench)->stamp)
        code = gpb_cuda_find_unforked(bench, live);
    (void)gpb_cuda_keep_pool(bench, threshold);
    return code;
}

static int gpb_fail_idle(gpubench *bench, const gpb_live *live)
{
    return gpubench_fail(bench, GPUBENCH_FAILED, "launched nothing on %s%s", gpb_stream_name(live),
                         gpb_stream_hint(live));
}

static int gpb_cuda_is_oom(int code)
{
    return code == cudaErrorMemoryAllocation;
}

/* Why a run is no graph, where the error's name does not say it. */
static const char *gpb_cuda_explain_capture(const gpb_live *live, int code)
{
    if (code == cudaErrorStreamCaptureImplicit)
        return ", it launches on the default stream";
    return code == cudaErrorStreamCaptureUnsupported && live->has_own_stream && !live->stream
               ? ", no graph holds what is on the default stream"
               : "";
}

static int gpb_cuda_capture(gpubench *bench, gpb_live *live)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    size_t nodes = 0;
    int code = gpb_cuda_record(bench, live, &graph, &nodes);
    if (code == 0 && nodes > 0)
        code = (int)cudaGraphInstantiateWithFlags(&executable, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (gpb_cuda_is_oom(code) || (code > 0 && cudaDeviceSynchronize() != cudaSuccess))
        return code; /* which has nothing to do with capturing */
    if (code != 0) {
        char why[sizeof live->reason];
        snprintf(why, sizeof why, "%s", live->reason);
        (void)cudaGetLastError();
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "cannot be captured: %s%s",
                             code > 0 ? cudaGetErrorName((cudaError_t)code)
                             : *why   ? why
                                      : "the case refused",
                             gpb_cuda_explain_capture(live, code));
    }
    if (nodes == 0)
        return gpb_fail_idle(bench, live);
    live->graph = executable;
    return 0;
}

/* A run that is as short as an empty kernel may launch nothing at all, and
 * still take more than nothing: recording an event does. As a graph it has no
 * nodes then. What cannot be captured is believed. */
static int gpb_cuda_find_nothing(gpubench *bench, gpb_live *live)
{
    double empty_us = bench->overhead_us[GPUBENCH_COLD];
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    double us = 0;
    int code = gpb_cuda_time(bench, live, &us);
    if (code != 0 || us > (empty_us > 0 ? 1.05 * empty_us : 5))
        return code;
    code = gpb_cuda_record(bench, live, &graph, &nodes);
    if (graph)
        (void)cudaGraphDestroy(graph);
    if (code != 0 || nodes > 0)
        return 0;
    return gpb_fail_idle(bench, live);
}

/* What happens once (loading of modules) or once on each stream (workspaces
 * that a library keeps by stream) happens here, without a gate. A case whose
 * runs take long gets fewer streams. */
static int gpb_cuda_try_streams(gpubench *bench, gpb_live *live)
{
    double us, start = gpb_now_s();
    int code = 0;
    live->ungated = 1;
    live->turn = 0;
    live->streams = live->has_own_stream ? 1 : bench->settings.streams;
    while (code == 0 && live->turn < live->streams &&
           (live->turn < 2 || gpb_now_s() - start < 0.1)) {
        if (live->turn == 1)
            start = gpb_now_s(); /* the first took what happens once */
        code = gpb_cuda_sample(bench, live, &us);
        live->first_s = live->turn == 1 ? gpb_now_s() - start : live->first_s;
    }
    live->streams = live->turn;
    live->turn = 0;
    live->ungated = 0;
    return code;
}

static int gpb_cuda_lacks_sweep(const gpubench *bench, unsigned mode)
{
    return (mode == GPUBENCH_COLD || mode == GPUBENCH_GRAPH) && !gpb_cuda_of(bench)->sweep;
}

static int gpb_cuda_begin(gpubench *bench, gpb_live *live)
{
    int code;
    if (gpb_cuda_lacks_sweep(bench, live->mode))
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED,
                             "the driver takes no kernel as PTX, so that caches cannot be swept: "
                             "--mode dirty");
    code = gpb_cuda_try_streams(bench, live);
    if (code == 0 && !bench->calibrating)
        code = gpb_cuda_find_escapes(bench, live);
    if (code == 0 && live->mode == GPUBENCH_GRAPH)
        code = gpb_cuda_capture(bench, live);
    else if (code == 0 && !bench->calibrating)
        code = gpb_cuda_find_nothing(bench, live);
    if (code == 0 && live->graph && !bench->calibrating)
        code = gpb_cuda_time_host(bench, live);
    if (code == 0)
        live->reason[0] = '\0'; /* of a capture that was only tried */
    return code;
}

static int gpb_cuda_hold_stream(gpubench *bench, gpubench_stream stream)
{
    gpb_gate *gate = gpb_cuda_of(bench)->gate;
    gpb_gate_close(gate);
    return gpb_gate_enqueue(gate, stream);
}

static void gpb_cuda_let_go(gpubench *bench)
{
    (void)gpb_gate_open(gpb_cuda_of(bench)->gate);
}

static int gpb_cuda_replay(void *graph, gpubench_stream stream)
{
    return (int)cudaGraphLaunch((cudaGraphExec_t)graph, stream);
}

static int gpb_cuda_finish(gpubench *bench)
{
    cudaError_t code = (cudaError_t)gpb_cuda_make_current(bench);
    if (code == cudaSuccess)
        code = cudaDeviceSynchronize();
    return (int)(code != cudaSuccess ? code : cudaGetLastError());
}

/* ---- energy ---- */

/* Where the energy counter stood when it last moved. */
typedef struct gpb_tick {
    double mj, s;
    uint64_t runs; /* that were done */
} gpb_tick;

/* The counter in mJ since some start; negative: unknown. */
static double gpb_cuda_read_energy_mj(const gpubench *bench)
{
    const gpb_nvml *nvml = &gpb_cuda_of(bench)->nvml;
    unsigned long long mj;
    return nvml->device && nvml->energy && nvml->energy(nvml->device, &mj) == 0 ? (double)mj : -1;
}

/* Keeps two batches in flight, so that the device never waits for the host,
 * and follows the counter, which steps by tenths of a second: from one of its
 * steps to another, at least 2 s later, and not before the power has settled. */
static int gpb_cuda_follow_energy(gpubench *bench, gpb_live *live, gpb_tick *first,
                                  gpb_tick *last)
{
    gpb_cuda *cuda = gpb_cuda_of(bench);
    cudaStream_t stream = gpb_cuda_stream(bench, live, 0);
    double start = gpb_now_s(), before = -1;
    uint64_t queued = 0;
    int code = 0;
    memset(first, 0, sizeof *first);
    memset(last, 0, sizeof *last);
    while (code == 0 && (first->s == 0 || last->s - first->s < 2)) {
        double mj;
        code = gpb_cuda_enqueue_runs(live, stream);
        if (code == 0)
            code = (int)cudaEventRecord(cuda->batches[queued % 2], stream);
        if (code == 0 && ++queued > 1)
            code = gpb_cuda_wait(bench, cuda->batches[queued % 2]);
        mj = gpb_cuda_read_energy_mj(bench);
        if (mj < 0 || gpb_now_s() - start > 10)
            return code != 0 ? code : GPUBENCH_UNSUPPORTED;
        if (mj != before && before >= 0) {
            gpb_tick *tick = first->s == 0 && gpb_now_s() - start > 0.3 ? first : last;
            tick->mj = mj;
            tick->s = gpb_now_s();
            tick->runs = (queued - 1) * live->batch;
        }
        before = mj;
    }
    return code != 0 ? code : (int)cudaDeviceSynchronize();
}

/* Millijoules of one run, from the board's energy counter. The case is reset
 * once, in front: its reset's energy is not the run's. */
static int gpb_cuda_measure_energy(gpubench *bench, gpb_live *live)
{
    const gpubench_case *one = &live->item->one;
    uint64_t batch = live->batch;
    gpb_tick first, last;
    double us = 0;
    int code = one->reset ? one->reset(one->context, gpb_cuda_stream(bench, live, 0)) : 0;
    live->batch = 1;
    if (code == 0)
        code = gpb_cuda_sample(bench, live, &us);
    live->batch = us > 0 && us < 1e4 ? (uint64_t)(1e4 / us) + 1 : 1;
    if (code == 0)
        code = gpb_cuda_follow_energy(bench, live, &first, &last);
    live->batch = batch;
    if (code == 0 && last.runs > first.runs)
        live->energy_mj = (last.mj - first.mj) / (double)(last.runs - first.runs);
    else if (code == 0 || code == GPUBENCH_UNSUPPORTED)
        gpb_add_flag(live, "no-energy-counter");
    return code == GPUBENCH_UNSUPPORTED ? 0 : code;
}

static void gpb_cuda_end(gpb_live *live)
{
    if (live->graph)
        (void)cudaGraphExecDestroy((cudaGraphExec_t)live->graph);
    live->graph = NULL;
}

static int gpb_cuda_alive(gpubench *bench)
{
    (void)cudaGetLastError();
    return !bench->lost && cudaDeviceSynchronize() == cudaSuccess;
}

static const char *gpb_cuda_error_name(int code)
{
    return cudaGetErrorName((cudaError_t)code);
}

static const char *gpb_cuda_error_string(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static int gpb_run_memset(void *context, gpubench_stream stream)
{
    return (int)cudaMemsetAsync(((gpb_cuda *)context)->flush, 0, 4, stream);
}

static int gpb_run_empty(void *context, gpubench_stream stream)
{
    const gpb_cuda *cuda = (const gpb_cuda *)context;
    return gpb_cuda_launch(cuda, cuda->empty, 1, 1, stream, NULL);
}

static int gpb_cuda_calibrate(gpubench *bench, unsigned mode)
{
    int code = 0;
    if (gpb_cuda_lacks_sweep(bench, mode))
        return 0; /* each case's row will say so */
    if (mode != GPUBENCH_GRAPH) /* an empty graph cannot be had */
        code = gpb_calibrate(bench, mode, gpb_run_nothing, &bench->nothing_us[mode]);
    if (code == 0)
        code = gpb_calibrate(bench, mode, gpb_run_memset, &bench->memset_us[mode]);
    if (code == 0 && gpb_cuda_of(bench)->empty)
        code = gpb_calibrate(bench, mode, gpb_run_empty, &bench->overhead_us[mode]);
    return code;
}

static int gpb_cuda_takes(const char *device)
{
    return !strcmp(device, "auto") || gpb_names_gpu(device);
}

static const gpb_backend gpb_cuda_backend = {
    "cuda", gpb_cuda_choose, gpb_cuda_open, gpb_cuda_close,
    gpb_cuda_make_current, gpb_cuda_allocate,
    gpb_cuda_release, gpb_cuda_copy, gpb_cuda_fill, gpb_cuda_free_bytes,
    gpb_cuda_begin, gpb_cuda_sample, gpb_cuda_hold_stream,
    gpb_cuda_let_go, gpb_cuda_finish, gpb_cuda_replay,
    gpb_run_empty, gpb_cuda_end,
    gpb_cuda_alive, gpb_cuda_error_name, gpb_cuda_error_string,
    gpb_cuda_read_state, gpb_cuda_measure_energy,
    gpb_cuda_takes, gpb_cuda_is_oom, gpb_cuda_calibrate,
    240, /* calibration_samples: a second */
    1,   /* max_time_s */
    5,   /* warmup */
    256, /* most_batch */
    1, 1, 0 /* is_patient and owns_memory; not runs_on_host */};
#endif /* GPUBENCH_CUDA */

#ifndef GPB_MORE_BACKENDS
#define GPB_MORE_BACKENDS /* of a test that brings one along */
#endif

/* In the order in which --device auto takes them. */
static const gpb_backend *const gpb_backends[] = {
#if GPUBENCH_CUDA
    &gpb_cuda_backend,
#endif
    &gpb_host_backend, GPB_MORE_BACKENDS};

/* NULL: none has such a device. */
static const gpb_backend *gpb_find_backend(const char *device)
{
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_backends); i++)
        if (gpb_backends[i]->takes(device))
            return gpb_backends[i];
    return NULL;
}

/* ==== rows on disk ======================================================== */

/* Descriptors that a fresh process takes along are closed in every other
 * program that a case starts, and are none that a closed standard output frees. */
static int gpb_keep_descriptor(int file)
{
    int kept = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 10);
    int reason = errno;
    if (file >= 0)
        close(file);
    errno = reason;
    return kept;
}

/* Async-signal-safe. */
static int gpb_write_all(int file, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = write(file, text, bytes);
        if (done < 0 && errno != EINTR)
            return -1;
        if (done > 0) {
            text += done;
            bytes -= (size_t)done;
        }
    }
    return 0;
}

enum { GPB_NO_STREAM = -1, GPB_UNKNOWN_STREAM = -2 };

/* The descriptor that --csv names, GPB_NO_STREAM: it is a path, or GPB_UNKNOWN_STREAM with
 * errno. What standard output is already is written as it stands, because replacing a log
 * that the shell appends to would destroy it. */
static int gpb_csv_stream(const char *csv)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    struct stat named, output;
    uint64_t number;
    size_t i;
    if (!strcmp(csv, "-") || !strcmp(csv, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(csv, "/dev/stderr"))
        return STDERR_FILENO;
    for (i = 0; i < GPB_COUNT_OF(folders); i++)
        if (!strncmp(csv, folders[i], strlen(folders[i])) &&
            gpubench_parse_count(csv + strlen(folders[i]), &number) == 0 && number <= INT_MAX)
            return (int)number;
    if (stat(csv, &named) != 0)
        return errno == ENOENT ? GPB_NO_STREAM : GPB_UNKNOWN_STREAM;
    if (fstat(STDOUT_FILENO, &output) != 0) /* it may be closed */
        return errno == EBADF ? GPB_NO_STREAM : GPB_UNKNOWN_STREAM;
    return named.st_dev == output.st_dev && named.st_ino == output.st_ino ? STDOUT_FILENO
                                                                          : GPB_NO_STREAM;
}

/* What --csv names, links followed, and whether another file can take its
 * place: a device or a pipe has to be written itself, and a link that leads
 * nowhere is refused. -1 with errno: the system does not tell, and to guess
 * could cost what is there. */
static int gpb_resolve_csv(const gpubench *bench, char path[PATH_MAX])
{
    const char *csv = bench->settings.csv;
    struct stat found, link;
    snprintf(path, PATH_MAX, "%s", csv);
    if (stat(csv, &found) != 0)
        return errno != ENOENT ? -1 : lstat(csv, &link) != 0;
    if (!S_ISREG(found.st_mode))
        return 0;
    return realpath(csv, path) ? 1 : -1;
}

static int gpb_stream_is_open(int stream)
{
    int flags = fcntl(stream, F_GETFL);
    if (flags != -1 && (flags & O_ACCMODE) != O_RDONLY)
        return 1;
    errno = EBADF;
    return 0;
}

/* For as long as a file stands that nobody would know to remove. */
static void gpb_hold_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, before);
}

/* A file that cannot be removed is named, since nobody else knows of it. -1 with errno. */
static int gpb_remove(gpubench *bench, const char *path)
{
    int error;
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    error = errno;
    gpb_message(bench, "'%s' is left behind: %s", path, strerror(error));
    errno = error;
    return -1;
}

/* -1 with errno: no file can take the path's place. */
static int gpb_try_replacing(gpubench *bench, const char *path)
{
    char temporary[PATH_MAX + 32];
    sigset_t before;
    int file, code, error;
    if (access(path, W_OK) != 0 && errno != ENOENT)
        return -1;
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    gpb_hold_signals(&before);
    file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    code = file < 0 ? -1 : gpb_remove(bench, temporary);
    error = errno;
    if (file >= 0)
        close(file);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return code;
}

/* Could the result be written? Found out before an hour of measuring. */
static void gpb_try_path(gpubench *bench)
{
    const char *csv = bench->settings.csv;
    char path[PATH_MAX];
    struct stat found;
    int code, stream, replaceable;
    if (!csv)
        return;
    stream = gpb_csv_stream(csv);
    replaceable = stream == GPB_NO_STREAM ? gpb_resolve_csv(bench, path) : 0;
    if (stream >= 0) {
        code = !gpb_stream_is_open(stream);
    } else if (stream == GPB_UNKNOWN_STREAM || replaceable < 0) {
        code = -1;
    } else if (replaceable) {
        code = gpb_try_replacing(bench, path);
    } else { /* opening a pipe would tell its reader that all is over */
        errno = EISDIR;
        code = stat(path, &found) != 0 || S_ISDIR(found.st_mode) || access(path, W_OK) != 0;
    }
    if (code != 0 || !*csv)
        gpubench_usage_error(bench, "--csv '%s': %s", csv, strerror(*csv ? errno : ENOENT));
}

/* The file that is to be replaced, locked for as long as this process, and
 * whatever it becomes or starts for --runs, lives: two that replaced one file
 * would lose the rows of one. -1 with errno; EBUSY: another process has it. */
static int gpb_lock_old(const char *path)
{
    struct stat named, opened;
    for (;;) {
        int error, file = gpb_keep_descriptor(open(path, O_WRONLY));
        if (file < 0)
            return -1;
        if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(file);
            errno = EBUSY;
            return -1;
        }
        errno = 0;
        if (stat(path, &named) == 0 && fstat(file, &opened) == 0 &&
            named.st_ino == opened.st_ino && named.st_dev == opened.st_dev)
            return file; /* and it was not replaced in between */
        error = errno;
        close(file);
        if (error != 0 && error != ENOENT) {
            errno = error;
            return -1;
        }
    }
}

/* FILE.partial, or a number behind it where a killed process left one. */
static int gpb_create_partial(gpubench *bench, const char *path)
{
    char name[PATH_MAX + 32];
    unsigned number;
    int file = -1;
    for (number = 1; file < 0 && number < 1000; number++) {
        snprintf(name, sizeof name, number > 1 ? "%s.partial.%u" : "%s.partial", path, number);
        file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
        if (file < 0 && errno != EEXIST)
            return -1;
        if (file < 0)
            gpb_message(bench, "%s holds the rows of a run that was killed; it stays there",
                        name);
    }
    bench->journal.partial = gpb_duplicate(name);
    return file;
}

/* The handle whose journal is open, for the end of a process that measures nothing at
 * that moment, or lets others measure. */
static gpubench *gpb_unsettled;
static pid_t gpb_unsettled_pid; /* a process that it forks settles nothing */

static void gpb_watch_journal(gpubench *bench)
{
    gpb_unsettled = bench;
    gpb_unsettled_pid = getpid();
}

/* Straight to the path where nothing is, else beside it. -1 with errno. */
static int gpb_create_journal(gpubench *bench, const char *path)
{
    gpb_journal *journal = &bench->journal;
    int made, file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, 0666);
    if (file < 0 && errno != EEXIST)
        return -1;
    if (file < 0) {
        journal->old = gpb_lock_old(path);
        if (journal->old < 0)
            return -1;
        file = gpb_create_partial(bench, path);
    }
    made = file >= 0;
    file = gpb_keep_descriptor(file);
    if (file >= 0) {
        (void)flock(file, LOCK_EX | LOCK_NB);
        free(journal->path);
        journal->path = gpb_duplicate(path);
    } else if (made) {
        int reason = errno;
        unlink(journal->partial ? journal->partial : path);
        errno = reason;
    }
    return file;
}

/* The row as a line of CSV, to free; the header without a row. Gives its length. */
static size_t gpb_row_text(const gpb_row *row, int columns, char **text)
{
    size_t bytes = 0;
    FILE *file = open_memstream(text, &bytes);
    gpb_must(file);
    if (row)
        gpb_write_row(file, row, columns);
    else
        gpb_write_header(file);
    fclose(file);
    gpb_must(*text);
    return bytes;
}

static off_t gpb_header_bytes(void)
{
    char *header;
    size_t bytes = gpb_row_text(NULL, 0, &header);
    free(header);
    return (off_t)bytes;
}

/* Whole lines only: what a full disk cut off is taken back. Async-signal-safe. */
static void gpb_append(gpb_journal *journal, const char *text, size_t bytes)
{
    off_t end = journal->is_stream ? 0 : lseek(journal->file, 0, SEEK_END);
    if (journal->file < 0 || journal->error || gpb_write_all(journal->file, text, bytes) == 0)
        return;
    journal->error = errno;
    if (!journal->is_stream && end >= 0 && ftruncate(journal->file, end) != 0)
        return; /* the line stays cut, and the status tells */
}

/* Also rows of other processes, and those that could not be read back: what holds any is
 * not thrown away. Async-signal-safe. */
static int gpb_holds_rows(const gpb_journal *journal)
{
    struct stat about;
    if (journal->is_stream || journal->file < 0 || fstat(journal->file, &about) != 0)
        return journal->rows > 0;
    return about.st_size > journal->header_bytes;
}

/* What the journal is called now; NULL: not this process's to know. */
static const char *gpb_journal_name(const gpb_journal *journal)
{
    return journal->partial && !journal->renamed ? journal->partial : journal->path;
}

static void gpb_tell_journal_error(const gpubench *bench)
{
    const gpb_journal *journal = &bench->journal;
    const char *name = gpb_holds_rows(journal) ? gpb_journal_name(journal) : NULL;
    gpb_message(bench, "--csv '%s': %s%s%s",
                bench->settings.csv ? bench->settings.csv : "(of all runs)",
                strerror(journal->error), name ? "; the rows before are in " : "",
                name ? name : "");
}

/* 0, or -1 after a message. */
static int gpb_open_journal(gpubench *bench)
{
    gpb_journal *journal = &bench->journal;
    const char *csv = bench->settings.csv;
    char path[PATH_MAX], *header;
    sigset_t before;
    size_t bytes;
    if (!csv || journal->file >= 0)
        return 0;
    bytes = gpb_row_text(NULL, 0, &header); /* before there is a file that it lacks */
    journal->header_bytes = (off_t)bytes;
    journal->file = gpb_csv_stream(csv);
    journal->is_stream = 1;
    if (journal->file == GPB_NO_STREAM) {
        int replaceable = gpb_resolve_csv(bench, path);
        journal->is_stream = replaceable == 0;
        if (replaceable == 0) /* a pipe may have to wait for its reader */
            journal->file = gpb_keep_descriptor(open(path, O_WRONLY | O_APPEND));
        if (replaceable > 0) {
            gpb_hold_signals(&before);
            journal->file = gpb_create_journal(bench, path);
            sigprocmask(SIG_SETMASK, &before, NULL);
        }
    }
    if (journal->file < 0) {
        gpubench_usage_error(bench, "--csv '%s': %s", csv,
                             errno == EBUSY ? "another process is writing it" : strerror(errno));
        free(header);
        return -1;
    }
    gpb_watch_journal(bench);
    fflush(stdout);
    gpb_append(journal, header, bytes);
    free(header);
    if (journal->error)
        gpb_tell_journal_error(bench);
    return 0;
}

/* An orderly end: what holds rows takes its name, what holds none goes.
 * Async-signal-safe. */
static void gpb_settle_journal(gpb_journal *journal)
{
    if (journal->file < 0 || journal->is_stream || !journal->path)
        return;
    if (!gpb_holds_rows(journal)) {
        unlink(gpb_journal_name(journal));
        close(journal->file);
        journal->file = -1; /* what is measured later begins another one */
    } else if (journal->partial && !journal->renamed && !journal->error) {
        if (rename(journal->partial, journal->path) != 0)
            journal->error = errno;
        else
            journal->renamed = 1;
    }
}

static void gpb_free_journal(gpubench *bench)
{
    gpb_journal *journal = &bench->journal;
    if (gpb_unsettled == bench)
        gpb_unsettled = NULL;
    if (journal->file >= 0 && !(journal->is_stream && journal->file < 10))
        close(journal->file);
    if (journal->old >= 0)
        close(journal->old);
    if (bench->rows_file >= 0)
        close(bench->rows_file);
    free(journal->path);
    free(journal->partial);
}

/* ---- the rows' file: what a fresh process has to know ---- */

/* In front of its rows the file says what the process that writes it is doing,
 * for the parent under --runs, which outlives a child that is killed. */
enum {
    GPB_SLOT_BYTES = 65536,
    GPB_SLOT_IDLE = 0,
    GPB_SLOT_BUSY = 1, /* a case executes; its guilty row follows */
    GPB_SLOT_ENDED = 2
};

typedef struct gpb_slot {
    int state, journal_error, samples_lost;
    uint64_t most_rows;
    size_t bytes, split;
    char stage[16];
} gpb_slot;

static void gpb_write_slot(const gpubench *bench, int state, const gpb_guilty *guilty,
                           const char *stage)
{
    gpb_slot slot;
    memset(&slot, 0, sizeof slot);
    slot.state = state;
    slot.journal_error = bench->journal.error;
    slot.samples_lost = bench->samples_lost;
    slot.most_rows = bench->most_rows;
    if (guilty && guilty->bytes <= GPB_SLOT_BYTES - sizeof slot &&
        pwrite(bench->rows_file, guilty->text, guilty->bytes, sizeof slot) ==
            (ssize_t)guilty->bytes) {
        slot.bytes = guilty->bytes;
        slot.split = guilty->split;
    }
    snprintf(slot.stage, sizeof slot.stage, "%s", stage);
    if (pwrite(bench->rows_file, &slot, sizeof slot, 0) != (ssize_t)sizeof slot)
        return; /* then the parent knows less of a child that is killed */
}

/* Without a name, so that nothing stays however this ends. -1 with errno. */
static int gpb_make_rows_file(gpubench *bench)
{
    const char *folders[] = {getenv("TMPDIR"), "/tmp", "/dev/shm", "."};
    sigset_t before;
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(folders) && bench->rows_file < 0; i++) {
        char path[PATH_MAX];
        int file;
        if (!folders[i] || !*folders[i])
            continue;
        snprintf(path, sizeof path, "%s/gpubench.XXXXXX", folders[i]);
        gpb_hold_signals(&before);
        file = mkstemp(path);
        if (file >= 0)
            (void)gpb_remove(bench, path);
        sigprocmask(SIG_SETMASK, &before, NULL);
        bench->rows_file = gpb_keep_descriptor(file);
    }
    if (bench->rows_file < 0)
        return -1;
    if (lseek(bench->rows_file, GPB_SLOT_BYTES, SEEK_SET) < 0)
        return -1;
    gpb_write_slot(bench, GPB_SLOT_IDLE, NULL, "");
    return 0;
}

/* A finished row, to every place that outlives this process. */
static void gpb_keep_row(gpubench *bench, const gpb_row *row)
{
    int known = bench->journal.error;
    char *text;
    size_t bytes = gpb_row_text(row, GPB_FILE_COLUMNS, &text);
    if (bench->journal.is_stream)
        fflush(stdout); /* the program's own words stay in front of the row */
    gpb_append(&bench->journal, text, bytes);
    free(text);
    bench->journal.rows += bench->journal.error == 0;
    if (bench->journal.error && !known)
        gpb_tell_journal_error(bench);
    bytes = gpb_row_text(row, GPB_COLUMN_COUNT, &text);
    if (bench->rows_file >= 0 && !bench->rows_error &&
        gpb_write_all(bench->rows_file, text, bytes) != 0) {
        bench->rows_error = errno;
        if (bench->is_child)
            gpb_message(bench, "run %llu: cannot hand on its rows: %s",
                        (unsigned long long)bench->run, strerror(errno));
    }
    free(text);
}

/* ---- starting afresh ---- */

#ifndef GPB_PROC_SELF
#define GPB_PROC_SELF "/proc/self"
#endif

/* Set for the processes that this one starts, or becomes, and taken out of the
 * environment by them: what a case starts is none of them. */
#define GPB_ENV "GPUBENCH_INTERNAL_"
#define GPB_ENV_RUN GPB_ENV "RUN"
#define GPB_ENV_ROWS GPB_ENV "ROWS"
#define GPB_ENV_JOURNAL GPB_ENV "JOURNAL"
#define GPB_ENV_CAMPAIGN GPB_ENV "CAMPAIGN"
#define GPB_ENV_DEVICE GPB_ENV "DEVICE"

extern char **environ;

/* The path of this program, to free; NULL if it cannot be known. */
static char *gpb_find_program(const gpubench *bench)
{
    char real[PATH_MAX];
    const char *name = bench->argv[0];
    if (access(GPB_PROC_SELF "/exe", X_OK) == 0)
        return gpb_duplicate(GPB_PROC_SELF "/exe");
#ifdef __linux__
    if (getauxval(AT_EXECFN))
        name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
#endif
    if (!name || !strchr(name, '/') || !realpath(name, real))
        return NULL;
    return gpb_duplicate(real);
}

/* The whole command line, also when the program gave gpubench_open a part of
 * it only. Where the system does not tell, that part. */
static void gpb_find_command(const gpubench *bench, gpb_restart *restart)
{
    FILE *file = fopen(GPB_PROC_SELF "/cmdline", "r");
    size_t bytes = 0, capacity = 256, count = 0, i;
    char *text = (char *)gpb_must(malloc(capacity));
    int c;
    while (file && (c = getc(file)) != EOF) {
        if (bytes + 1 == capacity)
            text = (char *)gpb_must(realloc(text, capacity *= 2));
        text[bytes++] = (char)c;
        count += c == '\0';
    }
    text[bytes] = '\0';
    if (file)
        fclose(file);
    restart->command_text = text;
    if (count == 0)
        while (bench->argv[count])
            count++;
    restart->command = (char **)gpb_must(calloc(count + 1, sizeof *restart->command));
    for (i = 0; i < count; i++) {
        restart->command[i] = bytes > 0 ? text : bench->argv[i];
        text += bytes > 0 ? strlen(text) + 1 : 0;
    }
}

/* As it was before the program changed it, without what is meant for this
 * process only. */
static char **gpb_copy_environment(void)
{
    size_t count = 0, used = 0, i;
    char **copy;
    while (environ && environ[count])
        count++;
    copy = (char **)gpb_must(calloc(count + 1, sizeof *copy));
    for (i = 0; i < count; i++)
        if (strncmp(environ[i], GPB_ENV, sizeof GPB_ENV - 1) != 0)
            copy[used++] = gpb_duplicate(environ[i]);
    return copy;
}

static void gpb_free_restart(gpb_restart *restart)
{
    size_t i;
    for (i = 0; restart->environment[i]; i++)
        free(restart->environment[i]);
    for (i = 0; i < GPB_COUNT_OF(restart->told); i++)
        free(restart->told[i]);
    free(restart->program);
    free(restart->command);
    free(restart->command_text);
    free(restart->environment);
    free(restart->next_environment);
}

static char *gpb_assignment(const char *name, const char *value)
{
    size_t bytes = strlen(name) + strlen(value) + 2;
    char *text = (char *)gpb_must(malloc(bytes));
    snprintf(text, bytes, "%s=%s", name, value);
    return text;
}

enum { GPB_ERROR_DIGITS = 5 };

/* What became of the journal since gpb_prepare_restart: its error, the last of what is
 * told with the rows. Async-signal-safe. */
static void gpb_tell_error(const gpubench *bench)
{
    char *digit = bench->restart.told[0] + strlen(bench->restart.told[0]);
    int error = bench->journal.error, i;
    for (i = 0; i < GPB_ERROR_DIGITS; i++, error /= 10)
        *--digit = (char)('0' + error % 10);
}

/* What gpb_replace_process needs, made where memory may be had. run 0: no child. */
static void gpb_prepare_restart(gpubench *bench, uint64_t run)
{
    gpb_restart *restart = &bench->restart;
    const gpb_journal *journal = &bench->journal;
    char text[128];
    size_t count = 0, i;
    for (i = 0; i < GPB_COUNT_OF(restart->told); i++) {
        free(restart->told[i]);
        restart->told[i] = NULL;
    }
    snprintf(text, sizeof text, "%d %d %d %d %lld %lld %0*d", bench->rows_file, journal->file,
             journal->is_stream, journal->old, (long long)bench->rows_at,
             (long long)bench->json_at, GPB_ERROR_DIGITS, journal->error);
    restart->told[0] = gpb_assignment(GPB_ENV_ROWS, text);
    restart->told[1] = gpb_assignment(GPB_ENV_CAMPAIGN, bench->campaign);
    snprintf(text, sizeof text, "%llu", (unsigned long long)run);
    if (run > 0)
        restart->told[2] = gpb_assignment(GPB_ENV_RUN, text);
    else if (journal->partial && !journal->renamed)
        restart->told[2] = gpb_assignment(GPB_ENV_JOURNAL, journal->partial);
    if (run > 0 && bench->device_told)
        restart->told[3] = gpb_assignment(GPB_ENV_DEVICE, bench->device_told);
    while (restart->environment[count])
        count++;
    free(restart->next_environment);
    restart->next_environment =
        (char **)gpb_must(calloc(count + 5, sizeof *restart->next_environment));
    memcpy(restart->next_environment, restart->environment, count * sizeof(char *));
    memcpy(restart->next_environment + count, restart->told, sizeof restart->told);
}

static void gpb_set_alarm(double seconds)
{
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)((seconds - (double)timer.it_value.tv_sec) * 1e6);
    if (seconds > 0 && timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0)
        timer.it_value.tv_usec = 1;
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Becomes a fresh process of the same program that knows the rows so far.
 * Returns if that fails. Async-signal-safe. */
static void gpb_replace_process(const gpubench *bench)
{
    const gpb_journal *journal = &bench->journal;
    if (bench->rows_file < 0 || bench->rows_error || bench->restart.why_not) {
        errno = bench->rows_error ? bench->rows_error : ENOSYS;
        return;
    }
    fcntl(bench->rows_file, F_SETFD, 0);
    if (journal->file >= 0)
        fcntl(journal->file, F_SETFD, 0);
    if (journal->old >= 0)
        fcntl(journal->old, F_SETFD, 0);
    gpb_tell_error(bench);
    sigprocmask(SIG_SETMASK, &bench->restart.mask, NULL);
    execve(bench->restart.program, bench->restart.command, bench->restart.next_environment);
}

/* ==== a case that ends the process ======================================== */

enum { GPB_REASON_BYTES = 256 };

/* Whose function executes, and which. */
typedef struct gpb_watch {
    gpb_live *live; /* NULL: none of a case's */
    const char *stage;
} gpb_watch;

/* The signals that would end the process. */
static const struct gpb_signal {
    int number, is_fault; /* of the case that executes */
    const char *name;
} gpb_signals[] = {
    {SIGALRM, 1, "Alarm clock"}, /* ours, in front: gpb_has_alarm */
    {SIGSEGV, 1, "Segmentation fault"}, {SIGBUS, 1, "Bus error"},
    {SIGFPE, 1, "Floating point exception"}, {SIGILL, 1, "Illegal instruction"},
    {SIGABRT, 1, "Aborted"}, {SIGTRAP, 1, "Trace/breakpoint trap"},
    {SIGINT, 0, ""}, {SIGTERM, 0, ""}, {SIGHUP, 0, ""}, {SIGQUIT, 0, ""}, {SIGPIPE, 0, ""},
    {SIGXCPU, 0, ""}, {SIGCONT, 0, ""}};

/* What a signal's handler and the end of the process can see. */
static gpubench *gpb_guarded; /* the handle that is measuring, or NULL */
static gpb_watch gpb_watched;
static struct gpb_guard {
    pid_t pid; /* a process that a case forks is not guarded */
    volatile sig_atomic_t dying;
    volatile sig_atomic_t continued; /* how often the process was, after it was stopped */
    int taken[GPB_COUNT_OF(gpb_signals)];
    int own_stack;
    char *stack;
    const gpb_live *told; /* whom the parent knows to be executing */
    double armed_s; /* when the alarm was set last */
    char time_out[96];
} gpb_guard;

static int gpb_has_alarm(void)
{
    return gpb_guard.taken[0];
}

static void gpb_fill_identity(const gpubench *bench, const gpb_live *live,
                              gpb_row *row);
static void gpb_fill_machine(const gpubench *bench, gpb_row *row);

/* The last place of the text that is a part of it; its end if there is none. */
static char *gpb_find_last(char *text, const char *part)
{
    char *found = text + strlen(text), *next = strstr(text, part);
    for (; next; next = strstr(next + 1, part))
        found = next;
    return found;
}

/* A row of the case as it would be if its stage ended the process. */
static void gpb_prepare_guilty(const gpubench *bench, gpb_live *live)
{
    static const char mark[] = "reason=\001";
    gpb_guilty *guilty = &live->guilty;
    char flags[sizeof live->flags + sizeof mark + 1], *text, *at;
    gpb_row row;
    size_t bytes, split;
    memset(&row, 0, sizeof row);
    gpb_fill_identity(bench, live, &row);
    gpb_fill_machine(bench, &row);
    snprintf(flags, sizeof flags, "%s%s%s", live->flags, *live->flags ? " " : "", mark);
    gpb_set_text(&row, GPB_COLUMN_flags, flags);
    gpb_set_text(&row, GPB_COLUMN_status, "failed");
    gpb_set_count(&row, GPB_COLUMN_order, bench->order + 1);
    bytes = gpb_row_text(&row, GPB_FILE_COLUMNS, &text);
    gpb_free_row(&row);
    at = gpb_find_last(text, mark) + sizeof mark - 2; /* a name may hold it, in front of the flags */
    memmove(at, at + 1, strlen(at)); /* the byte that marks the place */
    split = (size_t)(at - text);
    text = (char *)gpb_must(realloc(text, bytes + GPB_REASON_BYTES)); /* or the last one's counts */
    free(guilty->text);
    guilty->split = split;
    guilty->bytes = bytes - 1;
    guilty->text = text;
}

/* Appends to a text of capacity bytes. Async-signal-safe. */
static void gpb_join(char *text, size_t capacity, const char *more)
{
    size_t length = strlen(text), i;
    for (i = 0; more[i] && length + i + 1 < capacity; i++)
        text[length + i] = more[i];
    text[length + i] = '\0';
}

/* "ended by signal 6 (Aborted)"; without a name where that is not known.
 * Async-signal-safe. */
static void gpb_name_signal(char *text, size_t capacity, int number)
{
    char digits[2] = "";
    size_t i;
    gpb_join(text, capacity, "ended by signal ");
    for (i = number > 9 ? 10 : 1; i > 0; i /= 10) {
        digits[0] = (char)('0' + number / (int)i % 10);
        gpb_join(text, capacity, digits);
    }
    for (i = 0; i < GPB_COUNT_OF(gpb_signals); i++)
        if (gpb_signals[i].number == number && *gpb_signals[i].name) {
            gpb_join(text, capacity, " (");
            gpb_join(text, capacity, gpb_signals[i].name);
            gpb_join(text, capacity, ")");
        }
}

/* Writes the row of the case that ends the process, and says so.
 * Async-signal-safe. */
static void gpb_condemn(gpubench *bench, gpb_guilty *guilty, const char *name,
                        const char *stage, const char *why)
{
    char reason[GPB_REASON_BYTES - 2] = "", words[2 * GPB_REASON_BYTES + 512] = "", plain[512];
    size_t length, i;
    gpb_join(reason, sizeof reason, stage);
    gpb_join(reason, sizeof reason, ": ");
    gpb_join(reason, sizeof reason, why);
    gpb_join(words, sizeof words, bench->suite);
    gpb_join(words, sizeof words - GPB_REASON_BYTES - 16, ": ");
    gpb_join(words, sizeof words - GPB_REASON_BYTES - 16,
             gpubench_plain(name, plain, sizeof plain));
    gpb_join(words, sizeof words, ": failed: ");
    gpb_join(words, sizeof words, reason);
    gpb_join(words, sizeof words, "\n");
    (void)gpb_write_all(STDERR_FILENO, words, strlen(words));
    length = strlen(reason);
    for (i = 0; i < length; i++)
        if (reason[i] == ' ')
            reason[i] = '_';
    memmove(guilty->text + guilty->split + length, guilty->text + guilty->split,
            guilty->bytes - guilty->split);
    memcpy(guilty->text + guilty->split, reason, length);
    length += guilty->bytes;
    gpb_append(&bench->journal, guilty->text, length);
    bench->journal.rows += bench->journal.error == 0;
    guilty->text[length - 1] = ','; /* the columns that files do not have */
    guilty->text[length] = '\n';
    if (bench->rows_file >= 0 &&
        gpb_write_all(bench->rows_file, guilty->text, length + 1) != 0)
        bench->rows_error = errno;
}

/* Blames the case that executes and goes on without it in a fresh process.
 * Returns if that cannot be. A program whose cases are called otherwise in
 * each process would never end: it gets no more rows than it has cases. */
static void gpb_condemn_watched(gpubench *bench, const char *why)
{
    gpb_live *live = gpb_watched.live;
    gpb_watched.live = NULL;
    if (gpb_has_alarm())
        gpb_set_alarm(0);
    gpb_condemn(bench, &live->guilty, live->item->key, gpb_watched.stage, why);
    if (bench->order < bench->most_rows)
        gpb_replace_process(bench);
}

/* What was measured takes its names, however this ends. Async-signal-safe. */
static void gpb_settle_files(gpubench *bench)
{
    gpb_settle_journal(&bench->journal);
    if (bench->samples_temporary && !bench->is_child && !bench->samples_lost)
        (void)rename(bench->samples_temporary, bench->samples_path);
    if (bench->json_temporary && !bench->is_child && !bench->json_error)
        (void)rename(bench->json_temporary, bench->json_path);
}

static void gpb_die_of(int number)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, NULL);
    raise(number); /* comes when the handler returns */
}

/* The time for which the process was stopped is nobody's: what was executing gets all of
 * its own again. Async-signal-safe. */
static void gpb_note_continuing(int guarded)
{
    gpb_guard.continued = gpb_guard.continued + 1;
    if (guarded && gpb_has_alarm() && gpb_watched.live)
        gpb_set_alarm(1.75 * gpb_guarded->settings.timeout_s);
}

/* Set for what has ended, or it went off while the process was stopped, which is about to
 * be noted. Async-signal-safe. */
static int gpb_is_early_alarm(void)
{
    sigset_t pending;
    return !gpb_watched.live ||
           (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1);
}

static void gpb_on_signal(int number)
{
    gpubench *bench = gpb_guarded;
    int kept = errno, guarded = bench && gpb_guard.pid == getpid();
    size_t i = 0;
    if (number == SIGCONT)
        gpb_note_continuing(guarded);
    if (number == SIGCONT || (number == SIGALRM && guarded && gpb_is_early_alarm())) {
        errno = kept;
        return;
    }
    while (gpb_signals[i].number != number)
        i++;
    if (guarded && gpb_signals[i].is_fault && gpb_watched.live && !gpb_guard.dying) {
        char why[64] = "";
        gpb_guard.dying = 1;
        gpb_name_signal(why, sizeof why, number);
        gpb_condemn_watched(bench, number == SIGALRM ? gpb_guard.time_out : why);
    }
    if (guarded)
        gpb_settle_files(bench);
    gpb_die_of(number);
}

/* exit, or a return from main: ours to look at if a case called it, or if rows
 * wait for their name. */
static void gpb_on_exit(int status, int is_known)
{
    gpubench *bench = gpb_guarded;
    char why[64];
    if (!bench && gpb_unsettled && gpb_unsettled_pid == getpid())
        gpb_settle_journal(&gpb_unsettled->journal);
    if (!bench || gpb_guard.pid != getpid())
        return;
    if (gpb_watched.live && !gpb_guard.dying) {
        gpb_guard.dying = 1;
        snprintf(why, sizeof why, is_known ? "called exit(%d)" : "called exit", status);
        fflush(NULL);
        gpb_condemn_watched(bench, why);
        gpb_settle_files(bench);
        _exit(status != 0 ? status : 1);
    }
    gpb_settle_files(bench);
}

#if defined(__GLIBC__)
#ifndef __USE_MISC
extern int on_exit(void (*function)(int status, void *argument), void *argument);
#endif

static void gpb_at_exit(int status, void *argument)
{
    (void)argument;
    gpb_on_exit(status, 1);
}

static void gpb_watch_exit(void)
{
    (void)on_exit(gpb_at_exit, NULL);
}
#else
static void gpb_at_exit(void)
{
    gpb_on_exit(0, 0);
}

static void gpb_watch_exit(void)
{
    (void)atexit(gpb_at_exit);
}
#endif

/* A stack that overflowed cannot hold its signal's handler. */
static void gpb_guard_stack(void)
{
    enum { STACK_BYTES = 65536 };
    stack_t stack;
    if (sigaltstack(NULL, &stack) != 0 || !(stack.ss_flags & SS_DISABLE))
        return;
    memset(&stack, 0, sizeof stack);
    gpb_guard.stack = (char *)gpb_must(malloc(STACK_BYTES));
    stack.ss_sp = gpb_guard.stack;
    stack.ss_size = STACK_BYTES;
    gpb_guard.own_stack = sigaltstack(&stack, NULL) == 0;
}

static void gpb_guard_stop(void)
{
    struct sigaction action;
    stack_t stack;
    size_t i;
    if (gpb_has_alarm())
        gpb_set_alarm(0);
    for (i = 0; i < GPB_COUNT_OF(gpb_signals); i++)
        if (gpb_guard.taken[i] && sigaction(gpb_signals[i].number, NULL, &action) == 0 &&
            !(action.sa_flags & SA_SIGINFO) && action.sa_handler == gpb_on_signal) {
            action.sa_handler = SIG_DFL;
            sigaction(gpb_signals[i].number, &action, NULL);
        }
    if (gpb_guard.own_stack) {
        memset(&stack, 0, sizeof stack);
        stack.ss_flags = SS_DISABLE;
        sigaltstack(&stack, NULL);
    }
    free(gpb_guard.stack);
    gpb_guard.stack = NULL;
    gpb_guarded = NULL;
}

/* While measuring, signals that would end the process are taken; what the
 * program, or a sanitizer, handles itself, or ignores, is left alone. */
static void gpb_guard_start(gpubench *bench)
{
    struct sigaction action, before;
    struct itimerval timer;
    size_t i;
    if (gpb_guarded) /* an exception left another handle's measuring */
        gpb_guard_stop();
    memset(&gpb_guard, 0, sizeof gpb_guard);
    gpb_guard.pid = getpid();
    snprintf(gpb_guard.time_out, sizeof gpb_guard.time_out,
             "not finished after %g s (--timeout)", bench->settings.timeout_s);
    gpb_watched.live = NULL;
    gpb_guarded = bench;
    gpb_guard_stack();
    memset(&action, 0, sizeof action);
    action.sa_handler = gpb_on_signal;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (i = 0; i < GPB_COUNT_OF(gpb_signals); i++) {
        int number = gpb_signals[i].number;
        if (sigaction(number, NULL, &before) != 0 || (before.sa_flags & SA_SIGINFO) ||
            before.sa_handler != SIG_DFL)
            continue;
        if (number == SIGALRM && (getitimer(ITIMER_REAL, &timer) != 0 ||
                                  timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0))
            continue;
        gpb_guard.taken[i] = sigaction(number, &action, NULL) == 0;
    }
}

/* In front of what a case's own functions do; gpb_leave stands behind it. */
static void gpb_enter(const gpubench *bench, gpb_live *live, const char *stage)
{
    if (gpb_guarded != bench)
        return;
    gpb_prepare_guilty(bench, live);
    if (bench->is_child)
        gpb_write_slot(bench, GPB_SLOT_BUSY, &live->guilty, stage);
    gpb_guard.told = live;
    if (gpb_has_alarm()) /* the first runs are several: see gpb_keep_watch */
        gpb_set_alarm((strcmp(stage, "run") ? 1 : 1.75) * bench->settings.timeout_s);
    gpb_guard.armed_s = gpb_now_s();
    gpb_watched.stage = stage;
    gpb_watched.live = live;
}

static void gpb_leave(const gpubench *bench)
{
    if (gpb_guarded != bench)
        return;
    gpb_watched.live = NULL;
    if (gpb_has_alarm())
        gpb_set_alarm(0);
    gpb_guard.armed_s = 0;
    gpb_guard.told = NULL;
    if (bench->is_child)
        gpb_write_slot(bench, GPB_SLOT_IDLE, NULL, "");
}

/* What executes makes headway: its time begins anew. The alarm is set seldom,
 * as this stands in front of each sample, and late enough that a wait that
 * ends by --timeout itself ends first. */
static void gpb_keep_watch(const gpubench *bench, double now_s)
{
    double timeout_s = bench->settings.timeout_s;
    if (gpb_guarded != bench || !gpb_has_alarm() ||
        now_s - gpb_guard.armed_s < 0.5 * timeout_s)
        return;
    gpb_set_alarm(1.75 * timeout_s);
    gpb_guard.armed_s = now_s;
}

/* gpb_enter for one sample of many: a system call only where the case is
 * another one than before. What it gives is to be put back into
 * gpb_watched behind the sample. */
static gpb_watch gpb_watch_run(const gpubench *bench, gpb_live *live, double now_s)
{
    gpb_watch before = gpb_watched;
    if (gpb_guarded != bench || !live->guilty.text)
        return before;
    gpb_keep_watch(bench, now_s);
    if (bench->is_child && gpb_guard.told != live)
        gpb_write_slot(bench, GPB_SLOT_BUSY, &live->guilty, "run");
    gpb_guard.told = live;
    gpb_watched.stage = "run";
    gpb_watched.live = live;
    return before;
}

/* ==== measuring =========================================================== */

static const char *gpb_mode_name(unsigned mode)
{
    switch (mode) {
    case GPUBENCH_COLD: return "cold";
    case GPUBENCH_HOT: return "hot";
    case GPUBENCH_GRAPH: return "graph";
    default: return "dirty";
    }
}

static void gpb_keep_sample(gpb_live *live, double us)
{
    if (live->count == live->capacity) {
        live->capacity = live->capacity ? 2 * live->capacity : 256;
        live->samples = (double *)gpb_must(
            realloc(live->samples, live->capacity * sizeof *live->samples));
    }
    live->samples[live->count++] = us;
}

/* The case's own timing where it has one, and where it is the case that is measured. */
static int gpb_sample(gpubench *bench, gpb_live *live, double *us)
{
    const gpubench_case *one = &live->item->one;
    if (!one->sample)
        return bench->backend->sample(bench, live, us);
    return one->sample(one->context, live->mode, live->batch, us);
}

/* Time of one run in us; negative after a failure, which ended the case. */
static double gpb_take(gpubench *bench, gpb_live *live)
{
    double us = 0, start = gpb_now_s();
    gpb_watch before = gpb_watch_run(bench, live, start);
    int code, continued;
    bench->current = live;
    for (;;) {
        continued = gpb_guard.continued;
        code = gpb_sample(bench, live, &us);
        if (code != 0 || continued == gpb_guard.continued)
            break;
        start = gpb_now_s(); /* it was stopped, and the clock was not: not believed */
    }
    gpb_watched = before;
    live->spent_s += gpb_now_s() - start;
    if (code == 0 && us < 0) {
        snprintf(live->reason, sizeof live->reason, "run: a sample of %g us is no time", us);
        code = GPUBENCH_FAILED;
    }
    if (code != 0) {
        gpb_blame(bench, live, code, "run");
        return -1;
    }
    return us / (double)live->batch;
}

/* The least of three looks at a batch, per run: of a batch of microseconds one may
 * have met the scheduler. Of one that takes longer than that would, the first is
 * enough. Negative after a failure. */
static double gpb_look_at_batch(gpubench *bench, gpb_live *live)
{
    const double interrupted_us = 20000;
    double least = gpb_take(bench, live);
    int look;
    for (look = 1; look < 3 && least >= 0 && least * (double)live->batch < interrupted_us; look++) {
        double us = gpb_take(bench, live);
        least = us < least ? us : least;
    }
    return least;
}

/* Ten times as many runs as took before_us took after_us: what is more than the clock's step
 * and what reading it costs grows, or the case's own sample does not count its runs. */
static int gpb_batch_grows(const gpubench *bench, const gpb_live *live, double before_us,
                           double after_us)
{
    const double most_batch = 1e15, clock_us = 5; /* years of anything; some readings */
    return (double)live->batch < most_batch &&
           (before_us <= 10 * bench->clock_step_us || before_us <= clock_us ||
            after_us > 2 * before_us);
}

/* On the host by the time alone: half a millisecond, and 1000 steps of the clock,
 * unless that takes a quarter of the time limit; 10 steps at least. Grows by tens,
 * because a clock of coarse steps says 0 for many a batch. */
static void gpb_choose_host_batch(gpubench *bench, gpb_live *live)
{
    const double step_us = bench->clock_step_us, limit_us = bench->settings.max_time_s * 1e6;
    double wanted_us = 1000 * step_us < limit_us / 4 ? 1000 * step_us : limit_us / 4, before_us = 0;
    int standstills = 0;
    if (live->first_s > bench->settings.max_time_s)
        return;
    wanted_us = wanted_us > 10 * step_us ? wanted_us : 10 * step_us;
    wanted_us = wanted_us > 500 ? wanted_us : 500;
    for (;;) {
        double us = gpb_look_at_batch(bench, live), factor, batch_us = us * (double)live->batch;
        if (us < 0)
            return;
        standstills = gpb_batch_grows(bench, live, before_us, batch_us) ? 0 : standstills + 1;
        if (standstills == 2) { /* the first may be one that something else interrupted */
            snprintf(live->reason, sizeof live->reason,
                     "run: %g us for %g runs and for a tenth of them: does sample count them?",
                     batch_us, (double)live->batch);
            gpb_blame(bench, live, GPUBENCH_FAILED, "run");
            return;
        }
        before_us = batch_us;
        factor = us > 0 ? wanted_us / us / (double)live->batch : 11;
        if (factor <= 10) {
            live->batch = 1 + (uint64_t)((double)live->batch * factor);
            return;
        }
        live->batch *= 10;
    }
}

/* Hot mode: long enough that the step of the clock (32 ns between events of an
 * H100) and what two events cost (1.25 us) stay under 0.1 %, unless the launch
 * queue holds no more. */
static void gpb_choose_batch(gpubench *bench, gpb_live *live)
{
    const double wanted_us = 1500;
    const uint64_t most = bench->backend->most_batch;
    double us = 0;
    int i;
    if (most == 0) {
        gpb_choose_host_batch(bench, live);
        return;
    }
    for (i = 0; i < 2 && us >= 0; i++) {
        us = gpb_take(bench, live);
        if (us >= 0)
            live->batch = us * (double)most < wanted_us ? most : 1 + (uint64_t)(wanted_us / us);
    }
}

/* Of a run, or a batch of them, that lasts for us without a rest. */
static int gpb_is_long(const gpb_live *live, double us)
{
    return us * (double)live->batch > GPB_LONG_US;
}

/* The clock in MHz; also notes whether the load is one that the power cap slows. The
 * sensor follows in tenths of a second, for which short runs are not warmed up: of
 * them it would tell by chance. */
static double gpb_look_at_state(gpubench *bench, gpb_live *live, double run_us)
{
    gpb_live probe;
    memset(&probe, 0, sizeof probe);
    bench->backend->read_state(bench, &probe);
    live->hot_looks = probe.power_limited && gpb_is_long(live, run_us) ? live->hot_looks + 1 : 0;
    live->power_limited |= live->hot_looks >= 2; /* one may be a spike */
    return probe.sm_mhz;
}

/* What ran before leaves its power behind for a while, also that of another process: a
 * case that needs less would be taken for one that the cap slows. An idle device shows
 * nothing of it after a second. */
static void gpb_wait_for_calm(gpubench *bench)
{
    static const struct timespec pause = {0, 50000000};
    double start = gpb_now_s();
    while (!bench->lost && !bench->is_never_calm) {
        gpb_live probe;
        memset(&probe, 0, sizeof probe);
        bench->backend->read_state(bench, &probe);
        if (!probe.power_limited)
            return;
        (void)nanosleep(&pause, NULL);
        bench->is_never_calm = gpb_now_s() - start >= 1; /* another program's load: once is enough */
    }
}

/* The median of one window of warm-up samples: at least 5 and 10 ms, unless
 * that takes over 100 ms, or on the host over longest_s; of a GPU's long runs
 * 100 ms, so that the next look sees their power. Negative after a failure. */
static double gpb_warm_up_window(gpubench *bench, gpb_live *live, double longest_s)
{
    double window[256], start = gpb_now_s(), elapsed = 0, least_s = 0.01;
    gpubench_statistics statistics;
    size_t count = 0;
    longest_s = bench->backend->is_patient || longest_s > 0.1 ? 0.1 : longest_s;
    while (count < GPB_COUNT_OF(window) && elapsed < longest_s &&
           (count < 5 || elapsed < least_s)) {
        double us = gpb_take(bench, live);
        if (us < 0)
            return -1;
        window[count++] = us;
        elapsed = gpb_now_s() - start;
        least_s = bench->backend->is_patient && gpb_is_long(live, us) ? 0.1 : 0.01;
    }
    live->warmup += count * live->batch;
    gpubench_describe(window, count, &statistics);
    return statistics.median;
}

/* As long as the samples may take. A processor is at its clock rate sooner: a
 * fifth, and none where the first execution took longer than all samples may. */
static double gpb_warm_up_cap_s(const gpubench *bench, const gpb_live *live)
{
    if (bench->backend->is_patient)
        return bench->settings.max_time_s;
    return live->first_s > bench->settings.max_time_s ? 0 : bench->settings.max_time_s / 5;
}

/* Until two windows agree within twice the precision and the SM clock within
 * one step (15 MHz), and two looks in a row at the power. */
static void gpb_warm_up(gpubench *bench, gpb_live *live)
{
    double cap_s = gpb_warm_up_cap_s(bench, live), start = gpb_now_s();
    double tolerance = 2 * bench->settings.precision, before = 0, clock_before = 0;
    if (cap_s == 0)
        return;
    for (;;) {
        double median = gpb_warm_up_window(bench, live, cap_s);
        double clock = gpb_look_at_state(bench, live, median);
        double drift = median > before ? median - before : before - median;
        double clock_drift = clock > clock_before ? clock - clock_before : clock_before - clock;
        int steady = before > 0 && drift <= tolerance * median + 0.064 && clock_drift <= 15 &&
                     live->hot_looks != 1;
        int late = gpb_now_s() - start > cap_s && live->hot_looks != 1 &&
                   (before > 0 || !bench->backend->is_patient);
        if (median < 0 || (steady && live->warmup >= bench->settings.warmup))
            return;
        if (late && live->warmup >= bench->settings.warmup) {
            gpb_add_flag(live, "unsteady");
            return;
        }
        before = median;
        clock_before = clock;
    }
}

/* One round: a sample of each, not kept but added to its sum. */
static void gpb_soak_round(gpubench *bench, gpb_live *lives, size_t count, double *sums)
{
    size_t i;
    for (i = 0; i < count && !bench->lost; i++) {
        double us = lives[i].done ? 0 : gpb_take(bench, &lives[i]);
        sums[i] += us > 0 ? us : 0;
        lives[i].warmup += lives[i].done ? 0 : lives[i].batch;
    }
}

/* The means of each case over rounds of half a second. */
static void gpb_soak_window(gpubench *bench, gpb_live *lives, size_t count, double *means)
{
    double start = gpb_now_s();
    size_t rounds = 0, i;
    memset(means, 0, count * sizeof *means);
    for (; !bench->lost && (rounds == 0 || gpb_now_s() - start < 0.5); rounds++)
        gpb_soak_round(bench, lives, count, means);
    for (i = 0; i < count && rounds > 0; i++)
        means[i] /= (double)rounds;
}

/* A load near the power cap gets slower for seconds, while the board's
 * controller closes in on it: 14 % between 50 ms and 1 s of a large product on
 * an H100. So it runs as it will be sampled, in turn with the others of its
 * group, for 2 s at least and until two half seconds agree within the
 * precision. What is still drifting after 6 s is marked. */
static void gpb_soak(gpubench *bench, gpb_live *lives, size_t count)
{
    double start = gpb_now_s(), least_s = 2, most_s = 6, moved = 1;
    double *means = (double *)gpb_must(calloc(2 * count, sizeof *means));
    double *before = means + count;
    size_t i;
    while (!bench->lost && moved > bench->settings.precision + 1e-9 &&
           gpb_now_s() - start < most_s) {
        memcpy(before, means, count * sizeof *means);
        gpb_soak_window(bench, lives, count, means);
        for (moved = gpb_now_s() - start < least_s, i = 0; i < count; i++) {
            double change = means[i] > before[i] ? means[i] - before[i] : before[i] - means[i];
            if (change > moved * means[i])
                moved = change / means[i];
        }
    }
    for (i = 0; i < count && moved > bench->settings.precision + 1e-9; i++)
        if (!strstr(lives[i].flags, "unsteady"))
            gpb_add_flag(&lives[i], "unsteady");
    free(means);
}

/* Together, where one of them is slowed by the power cap. */
static void gpb_soak_if_limited(gpubench *bench, gpb_live *lives, size_t count)
{
    int limited = 0;
    size_t i;
    for (i = 0; i < count; i++)
        limited |= lives[i].power_limited && !lives[i].done;
    if (limited)
        gpb_soak(bench, lives, count);
}

/* The outputs are poisoned when all warming up is over: what verify sees is the
 * timed loop's. */
static void gpb_start_sampling(gpubench *bench, gpb_live *live)
{
    int code = bench->backend->make_current(bench);
    bench->current = live;
    if (code == 0)
        code = gpb_poison_outputs(bench, live->item);
    if (code != 0)
        gpb_blame(bench, live, code, "poisoning the outputs");
    live->spent_s = 0;
}

static void gpb_set_up(gpubench *bench, gpb_live *live)
{
    const gpubench_case *one = &live->item->one;
    uint64_t before, after;
    int code = bench->backend->make_current(bench); /* another case may have left another device */
    bench->set_up_s = gpb_now_s();
    before = bench->backend->free_bytes();
    bench->current = live;
    live->set_up = 1;
    gpb_enter(bench, live, "setup");
    if (code == 0 && one->setup)
        code = one->setup(one->context, bench);
    if (code == 0)
        code = live->misused ? GPUBENCH_FAILED : bench->backend->finish(bench);
    gpb_leave(bench);
    after = bench->backend->free_bytes();
    if (bench->backend->owns_memory && before > after + live->device_bytes)
        live->device_bytes = before - after;
    if (code != 0)
        gpb_blame(bench, live, code, "setup");
    else if (live->fresh) {
        *live->fresh = *live;
        memset(&live->fresh->guilty, 0, sizeof live->guilty);
    }
}

/* What a backend's begin finds out by its own means is not known of a case that times
 * itself but for how long it takes. */
static int gpb_begin_own(gpubench *bench, gpb_live *live)
{
    double us = 0;
    int code = gpb_sample(bench, live, &us);
    live->first_s = us * 1e-6;
    return code;
}

static void gpb_begin(gpubench *bench, gpb_live *live)
{
    int code;
    bench->current = live;
    live->batch = 1;
    live->begun = 1;
    gpb_enter(bench, live, "run");
    code = live->item->one.sample ? gpb_begin_own(bench, live) : bench->backend->begin(bench, live);
    gpb_leave(bench);
    if (code != 0) {
        gpb_blame(bench, live, code, "first execution");
        return;
    }
    if (live->mode == GPUBENCH_HOT || (live->mode == GPUBENCH_GRAPH && live->item->one.sample))
        gpb_choose_batch(bench, live);
    if (!live->done)
        gpb_warm_up(bench, live);
}

/* Ends the sampling, and reads the clocks while the GPU is still warm. */
static void gpb_stop(gpubench *bench, gpb_live *live, const char *reason, int precise)
{
    gpb_add_flag(live, reason);
    if (!precise)
        gpb_add_flag(live, "imprecise");
    if (live->count < bench->settings.min_samples)
        gpb_add_flag(live, "few-samples");
    bench->backend->read_state(bench, live);
    live->done = 1;
}

/* What the members of a group share while they are sampled in turn. */
typedef struct gpb_turns {
    double limit_s, spent_s; /* for all of their samples, and so far */
    int limited;             /* one of them is slowed by the power cap */
    int late;
} gpb_turns;

/* The clock of a load at the power cap swings for seconds: 12 % within one
 * second of a large product. Its median is that of a whole swing or two. */
static double gpb_time_limit_s(const gpubench *bench, size_t members, int limited)
{
    const double swing_s = 2.5, asked_s = bench->settings.max_time_s * (double)members;
    return limited && asked_s < swing_s ? swing_s : asked_s;
}

/* Has this case samples enough? Looks at the interval each time the number
 * has grown by an eighth, since looking sorts a copy. */
static void gpb_consider_stopping(gpubench *bench, gpb_live *live,
                                  const gpb_turns *turns)
{
    const gpb_settings *settings = &bench->settings;
    double least_s = turns->limited ? turns->limit_s / 1.5 : settings->max_time_s / 10;
    int full = live->count >= settings->max_samples;
    int settled = live->count >= settings->min_samples && live->count >= live->next_check &&
                  (turns->limited ? turns->spent_s : live->spent_s) >= least_s;
    gpubench_statistics statistics;
    double dependence = 0;
    if (!full && !turns->late && !settled)
        return;
    live->precise =
        gpb_describe_in_order(live->samples, live->count, &statistics, &dependence) == 0 &&
        (double)live->count >= 6 * dependence && /* fewer have no such interval */
        statistics.ci95_high - statistics.ci95_low <= settings->precision * statistics.median;
    live->next_check = live->count + live->count / 8;
    live->enough = live->precise && settled ? "stop=precision"
                   : full                   ? "stop=max-samples"
                   : turns->late            ? "stop=max-time"
                                            : NULL;
}

/* How wide the terminal is; 0: it is none, or does not say. */
static int gpb_columns_of(FILE *file)
{
    struct winsize size;
    memset(&size, 0, sizeof size);
    if (!isatty(fileno(file)) || ioctl(fileno(file), TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

/* Something stands on the terminal's last line, without an end. */
static int gpb_progress_stands;

static void gpb_clear_progress(void)
{
    if (gpb_progress_stands)
        fputs("\r\033[K", stderr);
    gpb_progress_stands = 0;
}

static int gpb_shows_progress(const gpubench *bench)
{
    return !bench->settings.quiet && isatty(STDERR_FILENO);
}

/* What is left when done of all took so long: as much for each. under_way: for
 * how long the next ones, which end together, have been measured; they take at
 * least what they took. */
static double gpb_time_left(double took_s, double done, double all, double under_way_s,
                            double together)
{
    double each_s = took_s / done, used_s = together * each_s;
    return each_s * (all - done) - (under_way_s < used_s ? under_way_s : used_s);
}

/* "3 min left"; "" while nothing is known. text has room for 32 bytes. */
static void gpb_format_time_left(double seconds, char *text)
{
    text[0] = '\0';
    if (!gpubench_is_finite(seconds) || seconds < 0)
        return;
    if (seconds < 99.5)
        snprintf(text, 32, ", %.0f s left", seconds);
    else if (seconds < 5970)
        snprintf(text, 32, ", %.0f min left", seconds / 60);
    else
        snprintf(text, 32, ", %.0f h left", seconds / 3600);
}

static void gpb_begin_progress(gpubench *bench)
{
    gpb_progress *progress = &bench->progress;
    progress->began_s = progress->row_s = gpb_now_s();
    progress->began_rows = progress->rows = bench->row_count;
}

/* together: how many rows will be finished at once. */
static void gpb_show_progress(gpubench *bench, const gpb_live *live, size_t together)
{
    gpb_progress *progress = &bench->progress;
    double now = gpb_now_s(), left = -1;
    char text[32], line[256];
    int columns;
    if (progress->rows != bench->row_count) {
        progress->rows = bench->row_count;
        progress->row_s = now;
    }
    if (now - progress->shown_s < 0.1 || !gpb_shows_progress(bench))
        return;
    progress->shown_s = now;
    if (progress->rows > progress->began_rows)
        left = gpb_time_left(progress->row_s - progress->began_s,
                             (double)(progress->rows - progress->began_rows),
                             (double)bench->most_rows - (double)progress->began_rows,
                             now - progress->row_s, (double)together);
    gpb_format_time_left(left, text);
    snprintf(line, sizeof line, "[%llu of %llu done%s] %s: %llu samples",
             (unsigned long long)bench->row_count, (unsigned long long)bench->most_rows, text,
             live->item->key, (unsigned long long)live->count);
    columns = gpb_columns_of(stderr);
    if (columns > 0 && columns < (int)sizeof line)
        line[columns - 1] = '\0'; /* of two lines only the second could be cleared */
    fputs("\r\033[K", stderr);
    gpb_put_plain(stderr, line);
    fflush(stderr);
    gpb_progress_stands = 1;
}

/* One sample of each that did not fail. */
static void gpb_take_turns(gpubench *bench, gpb_live *lives, size_t count,
                           gpb_turns *turns)
{
    size_t i;
    for (i = 0; i < count && !bench->lost; i++) {
        double us, before_s = lives[i].spent_s;
        if (lives[i].done)
            continue;
        us = gpb_take(bench, &lives[i]);
        turns->spent_s += lives[i].spent_s - before_s;
        if (!lives[i].done && lives[i].count < bench->settings.max_samples)
            gpb_keep_sample(&lives[i], us);
        gpb_show_progress(bench, &lives[i], count);
    }
}

/* Is the time up? On a GPU the slowest gets its samples where four times the time
 * is enough for them; on the host a plain run has to end within seconds. */
static int gpb_is_late(const gpubench *bench, const gpb_live *lives, size_t count,
                       const gpb_turns *turns)
{
    uint64_t least = UINT64_MAX;
    size_t i;
    for (i = 0; i < count; i++)
        if (!lives[i].done && lives[i].count < least)
            least = lives[i].count;
    return turns->spent_s >= turns->limit_s &&
           (count == 1 || !bench->backend->is_patient ||
            least >= bench->settings.min_samples || turns->spent_s >= 4 * turns->limit_s);
}

/* How many of them want more samples; -1 once all have failed. */
static int gpb_count_wanting(gpubench *bench, gpb_live *lives, size_t count,
                             gpb_turns *turns)
{
    int wanting = 0, alive = 0;
    size_t i;
    turns->late = gpb_is_late(bench, lives, count, turns);
    for (i = 0; i < count; i++) {
        if (lives[i].done)
            continue;
        alive = 1;
        if (!lives[i].enough || turns->late)
            gpb_consider_stopping(bench, &lives[i], turns);
        wanting += !lives[i].enough;
    }
    return alive ? wanting : -1;
}

/* One sample of each in turn, until every one has enough: then all end
 * together. One that went on alone would find other caches for its code, and
 * another temperature, than before: kernels of 8 us became 6 % faster. */
static void gpb_interleave(gpubench *bench, gpb_live *lives, size_t count)
{
    gpb_turns turns;
    int wanting = 1;
    size_t i;
    memset(&turns, 0, sizeof turns);
    for (i = 0; i < count; i++)
        turns.limited |= lives[i].power_limited;
    turns.limit_s = gpb_time_limit_s(bench, count, turns.limited);
    while (wanting > 0 && !bench->lost) {
        gpb_take_turns(bench, lives, count, &turns);
        wanting = bench->lost ? -1 : gpb_count_wanting(bench, lives, count, &turns);
    }
    for (i = 0; i < count && wanting == 0; i++)
        if (!lives[i].done)
            gpb_stop(bench, &lives[i], lives[i].enough, lives[i].precise);
}

static void gpb_measure_energy(gpubench *bench, gpb_live *live)
{
    int code;
    bench->current = live;
    code = bench->backend->measure_energy(bench, live);
    if (code != 0)
        gpb_blame(bench, live, code, "measuring the energy");
}

/* Leaves the outputs of exactly one run after a reset, on the timed buffers.
 * In a group another case may have written them since: then what this one does
 * not write must not look as if it had. */
static int gpb_settle_outputs(gpubench *bench, gpb_live *live, int in_group)
{
    int has_reset = live->item->one.reset != NULL;
    int code = in_group ? bench->backend->make_current(bench) : 0;
    if (code == 0 && in_group)
        code = gpb_poison_outputs(bench, NULL);
    if (code != 0)
        return code;
    if (in_group || (has_reset && (live->mode == GPUBENCH_HOT || bench->settings.energy))) {
        unsigned mode = live->mode;
        double us;
        if (mode == GPUBENCH_HOT && has_reset)
            live->mode = GPUBENCH_COLD;
        live->batch = 1;
        us = gpb_take(bench, live);
        live->mode = mode;
        if (us < 0)
            return 0; /* already blamed */
    }
    return bench->backend->finish(bench);
}

/* The case's own verify, which --no-verify leaves out: what a second process of the
 * same program finds is known from the first one. */
static int gpb_call_verify(gpubench *bench, gpb_live *live)
{
    const gpubench_case *one = &live->item->one;
    if (!one->verify)
        return 0;
    if (!bench->settings.no_verify)
        return one->verify(one->context, bench);
    gpb_add_flag(live, "unverified");
    return 0;
}

static void gpb_verify(gpubench *bench, gpb_live *live, int in_group)
{
    uint64_t batch = live->batch;
    int code;
    bench->current = live;
    gpb_enter(bench, live, "verify");
    code = gpb_settle_outputs(bench, live, in_group);
    live->batch = batch;
    gpb_enter(bench, live, "verify"); /* its own time begins */
    if (code == 0 && !live->status)
        code = gpb_check_guards(bench, live->item);
    if (code == 0 && !live->status)
        code = gpb_call_verify(bench, live);
    if (code == 0 && live->misused)
        code = GPUBENCH_FAILED;
    if (code == 0 && live->check_failed)
        code = GPUBENCH_MISMATCH;
    if (code == 0)
        code = bench->backend->finish(bench);
    gpb_leave(bench);
    if (code != 0)
        gpb_blame(bench, live, code, "verify");
}

/* Ends the mode; as_well: the case too. */
static void gpb_tear_down(gpubench *bench, gpb_live *live, int as_well)
{
    const gpubench_case *one = &live->item->one;
    int code;
    bench->current = live;
    gpb_enter(bench, live, "teardown");
    if (live->begun)
        bench->backend->end(live);
    if (as_well && live->set_up && one->teardown)
        one->teardown(one->context);
    if (as_well)
        gpb_release_memory(bench, live->item);
    code = bench->backend->finish(bench); /* an error of teardown's is not the next case's */
    gpb_leave(bench);
    if (code != 0 && !live->status && !bench->backend->alive(bench))
        gpb_blame(bench, live, code, "teardown"); /* nor is the loss of the device */
    bench->current = NULL;
}

/* Between two events with nothing in between there are 1.25 us on an H100,
 * with a memset of 4 bytes 2.05 us, with an empty kernel 3.1 us. */
static int gpb_launched_nothing(const gpubench *bench, const gpb_live *live, double us)
{
    double nothing_us = bench->nothing_us[live->mode];
    return nothing_us > 0 && us < 0.5 * (nothing_us + bench->memset_us[live->mode]);
}

/* Multiply-adds of the tensor cores (dense) or the f32 units, counted as two
 * operations, per clock and SM: NVIDIA's architecture white papers and data sheets,
 * where it is TFLOP/s over SMs and clock, of the fastest product. T4 (7.5): 65 f16
 * and 8.1 f32 of 40 SMs at 1.59 GHz. Orin (8.7): 5.3 f32 of 16 at 1.3. B300 (10.3):
 * a B200's. RTX PRO 6000 (12.0): 504 f16 and 126 f32 of 188 at 2.62. 0: unknown. */
static double gpb_flops_per_clock(int capability, const char *dtype)
{
    int bf16 = !strcmp(dtype, "bf16"), half = bf16 || !strcmp(dtype, "f16");
    int tf32 = !strcmp(dtype, "tf32"), single = !strcmp(dtype, "f32");
    if (!strcmp(dtype, "e4m3"))
        return capability < 89 ? 0 : 2 * gpb_flops_per_clock(capability, "bf16");
    switch (capability) {
    case 75: return half && !bf16 ? 1024 : single ? 128 : 0;
    case 80: return half ? 2048 : tf32 ? 1024 : single ? 128 : 0;
    case 87: return single ? 256 : 0;
    case 86:
    case 89:
    case 120: return half ? 1024 : tf32 ? 512 : single ? 256 : 0;
    case 90: return half ? 4096 : tf32 ? 2048 : single ? 256 : 0;
    case 100:
    case 103: return half ? 8192 : tf32 ? 4096 : single ? 256 : 0;
    default: return 0;
    }
}

/* Of the ceilings that the program measured; above them the cache had a share. */
static double gpb_share_of_measured(const gpb_machine *machine, const gpb_live *live, double us)
{
    double gb_peak = machine->measured_gb_per_s, tflop_peak = machine->measured_tflop_per_s;
    double by_bytes = gb_peak > 0 ? (double)live->bytes / us / 1e3 / gb_peak : 0;
    double by_flops = tflop_peak > 0 ? (double)live->flops / us / 1e6 / tflop_peak : 0;
    double share = by_bytes > by_flops ? by_bytes : by_flops;
    return share <= 1 ? share : 0;
}

static double gpb_share_of_peak(const gpubench *bench, const gpb_live *live, double us)
{
    const gpubench_case *one = &live->item->one;
    const gpb_machine *machine = &bench->machine;
    double gb_peak = one->peak_gb_per_s != 0 ? one->peak_gb_per_s : machine->peak_gb_per_s;
    double flop_peak = gpb_flops_per_clock(machine->capability, one->dtype) *
                       machine->sm_count * machine->max_sm_mhz * 1e6;
    double by_bytes = gb_peak > 0 ? (double)live->bytes / us / 1e3 / gb_peak : 0;
    double by_flops = flop_peak > 0 ? (double)live->flops / us * 1e6 / flop_peak : 0;
    if (gb_peak == 0 && flop_peak == 0)
        return gpb_share_of_measured(machine, live, us);
    if (live->flops > 0 && flop_peak == 0)
        return 0; /* memory may not be what bounds it */
    return by_bytes > by_flops ? by_bytes : by_flops;
}

/* ==== from measurements to rows =========================================== */

static void gpb_fill_case(const gpubench *bench, const gpubench_case *one, gpb_row *row)
{
    gpb_set_text(row, GPB_COLUMN_schema, "2");
    gpb_set_text(row, GPB_COLUMN_suite, bench->suite);
    gpb_set_text(row, GPB_COLUMN_case, one->name);
    gpb_set_text(row, GPB_COLUMN_variant, one->variant);
    gpb_set_text(row, GPB_COLUMN_backend, bench->backend->name);
    gpb_set_text(row, GPB_COLUMN_dtype, one->dtype);
    gpb_set_text(row, GPB_COLUMN_params, one->params);
    if (one->runs_on)
        gpb_set_text(row, GPB_COLUMN_runs_on, one->runs_on);
}

static void gpb_fill_amounts(uint64_t bytes, uint64_t flops, gpb_row *row)
{
    if (bytes > 0)
        gpb_set_count(row, GPB_COLUMN_bytes, bytes);
    if (flops > 0)
        gpb_set_count(row, GPB_COLUMN_flops, flops);
}

static void gpb_fill_identity(const gpubench *bench, const gpb_live *live,
                              gpb_row *row)
{
    gpb_fill_case(bench, &live->item->one, row);
    gpb_set_text(row, GPB_COLUMN_mode, gpb_mode_name(live->mode));
    gpb_set_text(row, GPB_COLUMN_campaign, bench->campaign);
    gpb_set_count(row, GPB_COLUMN_run, bench->run);
    gpb_set_text(row, GPB_COLUMN_status, live->status ? live->status : "ok");
    gpb_set_text(row, GPB_COLUMN_flags, live->flags);
}

/* What decides how long a case is measured: a comparison wants the same on both
 * sides. */
static void gpb_fill_settings(const gpubench *bench, gpb_row *row)
{
    const gpb_settings *settings = &bench->settings;
    char precision[32], max_time[32], text[256];
    gpubench_format_number(settings->precision * 100, precision);
    gpubench_format_number(settings->max_time_s, max_time);
    snprintf(text, sizeof text, "precision=%s max-time=%s min-samples=%llu max-samples=%llu "
             "warmup=%llu", precision, max_time, (unsigned long long)settings->min_samples,
             (unsigned long long)settings->max_samples, (unsigned long long)settings->warmup);
    if (settings->streams != GPB_STREAMS) /* files that are older do not name it */
        snprintf(text + strlen(text), sizeof text - strlen(text), " streams=%llu",
                 (unsigned long long)settings->streams);
    gpb_set_text(row, GPB_COLUMN_settings, text);
}

/* What is known before a device is. */
static void gpb_fill_build(const gpubench *bench, gpb_row *row)
{
    gpb_set_text(row, GPB_COLUMN_cpu, bench->machine.cpu);
    gpb_set_text(row, GPB_COLUMN_gpubench_version, GPUBENCH_VERSION);
    gpb_set_text(row, GPB_COLUMN_compiler, GPUBENCH_COMPILER);
    gpb_set_text(row, GPB_COLUMN_git, GPUBENCH_GIT);
    gpb_set_count(row, GPB_COLUMN_seed, bench->settings.seed);
    gpb_fill_settings(bench, row);
}

static void gpb_fill_machine(const gpubench *bench, gpb_row *row)
{
    const gpb_machine *machine = &bench->machine;
    char timestamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(timestamp, sizeof timestamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    gpb_set_text(row, GPB_COLUMN_device, machine->device);
    gpb_set_text(row, GPB_COLUMN_uuid, machine->uuid);
    gpb_set_text(row, GPB_COLUMN_pci, machine->pci);
    gpb_set_text(row, GPB_COLUMN_compute_capability, machine->compute_capability);
    if (machine->sm_count > 0)
        gpb_set_count(row, GPB_COLUMN_sm_count, (uint64_t)machine->sm_count);
    if (machine->l2_bytes > 0)
        gpb_set_count(row, GPB_COLUMN_l2_bytes, machine->l2_bytes);
    gpb_set_count(row, GPB_COLUMN_memory_bytes, machine->memory_bytes);
    if (machine->power_limit_w > 0)
        gpb_set_number(row, GPB_COLUMN_power_limit_w, machine->power_limit_w);
    gpb_set_text(row, GPB_COLUMN_driver, machine->driver);
    gpb_set_text(row, GPB_COLUMN_cuda_runtime, machine->cuda_runtime);
    gpb_fill_build(bench, row);
    gpb_set_text(row, GPB_COLUMN_timestamp, timestamp);
}

static void gpb_fill_times(const gpubench *bench, const gpb_live *live,
                           const gpubench_statistics *statistics, gpb_row *row)
{
    /* A time is known to half a step of the clock, however many agree on it. */
    const double half_step = bench->clock_step_us / 2 / (double)live->batch;
    const double low = statistics->ci95_low - half_step;
    const double times[] = {statistics->min, statistics->p5, statistics->p25, statistics->median,
                            statistics->p75, statistics->p95, statistics->p99, statistics->max,
                            statistics->mean, statistics->stddev, low > 0 ? low : 0,
                            statistics->ci95_high + half_step};
    size_t i;
    gpb_set_count(row, GPB_COLUMN_samples, statistics->count);
    gpb_set_count(row, GPB_COLUMN_batch, live->batch);
    gpb_set_count(row, GPB_COLUMN_warmup, live->warmup);
    for (i = 0; i < GPB_COUNT_OF(times); i++)
        gpb_set_number(row, GPB_COLUMN_min_us + (int)i, times[i]);
    if (bench->overhead_us[live->mode] > 0)
        gpb_set_number(row, GPB_COLUMN_overhead_us, bench->overhead_us[live->mode]);
    if (bench->nothing_us[live->mode] > 0)
        gpb_set_number(row, GPB_COLUMN_events_us, bench->nothing_us[live->mode]);
    if (live->host_us > 0)
        gpb_set_number(row, GPB_COLUMN_host_us, gpb_round_to_ns(live->host_us));
}

static void gpb_fill_work(const gpubench *bench, const gpb_live *live, double median_us,
                          gpb_row *row)
{
    gpb_fill_amounts(live->bytes, live->flops, row);
    if (live->bytes > 0)
        gpb_set_number(row, GPB_COLUMN_gb_per_s, (double)live->bytes / median_us / 1e3);
    if (live->flops > 0)
        gpb_set_number(row, GPB_COLUMN_tflop_per_s, (double)live->flops / median_us / 1e6);
    if (live->checked) {
        gpb_set_number(row, GPB_COLUMN_max_error, live->max_error);
        gpb_set_number(row, GPB_COLUMN_tolerance, live->tolerance);
    }
    gpb_set_count(row, GPB_COLUMN_device_bytes, live->device_bytes);
    gpb_set_number(row, GPB_COLUMN_share_of_peak, gpb_share_of_peak(bench, live, median_us));
}

static void gpb_fill_counters(const gpubench *bench, const gpb_live *live, double median_us,
                              gpb_row *row)
{
    char text[GPB_COUNTERS * (sizeof live->counters[0].name + 40)] = "", number[32];
    size_t i, used = 0;
    for (i = 0; i < live->counter_count; i++) {
        const gpb_counter *one = &live->counters[i];
        const double value = one->is_rate ? one->value / median_us * 1e6 : one->value;
        gpubench_format_number(value, number);
        if (!*number) {
            gpb_message(bench, "counter '%s/s': %g in %g us is beyond any number", one->name,
                        one->value, median_us);
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s=%s", used ? " " : "",
                                 one->name, one->is_rate ? "/s" : "", number);
    }
    gpb_set_text(row, GPB_COLUMN_counters, text);
}

static void gpb_fill_state(const gpb_live *live, gpb_row *row)
{
    const double state[] = {live->sm_mhz, live->mem_mhz, live->temperature_c, live->power_w,
                            live->energy_mj};
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(state); i++)
        if (state[i] > 0)
            gpb_set_number(row, GPB_COLUMN_sm_mhz + (int)i, state[i]);
}

/* What a reader has to know before believing the number. */
static void gpb_add_warnings(const gpubench *bench, gpb_live *live, double median_us)
{
    if (median_us < 2 * bench->overhead_us[live->mode])
        gpb_add_flag(live, "near-overhead");
    if (live->enqueue_us > 2 * median_us && live->enqueue_us > median_us + 10)
        gpb_add_flag(live, "host-bound");
    if (bench->clock_step_us / (double)live->batch > bench->settings.precision * median_us)
        gpb_add_flag(live, "coarse-clock");
    if (live->bytes > 0 && live->bytes <= bench->machine.l2_bytes)
        gpb_add_flag(live, "fits-l2");
    if (gpb_share_of_peak(bench, live, median_us) > 1)
        gpb_add_flag(live, "above-peak");
}

/* What is shorter than the clock's step has no time of its own. */
static void gpb_refuse_below_step(const gpubench *bench, gpb_live *live, double median_us)
{
    double timed_us = median_us * (double)live->batch;
    if (live->status || (timed_us > 0 && timed_us > 0.999 * bench->clock_step_us))
        return;
    live->status = "failed";
    snprintf(live->reason, sizeof live->reason, "shorter than the clock's step of %.6g us%s",
             bench->clock_step_us, live->mode == GPUBENCH_HOT ? "" : ": mode hot can time it");
}

/* On the host a run below a microsecond is one core's, and no core moves 4 TB/s
 * or computes 40 TFLOP/s: the compiler has removed the work. */
static void gpb_refuse_discarded(const gpubench *bench, gpb_live *live, double median_us)
{
    if (live->status || !bench->backend->runs_on_host || live->item->one.sample || median_us >= 1 ||
        ((double)live->bytes <= 4e6 * median_us && (double)live->flops <= 4e7 * median_us))
        return;
    live->status = "failed";
    snprintf(live->reason, sizeof live->reason, "did less than it says: %.0f ns for %.4g bytes "
             "and %.4g operations; hand the result to gpubench_keep",
             median_us * 1e3, (double)live->bytes, (double)live->flops);
}

static int gpb_is_failure(const char *status)
{
    return strcmp(status, "ok") && strcmp(status, "unsupported") && strcmp(status, "skipped");
}

static void gpb_describe_failure(gpubench *bench, gpb_live *live)
{
    char word[300];
    if (live->needed_bytes > 0) {
        snprintf(word, sizeof word, "needed_bytes=%llu", (unsigned long long)live->needed_bytes);
        gpb_add_flag(live, word);
        snprintf(word, sizeof word, "free_bytes=%llu", (unsigned long long)live->free_bytes);
        gpb_add_flag(live, word);
    }
    snprintf(word, sizeof word, "reason=%s", live->reason);
    gpb_add_flag(live, word);
    bench->failed |= gpb_is_failure(live->status);
    gpb_message(bench, "%s (%s): %s: %s", live->item->key, gpb_mode_name(live->mode),
                live->status, live->reason);
}

static gpb_row *gpb_new_row(gpubench *bench)
{
    bench->rows = (gpb_row *)gpb_grow(bench->rows, bench->row_count, sizeof *bench->rows);
    memset(&bench->rows[bench->row_count], 0, sizeof *bench->rows);
    return &bench->rows[bench->row_count++];
}

/* Samples that went up or down while they were taken have a median that says
 * as much of how long that was as of the case. */
static void gpb_flag_drift(gpb_live *live)
{
    double drift = gpubench_drift(live->samples, live->count);
    long tenths = (long)((drift < 0 ? -drift : drift) * 1000 + 0.5); /* of a percent */
    char word[48];
    if (!gpubench_drift_is_real(live->samples, live->count))
        return;
    snprintf(word, sizeof word, "drift=%c%ld.%ld%%", drift < 0 ? '-' : '+', tenths / 10,
             tenths % 10); /* a point in any locale */
    gpb_add_flag(live, word);
}

/* ==== the samples' file ==================================================== */

/* All processes of one invocation add to one temporary file, which gets the
 * name in the end: a process that starts over keeps its id, and those of --runs
 * have the one that writes the table as their parent. */
static void gpb_prepare_replacement(gpubench *bench, const char *option, const char *wanted,
                                    const char *ending, char **path, char **temporary)
{
    char real[PATH_MAX], name[PATH_MAX + 48], *slash;
    struct stat found;
    int exists = stat(wanted, &found) == 0;
    if (*wanted && strcmp(wanted, "-") && !exists && errno != ENOENT) {
        gpubench_usage_error(bench, "%s '%s': %s", option, wanted, strerror(errno));
        return;
    }
    if (!*wanted || !strcmp(wanted, "-") || (exists && !S_ISREG(found.st_mode)) ||
        (!exists && lstat(wanted, &found) == 0)) {
        gpubench_usage_error(bench, "%s '%s': wants a file", option, wanted);
        return;
    }
    snprintf(real, sizeof real, "%s", wanted);
    if (exists && !realpath(wanted, real)) {
        gpubench_usage_error(bench, "%s '%s': %s", option, wanted, strerror(errno));
        return;
    }
    *path = gpb_duplicate(real);
    snprintf(name, sizeof name, "%s.%ld.%s.tmp", real,
             (long)(bench->is_child ? getppid() : getpid()), ending);
    *temporary = gpb_duplicate(name);
    if (!bench->is_child && bench->rows_file < 0)
        unlink(name); /* of another process that had this id */
    slash = strrchr(real, '/');
    snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - real) + 1 : 2, slash ? real : "./");
    if (access(name, W_OK | X_OK) != 0 || (exists && access(real, W_OK) != 0))
        gpubench_usage_error(bench, "%s '%s': %s", option, wanted, strerror(errno));
}

static void gpb_open_samples(gpubench *bench)
{
    if (bench->settings.samples)
        gpb_prepare_replacement(bench, "--samples", bench->settings.samples, "samples",
                                &bench->samples_path, &bench->samples_temporary);
}

/* What other processes add cannot mend it: whichever goes on, or is waited for by another,
 * has to know. */
static void gpb_lose_samples(gpubench *bench)
{
    bench->samples_lost = 1;
    if (bench->rows_file >= 0 &&
        pwrite(bench->rows_file, &bench->samples_lost, sizeof bench->samples_lost,
               offsetof(gpb_slot, samples_lost)) < 0)
        bench->rows_error = errno;
}

/* Adds the samples of one row, in the order in which they were measured. */
static void gpb_keep_samples(gpubench *bench, const gpb_live *live,
                             const gpb_row *row)
{
    static const int columns[] = {
        GPB_COLUMN_suite, GPB_COLUMN_case, GPB_COLUMN_variant,
        GPB_COLUMN_backend, GPB_COLUMN_dtype, GPB_COLUMN_params,
        GPB_COLUMN_mode, GPB_COLUMN_campaign, GPB_COLUMN_run};
    FILE *file = bench->samples_temporary ? fopen(bench->samples_temporary, "a") : NULL;
    size_t i, column;
    char us[32];
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0)
        fputs("suite,case,variant,backend,dtype,params,mode,campaign,run,sample,us\n", file);
    for (i = 0; file && i < live->count; i++) {
        for (column = 0; column < GPB_COUNT_OF(columns); column++) {
            gpb_write_field(file, gpb_text(row, columns[column]));
            putc(',', file);
        }
        gpubench_format_number(live->samples[i], us);
        fprintf(file, "%llu,%s\n", (unsigned long long)i + 1, us);
    }
    if (bench->samples_temporary && (!file || fclose(file) != 0) && !bench->samples_lost) {
        gpb_message(bench, "--samples '%s': %s", bench->samples_path, strerror(errno));
        gpb_lose_samples(bench);
    }
}

/* Called once, by the process that writes the table. -1 after a message. */
static int gpb_finish_samples(gpubench *bench)
{
    const char *temporary = bench->samples_temporary;
    if (temporary && !bench->samples_lost && rename(temporary, bench->samples_path) != 0 &&
        errno != ENOENT) { /* of no case there are samples */
        gpb_message(bench, "--samples '%s': %s", bench->samples_path, strerror(errno));
        bench->samples_lost = 1;
    }
    if (temporary && bench->samples_lost && access(temporary, F_OK) == 0)
        gpb_message(bench, "the samples so far are in %s", temporary);
    return bench->samples_lost ? -1 : 0;
}

/* ==== the rows as JSON ==================================================== */

/* Columns that hold numbers; a git revision that looks like one is a text. */
static int gpb_is_number_column(int column)
{
    static const int others[] = {GPB_COLUMN_schema, GPB_COLUMN_run, GPB_COLUMN_order,
                                 GPB_COLUMN_sm_count, GPB_COLUMN_l2_bytes,
                                 GPB_COLUMN_memory_bytes, GPB_COLUMN_power_limit_w,
                                 GPB_COLUMN_seed};
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(others); i++)
        if (column == others[i])
            return 1;
    return column >= GPB_COLUMN_samples && column <= GPB_COLUMN_energy_mj;
}

/* RFC 8259; a byte that is no UTF-8 becomes the character that says so. What a terminal or a
 * CI's log would obey is spelt by its number: the second byte of two is that of a control
 * character. */
static void gpb_write_json_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    putc('"', file);
    while (*at) {
        size_t length = gpb_utf8_length(at);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (gpb_is_control(at) || (at[0] == '#' && at[1] == '#'))
            fprintf(file, "\\u%04x", (unsigned)at[length - 1]);
        else if (*at == '"' || *at == '\\')
            fprintf(file, "\\%c", *at);
        else
            fwrite(at, 1, length, file);
        at += length ? length : 1;
    }
    putc('"', file);
}

/* One NAME=VALUE of counters at *at, behind which it then stands. 0 at the end. */
static int gpb_next_counter(const char **at, char name[40], double *value)
{
    char number[48];
    size_t name_bytes, bytes;
    *at += strspn(*at, " ");
    name_bytes = strcspn(*at, "= ");
    bytes = strcspn(*at, " ");
    if (name_bytes == bytes || name_bytes >= 40 || bytes - name_bytes > sizeof number)
        return 0;
    snprintf(name, 40, "%.*s", (int)name_bytes, *at);
    snprintf(number, sizeof number, "%.*s", (int)(bytes - name_bytes - 1), *at + name_bytes + 1);
    *at += bytes;
    if (gpubench_parse_number(number + (*number == '-'), value) != 0)
        return 0;
    *value = *number == '-' ? -*value : *value;
    return 1;
}

static void gpb_write_json_counters(FILE *file, const char *text)
{
    const char *between = "{";
    char name[40], number[32];
    double value;
    while (gpb_next_counter(&text, name, &value)) {
        fputs(between, file);
        gpb_write_json_text(file, name);
        gpubench_format_number(value, number);
        fprintf(file, ": %s", number);
        between = ", ";
    }
    fputs("}", file);
}

static void gpb_write_json_row(FILE *file, const gpb_row *row)
{
    int column;
    for (column = 0; column < GPB_FILE_COLUMNS; column++) {
        const char *text = gpb_text(row, column);
        double value;
        fprintf(file, "%s\"%s\": ", column ? ", " : "{", gpb_column_names[column]);
        if (!*text)
            fputs("null", file);
        else if (column == GPB_COLUMN_counters)
            gpb_write_json_counters(file, text);
        else if (gpb_is_number_column(column) && gpubench_parse_number(text, &value) == 0)
            fputs(text, file);
        else
            gpb_write_json_text(file, text);
    }
    putc('}', file);
}

#define GPB_JSON_END "\n]\n"

/* The rows from the given one on, the text to free; in front of them what
 * begins an array, or goes on with one that GPB_JSON_END was taken from. */
static size_t gpb_json_rows(const gpubench *bench, size_t first, char **text)
{
    size_t bytes = 0, i;
    FILE *file = open_memstream(text, &bytes);
    gpb_must(file);
    for (i = first; i < bench->row_count; i++) {
        fputs(i > 0 || bench->json_at > 0 ? ",\n" : "[\n", file);
        gpb_write_json_row(file, &bench->rows[i]);
    }
    fputs(GPB_JSON_END, file);
    fclose(file);
    gpb_must(*text);
    return bytes;
}

static void gpb_tell_json_error(gpubench *bench, int error)
{
    if (!bench->json_error)
        gpb_message(bench, "--json '%s': %s", bench->settings.json, strerror(error));
    bench->json_error = error;
}

/* Brings the file up to the rows: those that another process measured, or that
 * a case left which ended one, are not in it yet. What a full disk cut off is
 * taken back. */
static void gpb_keep_json(gpubench *bench)
{
    size_t known = bench->json_rows, bytes;
    off_t end = bench->json_at;
    char *text;
    int file;
    if (!bench->json_temporary || bench->json_error || known == bench->row_count)
        return;
    file = open(bench->json_temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (known > 0 && file >= 0)
        end = lseek(file, 0, SEEK_END) - (off_t)strlen(GPB_JSON_END);
    if (file < 0 || end < 0 || lseek(file, end, SEEK_SET) != end) {
        gpb_tell_json_error(bench, errno);
    } else {
        bytes = gpb_json_rows(bench, known, &text);
        if (gpb_write_all(file, text, bytes) != 0) {
            gpb_tell_json_error(bench, errno);
            if (end == 0 || ftruncate(file, end) != 0 || lseek(file, end, SEEK_SET) != end ||
                gpb_write_all(file, GPB_JSON_END, strlen(GPB_JSON_END)) != 0)
                (void)gpb_remove(bench, bench->json_temporary);
        } else if (known == 0 && ftruncate(file, end + (off_t)bytes) != 0) {
            gpb_tell_json_error(bench, errno);
        }
        free(text);
        bench->json_rows = bench->row_count;
    }
    if (file >= 0 && close(file) != 0)
        gpb_tell_json_error(bench, errno);
}

/* As --samples: all processes of one invocation add to one file, which gets the
 * name in the end. It is whole JSON after each row. */
static void gpb_open_json(gpubench *bench)
{
    const char *wanted = bench->settings.json;
    if (!wanted || !strcmp(wanted, "-"))
        return;
    gpb_prepare_replacement(bench, "--json", wanted, "json", &bench->json_path,
                            &bench->json_temporary);
    if (!bench->refused)
        gpb_keep_json(bench); /* of the process that this one goes on for */
}

/* A stream gets its rows at the end: an array that is cut off is no JSON. */
static void gpb_stream_json(gpubench *bench)
{
    char *text;
    size_t bytes = gpb_json_rows(bench, 0, &text);
    fflush(stdout);
    if (gpb_write_all(STDOUT_FILENO, text, bytes) != 0)
        gpb_tell_json_error(bench, errno);
    free(text);
}

/* Called once, by the process that writes the table. -1 after a message. */
static int gpb_finish_json(gpubench *bench)
{
    if (!bench->settings.json)
        return 0;
    if (!strcmp(bench->settings.json, "-"))
        gpb_stream_json(bench);
    gpb_keep_json(bench);
    if (bench->json_temporary && !bench->json_error &&
        rename(bench->json_temporary, bench->json_path) != 0)
        gpb_tell_json_error(bench, errno);
    if (bench->json_error && bench->json_temporary && access(bench->json_temporary, F_OK) == 0)
        gpb_message(bench, "the rows before are in %s", bench->json_temporary);
    return bench->json_error ? -1 : 0;
}

/* Without a row that can be shown, what other processes gathered belongs to rows that they
 * could not hand on, or to none. */
static void gpb_finish_without_rows(gpubench *bench)
{
    int has_json = bench->json_temporary && access(bench->json_temporary, F_OK) == 0;
    if (!has_json && !gpb_holds_rows(&bench->journal)) {
        if (bench->samples_temporary)
            (void)gpb_remove(bench, bench->samples_temporary);
        return;
    }
    if (bench->journal.error) { /* then they keep the names that they have, and are told of */
        bench->samples_lost = 1;
        bench->json_error = bench->journal.error;
    }
    if (has_json)
        (void)gpb_finish_json(bench);
    (void)gpb_finish_samples(bench);
}

/* A row goes to all of its files, or a signal finds it in none. Whoever reads a stream may
 * keep it waiting, and must be able to end it. */
static void gpb_keep(gpubench *bench, const gpb_live *live, const gpb_row *row)
{
    sigset_t before;
    int is_held = !bench->journal.is_stream;
    if (is_held)
        gpb_hold_signals(&before);
    if (!live->status)
        gpb_keep_samples(bench, live, row);
    gpb_keep_row(bench, row);
    gpb_keep_json(bench);
    if (is_held)
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static void gpb_report_live(gpubench *bench, gpb_live *live)
{
    gpubench_statistics statistics;
    double dependence = 0;
    gpb_row *row;
    memset(&statistics, 0, sizeof statistics);
    if (!live->status && gpb_describe_in_order(live->samples, live->count, &statistics,
                                               &dependence) != 0) {
        live->status = "failed";
        snprintf(live->reason, sizeof live->reason, "%s",
                 live->count > 0 ? "a sample is no finite number" : "no sample was taken");
    }
    if (!live->status && gpb_launched_nothing(bench, live, statistics.median)) {
        live->status = "failed";
        snprintf(live->reason, sizeof live->reason,
                 "launched nothing on %s: %.3f us as with nothing at all%s", gpb_stream_name(live),
                 statistics.median, gpb_stream_hint(live));
    }
    gpb_refuse_below_step(bench, live, statistics.median);
    gpb_refuse_discarded(bench, live, statistics.median);
    if (!live->status)
        gpb_flag_drift(live);
    if (live->status)
        gpb_describe_failure(bench, live);
    else
        gpb_add_warnings(bench, live, statistics.median);
    row = gpb_new_row(bench);
    gpb_fill_identity(bench, live, row);
    gpb_set_count(row, GPB_COLUMN_order, ++bench->order);
    gpb_fill_machine(bench, row);
    if (!live->status) {
        gpb_fill_times(bench, live, &statistics, row);
        gpb_fill_work(bench, live, statistics.median, row);
        gpb_fill_counters(bench, live, statistics.median, row);
        gpb_fill_state(live, row);
    }
    gpb_keep(bench, live, row);
}

/* ==== one group, mode by mode ============================================= */

static char *gpb_make_key(const gpubench_case *one)
{
    const char *parts[] = {one->name, one->variant, one->dtype, one->params};
    size_t bytes = 1, i;
    char *key;
    for (i = 0; i < GPB_COUNT_OF(parts); i++)
        bytes += parts[i] ? strlen(parts[i]) + 1 : 0;
    key = (char *)gpb_must(calloc(bytes, 1));
    for (i = 0; i < GPB_COUNT_OF(parts); i++)
        if (parts[i] && *parts[i]) {
            if (*key)
                strcat(key, " ");
            strcat(key, parts[i]);
        }
    return key;
}

/* What tells a row of one program's from another: the case, the mode, the run. */
static char *gpb_row_key(const gpubench_case *one, const char *mode, const char *run)
{
    char *key = gpb_make_key(one), *whole;
    size_t bytes = strlen(key) + strlen(mode) + strlen(run) + 3;
    whole = (char *)gpb_must(malloc(bytes));
    snprintf(whole, bytes, "%s\n%s\n%s", key, mode, run);
    free(key);
    return whole;
}

static void gpb_index_rows(gpubench *bench)
{
    for (; bench->rows_indexed < bench->row_count; bench->rows_indexed++) {
        const gpb_row *row = &bench->rows[bench->rows_indexed];
        gpubench_case one;
        char *key;
        memset(&one, 0, sizeof one);
        one.name = gpb_text(row, GPB_COLUMN_case);
        one.variant = gpb_text(row, GPB_COLUMN_variant);
        one.dtype = gpb_text(row, GPB_COLUMN_dtype);
        one.params = gpb_text(row, GPB_COLUMN_params);
        key = gpb_row_key(&one, gpb_text(row, GPB_COLUMN_mode),
                          gpb_text(row, GPB_COLUMN_run));
        gpb_index_add(&bench->row_keys, key, bench->rows_indexed);
        free(key);
    }
}

static const gpb_row *gpb_find_row(gpubench *bench, const gpb_item *item,
                                   unsigned mode)
{
    char run[32], *key;
    size_t found;
    gpb_index_rows(bench);
    snprintf(run, sizeof run, "%llu", (unsigned long long)bench->run);
    key = gpb_row_key(&item->one, gpb_mode_name(mode), run);
    found = gpb_index_find(&bench->row_keys, key);
    free(key);
    return found != GPB_NOWHERE ? &bench->rows[found] : NULL;
}

/* Without --mode: one that the case allows. On the host a function that says to touch
 * less than a page is one of nanoseconds, and sweeping caches in front of each run
 * would take a million times as long as it. */
static unsigned gpb_default_mode(const gpubench *bench, const gpubench_case *one)
{
    const unsigned allowed = one->modes ? one->modes : ~0u;
    int is_small = bench->backend->runs_on_host && one->bytes > 0 && one->bytes < 4096;
    unsigned mode = is_small ? GPUBENCH_HOT : GPUBENCH_COLD;
    if (!(allowed & mode))
        for (mode = GPUBENCH_COLD; mode < GPUBENCH_DIRTY && !(allowed & mode);)
            mode *= 2;
    return allowed & mode;
}

static unsigned gpb_modes_of(const gpubench *bench, const gpb_item *item)
{
    if (!bench->settings.mode)
        return gpb_default_mode(bench, &item->one);
    return (item->one.modes ? item->one.modes : ~0u) & bench->settings.modes;
}

/* Every step for all cases of the unit before the next step. */
static void gpb_drive(gpubench *bench, gpb_live *lives, size_t count)
{
    size_t i;
    for (i = 0; i < count && !bench->lost; i++)
        if (!lives[i].set_up)
            gpb_set_up(bench, &lives[i]);
    gpb_wait_for_calm(bench);
    for (i = 0; i < count && !bench->lost; i++)
        if (!lives[i].done)
            gpb_begin(bench, &lives[i]);
    gpb_soak_if_limited(bench, lives, count);
    for (i = 0; i < count && !bench->lost; i++)
        if (!lives[i].done)
            gpb_start_sampling(bench, &lives[i]);
    gpb_interleave(bench, lives, count);
    for (i = 0; i < count && !bench->lost; i++) {
        if (lives[i].status)
            continue;
        bench->current = &lives[i];
        if (bench->settings.energy)
            gpb_measure_energy(bench, &lives[i]);
        if (!lives[i].status)
            gpb_verify(bench, &lives[i], count > 1);
    }
}

/* A case of which nothing is known but how it was queued. */
static gpb_live gpb_new_live(const gpb_item *item)
{
    gpb_live live;
    memset(&live, 0, sizeof live);
    live.item = item;
    live.bytes = item->one.bytes;
    live.flops = item->one.flops;
    return live;
}

static int gpb_takes_part(gpubench *bench, const gpb_live *fresh, unsigned mode)
{
    return !fresh->crowded && (gpb_modes_of(bench, fresh->item) & mode) != 0 &&
           !gpb_find_row(bench, fresh->item, mode);
}

/* Do those that took part in this mode, and no others, in the next one too? Then their
 * setup holds: one may have taken memory for all. */
static int gpb_group_stays(gpubench *bench, const gpb_live *fresh, size_t count, unsigned mode)
{
    unsigned next;
    for (next = 2 * mode; next <= GPUBENCH_DIRTY; next *= 2) {
        size_t same = 0, i;
        int any = 0;
        for (i = 0; i < count; i++) {
            int takes_part = gpb_takes_part(bench, &fresh[i], next);
            any |= takes_part;
            same += takes_part == (fresh[i].mode == mode);
        }
        if (any)
            return same == count;
    }
    return 0;
}

/* A case's mode is over. stays: what setup made is the next mode's too. With the
 * context lost freeing would fail, or wait for a kernel that hangs, and only the
 * guilty one gets a row. */
static void gpb_end_mode(gpubench *bench, gpb_live *live, int stays, int in_group)
{
    int crowded = in_group && live->status && !strcmp(live->status, "oom");
    gpb_live *fresh = live->fresh;
    if (!bench->lost)
        gpb_tear_down(bench, live, !stays);
    if (!crowded && (!bench->lost || live->status))
        gpb_report_live(bench, live);
    if (!stays)
        *fresh = gpb_new_live(live->item);
    fresh->crowded = crowded;
    free(live->samples);
    free(live->guilty.text);
}

/* All members of a group that are to be measured in this mode. fresh has count of them. */
static void gpb_measure_mode(gpubench *bench, gpb_live *fresh, size_t count, unsigned mode)
{
    gpb_live *lives = (gpb_live *)gpb_must(calloc(count, sizeof *lives));
    size_t used = 0, i;
    int stays;
    for (i = 0; i < count; i++)
        if (gpb_takes_part(bench, &fresh[i], mode)) {
            fresh[i].mode = mode;
            lives[used] = fresh[i];
            lives[used++].fresh = &fresh[i];
        }
    gpb_drive(bench, lives, used);
    stays = !bench->lost && gpb_group_stays(bench, fresh, count, mode);
    for (i = 0; i < used; i++)
        stays &= lives[i].status == NULL; /* whatever went wrong, the next mode begins anew */
    for (i = 0; i < used; i++)
        gpb_end_mode(bench, &lives[i], stays, used > 1);
    free(lives);
}

/* Measures the items of one group; one that found no memory beside the others
 * is tried again alone. */
static void gpb_measure_unit(gpubench *bench, const gpb_item *items, size_t count)
{
    gpb_live *fresh = (gpb_live *)gpb_must(calloc(count, sizeof *fresh));
    unsigned mode;
    size_t i;
    for (i = 0; i < count; i++)
        fresh[i] = gpb_new_live(&items[i]);
    for (mode = GPUBENCH_COLD; mode <= GPUBENCH_DIRTY; mode *= 2)
        if (!bench->lost && (bench->settings.modes & mode))
            gpb_measure_mode(bench, fresh, count, mode);
    for (i = 0; i < count && !bench->lost; i++)
        if (fresh[i].crowded)
            gpb_measure_unit(bench, fresh[i].item, 1);
    free(fresh);
}

/* One execution of each case and nothing else, for a profiler to look at. */
static void gpb_profile(gpubench *bench, const gpb_item *item)
{
    gpb_live live = gpb_new_live(item);
    double us;
    int code;
    live.mode = GPUBENCH_COLD;
    live.batch = 1;
    live.ungated = 1;
    gpb_set_up(bench, &live);
    if (!live.done && (code = bench->backend->sample(bench, &live, &us)) != 0)
        gpb_blame(bench, &live, code, "run");
    if (!live.done)
        gpb_verify(bench, &live, 0);
    if (!bench->lost)
        gpb_tear_down(bench, &live, 1);
    if (live.status)
        gpb_describe_failure(bench, &live);
}

/* The smallest difference between two of the sorted times. */
static void gpb_note_clock_step(gpubench *bench, const double *sorted, size_t count)
{
    size_t i;
    for (i = 1; i < count; i++) {
        double step = sorted[i] - sorted[i - 1];
        if (step > 0.0005 && (bench->clock_step_us == 0 || step < bench->clock_step_us))
            bench->clock_step_us = step;
    }
}

/* Samples of a case that always works. 0 or a code. */
static int gpb_sample_known(gpubench *bench, gpb_live *live, double *median_us)
{
    const gpb_backend *backend = bench->backend;
    const size_t wanted = live->mode == GPUBENCH_HOT ? 40 : backend->calibration_samples;
    const size_t discarded = wanted / 4;
    gpubench_statistics statistics;
    double us;
    size_t i;
    int code = backend->begin(bench, live);
    if (live->mode == GPUBENCH_HOT)
        live->batch = backend->most_batch > 0 ? backend->most_batch : 256;
    for (i = 0; i < wanted + discarded && code == 0; i++) {
        code = backend->sample(bench, live, &us);
        if (code == 0 && i >= discarded)
            gpb_keep_sample(live, us / (double)live->batch);
    }
    if (code == 0) {
        gpubench_describe(live->samples, live->count, &statistics);
        *median_us = statistics.median;
        if (live->mode == GPUBENCH_COLD)
            gpb_note_clock_step(bench, live->samples, live->count);
    }
    bench->backend->end(live);
    free(live->samples);
    return code;
}

/* What the method costs when there is nothing, or nearly nothing, to measure. */
static int gpb_calibrate(gpubench *bench, unsigned mode, int (*run)(void *, gpubench_stream),
                         double *median_us)
{
    gpb_item item;
    gpb_live live;
    int code;
    memset(&item, 0, sizeof item);
    memset(&live, 0, sizeof live);
    item.one.run = run;
    item.one.context = bench->device_state;
    item.key = (char *)(uintptr_t)"overhead";
    live.item = &item;
    live.mode = mode;
    live.batch = 1;
    bench->current = &live;
    bench->calibrating = 1;
    code = gpb_sample_known(bench, &live, median_us);
    bench->calibrating = 0;
    if (code != 0)
        gpb_message(bench, "cannot measure an empty launch: %s",
                    code > 0 ? bench->backend->error_string(code) : live.reason);
    bench->current = NULL;
    return code;
}

static int gpb_measure_overhead(gpubench *bench)
{
    unsigned mode;
    int code = 0;
    for (mode = GPUBENCH_COLD; mode <= GPUBENCH_DIRTY && code == 0; mode *= 2)
        if (bench->settings.modes & mode & ~bench->calibrated) {
            code = bench->backend->calibrate(bench, mode);
            bench->calibrated |= mode;
        }
    return code;
}

/* ==== further executions, watched ========================================= */

static gpubench *gpb_traced; /* whose case runs while its watcher looks on */

/* Whose sums' median is told of, unless so many take longer than a tenth of a second. */
enum { GPB_WATCHED = 9 };

/* In front of the case itself: begin when the device is idle, end when it is again. */
typedef struct gpb_tracing {
    gpubench *bench;
    const gpubench_case *one;
    unsigned mode; /* of the row that they are held against */
    void *graph;   /* what runs in its place, in mode graph */
    int ungated;   /* it waits for the device inside, which a gate would keep from ending */
    int rehearsal; /* its watcher is not told how it ended, but that it is to be forgotten */
    int status;    /* the worst that the watcher returned */
    int refused;   /* it cannot watch at all */
} gpb_tracing;

static int gpb_traced_reset(void *context, gpubench_stream stream)
{
    const gpubench_case *one = ((gpb_tracing *)context)->one;
    return one->reset(one->context, stream);
}

/* Behind a gate, as when it is timed: what watches makes each launch slower for the
 * host, and the device would wait for them. */
static int gpb_traced_work(const gpb_tracing *tracing, gpubench_stream stream)
{
    const gpubench_case *one = tracing->one;
    const gpb_backend *backend = tracing->bench->backend;
    int finished, code = tracing->ungated ? 0 : backend->hold(tracing->bench, stream);
    if (code == 0)
        code = tracing->graph ? backend->replay(tracing->graph, stream)
                              : one->run(one->context, stream);
    backend->let_go(tracing->bench);
    finished = backend->finish(tracing->bench);
    return code ? code : finished;
}

/* In mode hot the caches hold what a run leaves there, which nobody watched. */
static int gpb_traced_run(void *context, gpubench_stream stream)
{
    gpb_tracing *tracing = (gpb_tracing *)context;
    gpubench *bench = tracing->bench;
    const gpubench_case *one = tracing->one;
    int code = 0;
    if (tracing->mode == GPUBENCH_HOT) {
        code = one->run(one->context, stream);
        code = code ? code : bench->backend->finish(bench);
    }
    if (code != 0)
        return code;
    tracing->status = bench->watcher->begin(bench, one);
    if (tracing->status != 0) {
        tracing->refused = 1;
        return GPUBENCH_SKIPPED;
    }
    gpb_traced = bench;
    code = gpb_traced_work(tracing, stream);
    gpb_traced = NULL;
    tracing->status =
        bench->watcher->end(bench, one, tracing->rehearsal && !code ? GPUBENCH_SKIPPED : code);
    return code;
}

/* Once to load what a watcher adds to the case, then in earnest. 0 or a code. */
static int gpb_watch_executions(gpubench *bench, gpb_live *live, gpb_tracing *tracing)
{
    double us, start = 0;
    int i, code = bench->backend->sample(bench, live, &us);
    tracing->rehearsal = 0;
    for (i = 0; i < GPB_WATCHED && code == 0 && tracing->status == 0; i++) {
        if (i == 0)
            start = gpb_now_s();
        else if (gpb_now_s() - start > 0.1)
            break;
        code = bench->backend->sample(bench, live, &us);
    }
    return code;
}

/* The watcher stands in the case's place, and a graph of it in the tracing's. */
static int gpb_trace_set_up(gpubench *bench, gpb_live *live, gpb_tracing *tracing)
{
    const gpb_item *watched = live->item;
    gpb_item item = *live->item;
    int code;
    tracing->graph = live->graph;
    live->graph = NULL;
    item.one.context = tracing;
    item.one.run = gpb_traced_run;
    item.one.reset = item.one.reset ? gpb_traced_reset : NULL;
    live->item = &item;
    code = gpb_watch_executions(bench, live, tracing);
    live->item = watched;
    live->graph = tracing->graph;
    if (code != 0 && !tracing->refused)
        gpb_blame(bench, live, code, "run, watched");
    return tracing->status;
}

/* Caches, graph and clocks are what they are when the mode is timed: the caches swept in
 * front, in mode hot by what needs no kernel, as gpb_traced_run fills them again; the
 * clocks by the same warming up. One stream, as a timeline has it. */
static void gpb_trace_begin(gpubench *bench, gpb_live *live, unsigned mode)
{
    if (mode == GPUBENCH_GRAPH) {
        int code;
        live->mode = mode;
        live->begun = 1;
        code = bench->backend->begin(bench, live);
        if (code != 0)
            gpb_blame(bench, live, code, "first execution");
    }
    live->mode = mode == GPUBENCH_DIRTY || (mode == GPUBENCH_HOT && !bench->backend->runs_on_host)
                     ? GPUBENCH_DIRTY
                     : GPUBENCH_COLD;
    live->ungated = 1;
    live->streams = 1;
    if (!live->done)
        gpb_warm_up(bench, live);
}

static int gpb_trace_item(gpubench *bench, const gpb_item *item, const gpb_row *row, unsigned mode,
                          int *refused)
{
    gpb_live live = gpb_new_live(item);
    gpb_tracing tracing = {bench, &item->one, mode, NULL, 0, 1, 0, 0};
    int status = 0;
    tracing.ungated = strstr(gpb_text(row, GPB_COLUMN_flags), "ungated") != NULL;
    live.batch = 1;
    gpb_set_up(bench, &live);
    if (!live.done)
        gpb_trace_begin(bench, &live, mode);
    if (!live.done)
        status = gpb_trace_set_up(bench, &live, &tracing);
    if (!live.done && status == 0)
        status = bench->watcher->tell(bench, &item->one, gpb_mode_name(mode));
    *refused = tracing.refused;
    if (!bench->lost)
        gpb_tear_down(bench, &live, 1);
    if (live.status)
        gpb_message(bench, "%s: not traced: %s", item->key, live.reason);
    return live.status && status == 0 ? 1 : status;
}

/* How long a kernel that does nothing takes where there is one. */
static int gpb_trace_nothing(gpubench *bench, int *refused)
{
    gpb_item item;
    gpb_live live;
    gpb_tracing tracing = {bench, &item.one, GPUBENCH_COLD, NULL, 0, 1, 0, 0};
    int status;
    if (!bench->backend->run_empty)
        return 0;
    memset(&item, 0, sizeof item);
    item.one = gpubench_case_init("empty kernel", bench->backend->run_empty, bench->device_state);
    item.key = (char *)(uintptr_t)"empty kernel";
    live = gpb_new_live(&item);
    live.batch = 1;
    gpb_trace_begin(bench, &live, GPUBENCH_COLD);
    status = live.done ? 0 : gpb_trace_set_up(bench, &live, &tracing);
    if (!live.done && status == 0)
        status = bench->watcher->tell(bench, NULL, gpb_mode_name(GPUBENCH_COLD));
    *refused = tracing.refused;
    bench->current = NULL;
    return status;
}

/* The row that a case's executions are held against: cold if there is one. NULL: it was
 * not measured. */
static const gpb_row *gpb_row_to_watch(gpubench *bench, const gpb_item *item, unsigned *mode)
{
    for (*mode = GPUBENCH_COLD; *mode <= GPUBENCH_DIRTY; *mode *= 2) {
        const gpb_row *row = gpb_find_row(bench, item, *mode);
        if (row && !strcmp(gpb_text(row, GPB_COLUMN_status), "ok"))
            return row;
    }
    return NULL;
}

/* When all that is timed has been timed and written: what a tracer leaves in the
 * process disturbs nothing then, and a crash loses nothing. The exit status. */
static int gpb_trace_all(gpubench *bench)
{
    int worst = bench->watcher->open(bench), status, refused = 0;
    size_t i;
    if (worst != 0)
        return worst;
    worst = gpb_trace_nothing(bench, &refused);
    for (i = 0; i < bench->item_count && !bench->lost && !refused; i++) {
        unsigned mode;
        const gpb_row *row = gpb_row_to_watch(bench, &bench->items[i], &mode);
        status = row ? gpb_trace_item(bench, &bench->items[i], row, mode, &refused) : 0;
        worst = status > worst ? status : worst;
    }
    status = bench->watcher->close(bench);
    return status > worst ? status : worst;
}

/* ==== the table =========================================================== */

/* A row by what tells it from others, as one text: sorting many rows would fetch
 * each column of each again and again. */
typedef struct gpb_named {
    const gpb_row *row;
    char *names;        /* the variant last, which is all that a group's differ in */
    size_t group_bytes; /* in front of it */
} gpb_named;

/* One line of the table: a row, or all runs of a case. */
typedef struct gpb_line {
    const gpb_row *row; /* the first run's identity, the worst run's status */
    gpb_named name;
    double median_us, p95_us;
    double spread; /* fraction: the interval's width, or the range of the runs; negative: none */
    double gb_per_s, tflop_per_s, share;
    double counters[GPB_COUNTERS]; /* as the table's, the medians of the runs */
    unsigned has_counters;         /* a bit for each */
    size_t runs;
    int ok;      /* each of its runs */
    size_t rank; /* among the variants: which the program queued, or measured, first */
    const gpb_row *base; /* what factor is against; NULL: there is nothing to compare */
    double factor;       /* how many times as fast as base */
    const gpb_row *previous; /* the variant in front of it, where that is not base; or NULL */
    double step;             /* how many times as fast as previous */
    double key;          /* what --sort asks for */
    int unit, decimals;  /* of its times, the same in all its group */
} gpb_line;

/* All factors of one variant of a case, in one mode, against one other. */
typedef struct gpb_verdict {
    const gpb_row *row, *base; /* of the first pair, for the names */
    size_t pairs;
    double log2_sum, least, most;
} gpb_verdict;

/* What can stand in a line, in this order. */
enum {
    GPB_CELL_PCI, GPB_CELL_CASE, GPB_CELL_VARIANT, GPB_CELL_DTYPE, GPB_CELL_PARAMS, GPB_CELL_MODE,
    GPB_CELL_MEDIAN, GPB_CELL_SPREAD, GPB_CELL_FACTOR, GPB_CELL_BYTES, GPB_CELL_FLOPS,
    GPB_CELL_PEAK, GPB_CELL_COUNTERS, GPB_CELL_P95 = GPB_CELL_COUNTERS + GPB_COUNTERS,
    GPB_CELL_FLAGS, GPB_CELL_COUNT
};
static const int gpb_identity_columns[] = {GPB_COLUMN_pci, GPB_COLUMN_case, GPB_COLUMN_variant,
                                           GPB_COLUMN_dtype, GPB_COLUMN_params, GPB_COLUMN_mode};

enum { GPB_FLAGS_MOST = 768 };

/* A column for a counter. */
typedef struct gpb_counter_column {
    char name[40], head[48]; /* head: with the prefix of its unit */
    double scale;
} gpb_counter_column;

typedef struct gpb_table {
    gpb_counter_column counters[GPB_COUNTERS]; /* more names than that are in the file only */
    size_t counter_count;
    gpb_line *lines;
    size_t count;
    int widths[GPB_CELL_COUNT]; /* 0: no line has anything there */
    const char *bytes_head, *flops_head;
    double gb_scale, tflop_scale; /* from GB/s and TFLOP/s to the columns' units */
    int sections;                 /* what whole blocks share is a heading: lines are shorter */
    int many_runs, many_modes, many_devices;
    char common[GPB_FLAGS_MOST];  /* flags of all lines, which none repeats */
    gpb_verdict *verdicts;
    size_t verdict_count;
} gpb_table;

static int gpb_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Of texts of digits; those of one value, with more or fewer zeros in front, are equal. */
static int gpb_compare_digits(const char *a, const char *b)
{
    size_t width, other;
    a += strspn(a, "0"), b += strspn(b, "0");
    width = strspn(a, "0123456789"), other = strspn(b, "0123456789");
    return width == other ? strncmp(a, b, width) : width < other ? -1 : 1;
}

/* As strcmp, but whole numbers are ordered by value, so that t=512 stands in
 * front of t=1024. What follows a number and a point is its fraction. */
static int gpb_compare_natural(const char *a, const char *b)
{
    size_t at = 0;
    int order = 0;
    while (a[at] && a[at] == b[at])
        at++;
    if (a[at] == b[at])
        return 0;
    while (at > 0 && gpb_is_digit(a[at - 1])) /* to where the number begins */
        at--;
    if (gpb_is_digit(a[at]) && gpb_is_digit(b[at]) &&
        !(at > 1 && a[at - 1] == '.' && gpb_is_digit(a[at - 2])))
        order = gpb_compare_digits(a + at, b + at);
    return order ? order : strcmp(a, b);
}

static gpb_named gpb_name_row(const gpb_row *row)
{
    static const int columns[] = {GPB_COLUMN_case, GPB_COLUMN_params, GPB_COLUMN_dtype,
                                  GPB_COLUMN_mode, GPB_COLUMN_suite, GPB_COLUMN_backend,
                                  GPB_COLUMN_pci, GPB_COLUMN_uuid, GPB_COLUMN_variant};
    gpb_named named = {row, NULL, 0};
    size_t bytes = GPB_COUNT_OF(columns), used = 0, i;
    for (i = 0; i < GPB_COUNT_OF(columns); i++)
        bytes += strlen(gpb_text(row, columns[i]));
    named.names = (char *)gpb_must(malloc(bytes));
    for (i = 0; i < GPB_COUNT_OF(columns); i++) {
        size_t length = strlen(gpb_text(row, columns[i]));
        memcpy(named.names + used, gpb_text(row, columns[i]), length);
        named.group_bytes = used;
        used += length + 1;
        named.names[used - 1] = i + 1 < GPB_COUNT_OF(columns) ? '\001' : '\0';
    }
    return named;
}

/* Equal in all but the variant: what a factor compares. */
static int gpb_same_group(const gpb_named *a, const gpb_named *b)
{
    return a->group_bytes == b->group_bytes && !memcmp(a->names, b->names, a->group_bytes);
}

/* Runs of one case in the order in which they were measured. */
static int gpb_compare_rows(const void *left, const void *right)
{
    const gpb_named *a = (const gpb_named *)left, *b = (const gpb_named *)right;
    int order = gpb_compare_natural(a->names, b->names);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int gpb_compare_ranks(const void *left, const void *right)
{
    const gpb_line *a = (const gpb_line *)left, *b = (const gpb_line *)right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* By --sort; what is equal there stands in the order of the names. */
static int gpb_compare_lines(const void *left, const void *right)
{
    const gpb_line *a = (const gpb_line *)left, *b = (const gpb_line *)right;
    if (a->key < b->key || a->key > b->key)
        return a->key < b->key ? -1 : 1;
    if (gpb_same_group(&a->name, &b->name))
        return gpb_compare_ranks(left, right);
    return gpb_compare_natural(a->name.names, b->name.names);
}

static const int gpb_section_columns[] = {GPB_COLUMN_pci, GPB_COLUMN_case, GPB_COLUMN_dtype,
                                          GPB_COLUMN_mode};

/* By what a heading says. */
static int gpb_compare_headings(const gpb_line *a, const gpb_line *b)
{
    int order = 0;
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_section_columns) && order == 0; i++)
        order = gpb_compare_natural(gpb_text(a->row, gpb_section_columns[i]),
                                    gpb_text(b->row, gpb_section_columns[i]));
    return order;
}

static int gpb_compare_in_sections(const void *left, const void *right)
{
    int order = gpb_compare_headings((const gpb_line *)left, (const gpb_line *)right);
    return order ? order : gpb_compare_lines(left, right);
}

static int gpb_line_has_time(const gpb_line *line)
{
    return line->ok && line->median_us > 0;
}

/* Of the count runs of one case; values has room for as many. */
static double gpb_median_of_runs(const gpb_named *rows, size_t count, int column,
                                 double *values, gpubench_statistics *statistics)
{
    size_t used = 0, i;
    for (i = 0; i < count; i++)
        if (rows[i].row->fields[column])
            values[used++] = gpb_number(rows[i].row, column);
    memset(statistics, 0, sizeof *statistics);
    gpubench_describe(values, used, statistics);
    return statistics->median;
}

/* The median's interval as a fraction of it, or the range of several runs. One
 * sample has neither: 0 would read as the most precise of all. */
static double gpb_spread_of(const gpb_row *row, const gpubench_statistics *runs)
{
    double width = runs->max - runs->min;
    if (runs->count == 1)
        width = gpb_number(row, GPB_COLUMN_ci95_high_us) - gpb_number(row, GPB_COLUMN_ci95_low_us);
    if (!(runs->median > 0) || (runs->count == 1 && (!row->fields[GPB_COLUMN_ci95_high_us] ||
                                                     gpb_number(row, GPB_COLUMN_samples) == 1)))
        return -1;
    return width / runs->median;
}

static gpb_line gpb_summarize(const gpb_named *rows, size_t count,
                              double *values)
{
    gpubench_statistics statistics;
    gpb_line line;
    size_t i;
    memset(&line, 0, sizeof line);
    line.row = rows[0].row;
    line.name = rows[0];
    line.median_us =
        gpb_median_of_runs(rows, count, GPB_COLUMN_median_us, values, &statistics);
    line.runs = statistics.count;
    line.spread = gpb_spread_of(rows[0].row, &statistics);
    line.p95_us = gpb_median_of_runs(rows, count, GPB_COLUMN_p95_us, values, &statistics);
    line.gb_per_s =
        gpb_median_of_runs(rows, count, GPB_COLUMN_gb_per_s, values, &statistics);
    line.tflop_per_s =
        gpb_median_of_runs(rows, count, GPB_COLUMN_tflop_per_s, values, &statistics);
    line.share =
        gpb_median_of_runs(rows, count, GPB_COLUMN_share_of_peak, values, &statistics);
    line.ok = 1;
    for (i = 0; i < count; i++)
        if (strcmp(gpb_text(rows[i].row, GPB_COLUMN_status), "ok") != 0) {
            line.row = rows[i].row;
            line.ok = 0;
        }
    return line;
}

/* Where the program queued the case; of the rows of other processes only the
 * order in which they were measured is known. */
static size_t gpb_rank_of(const gpubench *bench, const gpb_row *row)
{
    gpubench_case one;
    size_t queued;
    char *key;
    if (bench->item_count == 0)
        return (size_t)(row - bench->rows);
    memset(&one, 0, sizeof one);
    one.name = gpb_text(row, GPB_COLUMN_case);
    one.variant = gpb_text(row, GPB_COLUMN_variant);
    one.dtype = gpb_text(row, GPB_COLUMN_dtype);
    one.params = gpb_text(row, GPB_COLUMN_params);
    key = gpb_make_key(&one);
    queued = gpb_index_find(&bench->item_keys, key);
    free(key);
    return queued != GPB_NOWHERE ? queued : (size_t)(row - bench->rows);
}

/* ---- units: those in which a number needs neither zeros in front nor many digits ---- */

static const char *const gpb_time_units[] = {"ns", "us", "ms", "s"};

/* How many decimals show so many significant digits of a value above 0, which
 * rounding to them may lift to the next power of ten. */
static int gpb_decimals(double value, int digits)
{
    int decimals = digits - 1;
    value *= digits < 4 ? 1.0005 : 1.00005;
    for (; value >= 10; value /= 10)
        decimals--;
    for (; value < 1 && decimals < 15; value *= 10)
        decimals++;
    return decimals > 0 ? decimals : 0;
}

/* With a point in any locale. text has room for capacity bytes. */
static void gpb_format_fixed(double value, int decimals, char *text, size_t capacity)
{
    snprintf(text, capacity, "%.*f", decimals, value);
    gpb_use_point(text);
}

static double gpb_in_unit(double us, int unit)
{
    static const double factors[] = {1e3, 1, 1e-3, 1e-6};
    return us * factors[unit];
}

/* The unit in which four digits of it stay below 1000. */
static int gpb_time_unit(double us)
{
    int unit = 0;
    while (unit < 3 && gpb_in_unit(us, unit) >= 999.95)
        unit++;
    return unit;
}

/* One unit, and as many decimals, for all times that are compared: those of
 * the fastest. */
static void gpb_choose_units(gpb_line *lines, size_t count)
{
    double fastest = 0;
    size_t i;
    for (i = 0; i < count; i++)
        if (gpb_line_has_time(&lines[i]) &&
            (fastest <= 0 || lines[i].median_us < fastest))
            fastest = lines[i].median_us;
    for (i = 0; i < count && fastest > 0; i++) {
        lines[i].unit = gpb_time_unit(fastest);
        lines[i].decimals = gpb_decimals(gpb_in_unit(fastest, lines[i].unit), 4);
    }
}

/* From a rate in the given unit (GB/s) to the unit that fits the largest one. */
static double gpb_rate_scale(double largest, int *thousands)
{
    double scale = 1;
    for (*thousands = 0; *thousands < 2 && largest > 0 && largest * scale < 0.9995; ++*thousands)
        scale *= 1e3;
    return scale;
}

/* ---- counters: a column for each name ---- */

/* 0, or -1: it has none of that name. */
static int gpb_read_counter(const gpb_row *row, const char *name, double *value)
{
    const char *at = gpb_text(row, GPB_COLUMN_counters);
    char found[40];
    while (gpb_next_counter(&at, found, value))
        if (!strcmp(found, name))
            return 0;
    return -1;
}

/* The names of all rows, in the order in which they come. */
static void gpb_find_counters(const gpubench *bench, gpb_table *table)
{
    char name[40];
    double value;
    size_t i, known;
    for (i = 0; i < bench->row_count; i++) {
        const char *at = gpb_text(&bench->rows[i], GPB_COLUMN_counters);
        /* The table is freed by whoever made it. NOLINTNEXTLINE(*-unix.Malloc) */
        while (gpb_next_counter(&at, name, &value)) {
            for (known = 0; known < table->counter_count; known++)
                if (!strcmp(table->counters[known].name, name))
                    break;
            if (known == table->counter_count && known < GPB_COUNTERS)
                strcpy(table->counters[table->counter_count++].name, name);
        }
    }
}

/* Of the count runs of one case; values has room for as many. */
static void gpb_summarize_counters(const gpb_table *table, const gpb_named *rows, size_t count,
                                   double *values, gpb_line *line)
{
    gpubench_statistics statistics;
    size_t i, run, used;
    for (i = 0; i < table->counter_count; i++) {
        for (run = used = 0; run < count; run++)
            used += gpb_read_counter(rows[run].row, table->counters[i].name, &values[used]) == 0;
        if (gpubench_describe(values, used, &statistics) != 0)
            continue;
        line->counters[i] = statistics.median;
        line->has_counters |= 1u << i;
    }
}

/* Rates in the unit that fits the largest; what was counted as it is. */
static void gpb_choose_counter_units(gpb_table *table)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i, line;
    for (i = 0; i < table->counter_count; i++) {
        gpb_counter_column *column = &table->counters[i];
        size_t length = strlen(column->name), thousands = 0;
        int is_rate = length > 2 && !strcmp(column->name + length - 2, "/s");
        double largest = 0;
        for (line = 0; line < table->count; line++)
            if (table->lines[line].has_counters >> i & 1u)
                largest = table->lines[line].counters[i] > largest ? table->lines[line].counters[i]
                                                                   : largest;
        for (column->scale = 1; is_rate && largest * column->scale >= 999.5 &&
                                thousands + 1 < GPB_COUNT_OF(prefixes); thousands++)
            column->scale /= 1e3;
        strcpy(column->head, prefixes[thousands]);
        strcat(column->head, column->name);
    }
}

static void gpb_choose_rates(gpb_table *table)
{
    static const char *const bytes[] = {"GB/s", "MB/s", "kB/s"};
    static const char *const flops[] = {"TFLOP/s", "GFLOP/s", "MFLOP/s"};
    double gb = 0, tflop = 0;
    int thousands;
    size_t i;
    for (i = 0; i < table->count; i++) {
        gb = table->lines[i].gb_per_s > gb ? table->lines[i].gb_per_s : gb;
        tflop = table->lines[i].tflop_per_s > tflop ? table->lines[i].tflop_per_s : tflop;
    }
    table->gb_scale = gpb_rate_scale(gb, &thousands);
    table->bytes_head = bytes[thousands];
    table->tflop_scale = gpb_rate_scale(tflop, &thousands);
    table->flops_head = flops[thousands];
}

/* ---- factors ---- */

/* Of a group's lines, in the order of their ranks. What they are held against is
 * the first variant that has a time: where the program's first one failed, the
 * next is a better guide than nothing, and says "1x". Variants are often queued as
 * the steps of one idea after the other: what each brings is seen against the one
 * in front of it. */
static void gpb_compare_variants(gpb_line *lines, size_t count)
{
    const gpb_line *base = NULL, *previous = NULL;
    size_t timed = 0, i;
    for (i = 0; i < count; i++)
        if (gpb_line_has_time(&lines[i]) && timed++ == 0)
            base = &lines[i];
    for (i = 0; i < count && timed > 1; i++) {
        if (!gpb_line_has_time(&lines[i]))
            continue;
        lines[i].base = base->row;
        lines[i].factor = base->median_us / lines[i].median_us;
        if (previous && previous != base) {
            lines[i].previous = previous->row;
            lines[i].step = previous->median_us / lines[i].median_us;
        }
        previous = &lines[i];
    }
}

/* log2 of a number above 0, bit by bit: squared, it passes 2 where the next bit
 * is set. The header must not make its users link libm. */
static double gpb_log2(double x)
{
    double whole = 0, bit = 0.5, fraction = 0;
    int i;
    for (; x >= 2; x /= 2)
        whole++;
    for (; x < 1; x *= 2)
        whole--;
    for (i = 0; i < 52; i++, bit /= 2) {
        x *= x;
        if (x >= 2) {
            x /= 2;
            fraction += bit;
        }
    }
    return whole + fraction;
}

/* The way back: the product of the roots of 2 whose bits are set. */
static double gpb_exp2(double x)
{
    double power = 1, root = 2, bit = 1;
    int i;
    for (; x >= 1; x--)
        power *= 2;
    for (; x < 0; x++)
        power /= 2;
    for (i = 0; i < 52; i++) {
        root = gpubench_sqrt(root);
        bit /= 2;
        if (x >= bit) {
            x -= bit;
            power *= root;
        }
    }
    return power;
}

/* Adds a factor of the row, against base, to those of its case, mode and variant. */
static void gpb_judge(gpb_table *table, gpb_index *index, const gpb_row *row,
                      const gpb_row *base, double factor)
{
    const char *parts[] = {gpb_text(row, GPB_COLUMN_case), gpb_text(row, GPB_COLUMN_mode),
                           gpb_text(row, GPB_COLUMN_variant), gpb_text(base, GPB_COLUMN_variant)};
    size_t bytes = 4 + strlen(parts[0]) + strlen(parts[1]) + strlen(parts[2]) + strlen(parts[3]);
    char *key = (char *)gpb_must(malloc(bytes));
    gpb_verdict *verdict;
    size_t found;
    snprintf(key, bytes, "%s\n%s\n%s\n%s", parts[0], parts[1], parts[2], parts[3]);
    found = gpb_index_find(index, key);
    if (found == GPB_NOWHERE) {
        found = table->verdict_count;
        table->verdicts =
            (gpb_verdict *)gpb_grow(table->verdicts, found, sizeof *table->verdicts);
        memset(&table->verdicts[found], 0, sizeof *table->verdicts);
        table->verdicts[found].row = row;
        table->verdicts[found].base = base;
        gpb_index_add(index, key, table->verdict_count++);
    }
    free(key);
    verdict = &table->verdicts[found];
    /* What the index knows is there. NOLINTNEXTLINE(*-core.NullDereference) */
    verdict->log2_sum += gpb_log2(factor);
    if (verdict->pairs == 0 || factor < verdict->least)
        verdict->least = factor;
    if (factor > verdict->most)
        verdict->most = factor;
    verdict->pairs++;
}

static void gpb_judge_all(gpb_table *table)
{
    gpb_index index;
    size_t i;
    memset(&index, 0, sizeof index);
    for (i = 0; i < table->count; i++) {
        const gpb_line *line = &table->lines[i];
        if (line->base && line->base != line->row)
            gpb_judge(table, &index, line->row, line->base, line->factor);
        if (line->previous)
            gpb_judge(table, &index, line->row, line->previous, line->step);
    }
    gpb_index_free(&index);
}

static void gpb_print_verdict(FILE *file, const gpb_verdict *verdict, int many_modes)
{
    const double numbers[] = {gpb_exp2(verdict->log2_sum / (double)verdict->pairs),
                              verdict->least, verdict->most};
    const char *runs_on = gpb_text(verdict->row, GPB_COLUMN_runs_on);
    char texts[3][48];
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(numbers); i++)
        gpb_format_fixed(numbers[i], gpb_decimals(numbers[i], 3), texts[i], sizeof texts[i]);
    gpb_put_plain(file, gpb_text(verdict->row, GPB_COLUMN_case));
    fputs(many_modes ? " " : "", file);
    gpb_put_plain(file, many_modes ? gpb_text(verdict->row, GPB_COLUMN_mode) : "");
    fputs(": ", file);
    gpb_put_plain(file, gpb_text(verdict->row, GPB_COLUMN_variant));
    if (runs_on[0]) {
        fputs(" (", file);
        gpb_put_plain(file, runs_on);
        putc(')', file);
    }
    fprintf(file, " is %s times as fast as ", texts[0]);
    gpb_put_plain(file, gpb_text(verdict->base, GPB_COLUMN_variant));
    if (verdict->pairs > 1)
        fprintf(file, ": geometric mean of %llu pairs, %s to %s",
                (unsigned long long)verdict->pairs, texts[1], texts[2]);
    putc('\n', file);
}

/* For each variant of each case a sentence against the first, and one against the one
 * in front of it where that is another; a program with hundreds of them is
 * read elsewhere. */
static void gpb_print_verdicts(FILE *file, const gpb_table *table)
{
    enum { MOST_SENTENCES = 80 };
    size_t i;
    if (table->verdict_count > 0)
        putc('\n', file);
    for (i = 0; i < table->verdict_count && i < MOST_SENTENCES; i++)
        gpb_print_verdict(file, &table->verdicts[i], table->many_modes);
    if (table->verdict_count > MOST_SENTENCES)
        fprintf(file, "and %llu more\n",
                (unsigned long long)(table->verdict_count - MOST_SENTENCES));
}

/* ---- flags: those that warn, and those of all lines once ---- */

static int gpb_has_word(const char *words, const char *word, size_t length)
{
    const char *at = words;
    while (*at) {
        size_t width = strcspn(at, " ");
        if (width == length && !strncmp(at, word, width))
            return 1;
        at += width + strspn(at + width, " ");
    }
    return 0;
}

/* Of words those that the other list has, or lacks, without why sampling
 * stopped: where that is worth knowing, "imprecise" says it. */
static void gpb_select_words(const char *words, const char *others, int wanted, char *text)
{
    size_t used = 0;
    while (*words) {
        size_t width = strcspn(words, " ");
        if (strncmp(words, "stop=", 5) && gpb_has_word(others, words, width) == wanted &&
            used + width + 2 < GPB_FLAGS_MOST) {
            if (used > 0)
                text[used++] = ' ';
            memcpy(text + used, words, width);
            used += width;
        }
        words += width + strspn(words + width, " ");
    }
    text[used] = '\0';
}

/* Two lines say it as fast as a third one would. */
static void gpb_find_common_flags(gpb_table *table)
{
    char before[GPB_FLAGS_MOST];
    size_t i, used = 0;
    for (i = 0; i < table->count; i++) {
        const char *flags = gpb_text(table->lines[i].row, GPB_COLUMN_flags);
        if (!table->lines[i].ok)
            continue;
        memcpy(before, table->common, sizeof before);
        gpb_select_words(used++ ? before : flags, flags, 1, table->common);
    }
    if (used < 3)
        table->common[0] = '\0';
}

/* ---- lines ---- */

static void gpb_format_time(const gpb_line *line, double us, char *text, size_t capacity)
{
    char number[400];
    gpb_format_fixed(gpb_in_unit(us, line->unit), line->decimals, number, sizeof number);
    snprintf(text, capacity, "%s %-2s", number, gpb_time_units[line->unit]);
}

static void gpb_format_part(double part, const char *unit, int most_decimals, char *text)
{
    int decimals = part > 0 ? gpb_decimals(part, 3) : 2;
    gpb_format_fixed(part, decimals < most_decimals ? decimals : most_decimals, text, 64);
    strcat(text, unit);
}

/* Whole numbers as they are, others with three digits. */
static void gpb_format_counter(double value, char *text)
{
    double magnitude = value < 0 ? -value : value;
    text[0] = '-';
    if (magnitude >= 1e15)
        snprintf(text + 1, 60, "%.3g", magnitude);
    else if (magnitude - (double)(uint64_t)magnitude == 0)
        snprintf(text + 1, 60, "%.0f", magnitude);
    else
        gpb_format_part(magnitude, "", 15, text + 1);
    gpb_use_point(text);
    if (!(value < 0))
        memmove(text, text + 1, strlen(text));
}

/* A measured number; "" where there is none. */
static void gpb_measure_text(const gpb_table *table, const gpb_line *line, int cell, char *text)
{
    text[0] = '\0';
    if (cell == GPB_CELL_P95)
        gpb_format_time(line, line->p95_us, text, GPB_FLAGS_MOST);
    else if (cell == GPB_CELL_SPREAD && line->spread >= 0)
        gpb_format_part(100 * line->spread, "%", 2, text);
    else if (cell == GPB_CELL_FACTOR && line->base == line->row)
        strcpy(text, "1x");
    else if (cell == GPB_CELL_FACTOR && line->base)
        gpb_format_part(line->factor, "x", 15, text);
    else if (cell == GPB_CELL_BYTES && line->gb_per_s > 0)
        gpb_format_part(line->gb_per_s * table->gb_scale, "", 15, text);
    else if (cell == GPB_CELL_FLOPS && line->tflop_per_s > 0)
        gpb_format_part(line->tflop_per_s * table->tflop_scale, "", 15, text);
    else if (cell == GPB_CELL_PEAK && line->share > 0)
        gpb_format_part(100 * line->share, "%", 15, text);
    else if (cell >= GPB_CELL_COUNTERS && cell < GPB_CELL_P95 &&
             (line->has_counters >> (cell - GPB_CELL_COUNTERS) & 1u))
        gpb_format_counter(line->counters[cell - GPB_CELL_COUNTERS] *
                           table->counters[cell - GPB_CELL_COUNTERS].scale, text);
}

/* What stands in a line's cell; room holds GPB_FLAGS_MOST bytes. */
static const char *gpb_cell(const gpb_table *table, const gpb_line *line, int cell, char *room)
{
    if (cell < GPB_CELL_MEDIAN)
        return gpb_text(line->row, gpb_identity_columns[cell]);
    if (cell == GPB_CELL_FLAGS) {
        gpb_select_words(gpb_text(line->row, GPB_COLUMN_flags), line->ok ? table->common : "", 0,
                         room);
        return room;
    }
    if (cell == GPB_CELL_MEDIAN && !line->ok)
        return gpb_text(line->row, GPB_COLUMN_status);
    if (cell == GPB_CELL_MEDIAN)
        gpb_format_time(line, line->median_us, room, GPB_FLAGS_MOST);
    else if (line->ok)
        gpb_measure_text(table, line, cell, room);
    else
        return "";
    return room;
}

/* Whom the lines are compared with, if it is the same variant in all of them. */
static const char *gpb_base_name(const gpb_line *lines, size_t count)
{
    const char *name = NULL;
    size_t i;
    for (i = 0; i < count; i++) {
        const char *base = lines[i].base ? gpb_text(lines[i].base, GPB_COLUMN_variant) : name;
        if (name && strcmp(name, base) != 0)
            return "first";
        name = base;
    }
    return name && *name ? name : "first";
}

/* Above count lines; room holds GPB_FLAGS_MOST bytes. */
static const char *gpb_head(const gpb_table *table, const gpb_line *lines, size_t count, int cell,
                            char *room)
{
    if (cell >= GPB_CELL_COUNTERS && cell < GPB_CELL_P95)
        return table->counters[cell - GPB_CELL_COUNTERS].head;
    switch (cell) {
    case GPB_CELL_MEDIAN: return "median";
    case GPB_CELL_SPREAD: return table->many_runs ? "range" : "ci95";
    case GPB_CELL_BYTES: return table->bytes_head;
    case GPB_CELL_FLOPS: return table->flops_head;
    case GPB_CELL_PEAK: return "peak";
    case GPB_CELL_P95: return "p95";
    case GPB_CELL_FLAGS: return "flags";
    case GPB_CELL_FACTOR:
        snprintf(room, GPB_FLAGS_MOST, "vs %s", gpb_base_name(lines, count));
        return room;
    default: return gpb_column_names[gpb_identity_columns[cell]];
    }
}

static int gpb_is_heading(const gpb_table *table, int cell)
{
    return table->sections && (cell == GPB_CELL_PCI || cell == GPB_CELL_CASE ||
                               cell == GPB_CELL_DTYPE || cell == GPB_CELL_MODE);
}

/* The reason of a failure is longer than any screen: it widens nothing. */
static void gpb_measure_widths(gpb_table *table)
{
    char room[GPB_FLAGS_MOST];
    int cell;
    size_t i;
    for (cell = 0; cell < GPB_CELL_COUNT; cell++) {
        int head = (int)strlen(gpb_head(table, table->lines, table->count, cell, room)), *width;
        width = &table->widths[cell];
        *width = 0;
        if (gpb_is_heading(table, cell) || (cell == GPB_CELL_PCI && !table->many_devices))
            continue;
        for (i = 0; i < table->count; i++) {
            const gpb_line *line = &table->lines[i];
            int length = (int)strlen(gpb_cell(table, line, cell, room));
            if (cell == GPB_CELL_FLAGS && !line->ok)
                length = length > 0;
            if (length > *width)
                *width = length;
        }
        if (*width > 0 && *width < head)
            *width = head;
    }
}

/* Of the cells in front of end, with what stands between them. */
static int gpb_table_width(const gpb_table *table, int end)
{
    int cell, width = 0;
    for (cell = 0; cell < end; cell++)
        if (table->widths[cell] > 0)
            width += table->widths[cell] + (width > 0 ? 2 : 0);
    return width;
}

/* An empty cell is a dash, for whoever counts the fields of a line; the flags,
 * at its end, are nothing then. */
static void gpb_print_cell(FILE *file, const gpb_table *table, int cell, const char *text)
{
    const int is_first = table->widths[cell] == gpb_table_width(table, cell + 1);
    const char *shown = *text ? text : "-";
    int blanks = table->widths[cell] - (int)strlen(shown);
    if (blanks < 0 || cell == GPB_CELL_FLAGS)
        blanks = 0;
    if (table->widths[cell] == 0 || (cell == GPB_CELL_FLAGS && !*text))
        return;
    fprintf(file, "%s%*s", is_first ? "" : "  ", cell < GPB_CELL_MEDIAN ? 0 : blanks, "");
    gpb_put_plain(file, shown);
    fprintf(file, "%*s", cell < GPB_CELL_MEDIAN ? blanks : 0, "");
}

static void gpb_print_line(FILE *file, const gpb_table *table, const gpb_line *line)
{
    char room[GPB_FLAGS_MOST];
    int cell;
    for (cell = 0; cell < GPB_CELL_COUNT; cell++)
        gpb_print_cell(file, table, cell, gpb_cell(table, line, cell, room));
    putc('\n', file);
}

/* Over the lines that it stands in front of. */
static void gpb_print_head(FILE *file, const gpb_table *table, const gpb_line *lines, size_t count)
{
    char room[GPB_FLAGS_MOST];
    const char *between = "";
    int cell;
    size_t i;
    if (table->sections) {
        putc('\n', file);
        for (i = 0; i < GPB_COUNT_OF(gpb_section_columns); i++) {
            const char *text = gpb_text(lines[0].row, gpb_section_columns[i]);
            if (!*text || (gpb_section_columns[i] == GPB_COLUMN_pci && !table->many_devices))
                continue;
            fputs(between, file);
            gpb_put_plain(file, text);
            between = " ";
        }
        putc('\n', file);
    }
    for (cell = 0; cell < GPB_CELL_COUNT; cell++)
        gpb_print_cell(file, table, cell, gpb_head(table, lines, count, cell, room));
    putc('\n', file);
}

static size_t gpb_count_sections(const gpb_table *table)
{
    size_t sections = 1, i;
    for (i = 1; i < table->count; i++)
        sections += gpb_compare_headings(&table->lines[i - 1], &table->lines[i]) != 0;
    return sections;
}

/* On a terminal too narrow for whole lines, what many lines share becomes a
 * heading, and then the p95 goes, which the CSV has. */
static void gpb_fit_table(gpb_table *table, int columns)
{
    gpb_measure_widths(table);
    if (columns == 0 || gpb_table_width(table, GPB_CELL_COUNT) <= columns)
        return;
    qsort(table->lines, table->count, sizeof *table->lines, gpb_compare_in_sections);
    table->sections = 3 * gpb_count_sections(table) <= table->count;
    if (!table->sections)
        qsort(table->lines, table->count, sizeof *table->lines, gpb_compare_lines);
    gpb_measure_widths(table);
    if (gpb_table_width(table, GPB_CELL_COUNT) > columns)
        table->widths[GPB_CELL_P95] = 0;
}

/* A line for all runs of each case; groups side by side. */
static void gpb_gather_lines(const gpubench *bench, gpb_table *table)
{
    size_t rows = bench->row_count, first, end, i;
    double *values = (double *)gpb_must(malloc((rows + 1) * sizeof *values));
    gpb_named *sorted = (gpb_named *)gpb_must(malloc((rows + 1) * sizeof *sorted));
    table->lines = (gpb_line *)gpb_must(malloc((rows + 1) * sizeof *table->lines));
    for (i = 0; i < rows; i++)
        sorted[i] = gpb_name_row(&bench->rows[i]);
    qsort(sorted, rows, sizeof *sorted, gpb_compare_rows);
    gpb_find_counters(bench, table);
    for (first = 0; first < rows; first = end) {
        for (end = first + 1; end < rows; end++)
            if (strcmp(sorted[first].names, sorted[end].names) != 0)
                break;
        table->lines[table->count] = gpb_summarize(sorted + first, end - first, values);
        gpb_summarize_counters(table, sorted + first, end - first, values,
                               &table->lines[table->count]);
        table->lines[table->count++].rank = gpb_rank_of(bench, sorted[first].row);
        for (i = first + 1; i < end; i++)
            free(sorted[i].names); /* the first one's are the line's now */
    }
    free(sorted);
    free(values);
}

static void gpb_free_table(gpb_table *table)
{
    size_t i;
    for (i = 0; i < table->count; i++)
        free(table->lines[i].name.names);
    free(table->lines);
    free(table->verdicts);
}

static void gpb_work_on_groups(gpb_table *table)
{
    gpb_line *lines = table->lines;
    size_t first, end;
    for (first = 0; first < table->count; first = end) {
        for (end = first + 1; end < table->count; end++)
            if (!gpb_same_group(&lines[first].name, &lines[end].name))
                break;
        qsort(lines + first, end - first, sizeof *lines, gpb_compare_ranks);
        gpb_compare_variants(lines + first, end - first);
        gpb_choose_units(lines + first, end - first);
    }
}

/* What has no time or no factor comes last. */
static void gpb_sort_lines(gpb_table *table, const char *by)
{
    size_t i;
    for (i = 0; i < table->count && strcmp(by, "name") != 0; i++) {
        gpb_line *line = &table->lines[i];
        if (!strcmp(by, "time"))
            line->key = gpb_line_has_time(line) ? line->median_us : 1e300;
        else if (!strcmp(by, "factor"))
            line->key = line->base ? -line->factor : 0;
        else
            line->key = (double)line->rank;
    }
    qsort(table->lines, table->count, sizeof *table->lines, gpb_compare_lines);
}

static void gpb_note_differences(gpb_table *table)
{
    size_t i;
    for (i = 1; i < table->count; i++) {
        const gpb_row *a = table->lines[0].row, *b = table->lines[i].row;
        if (strcmp(gpb_text(a, GPB_COLUMN_mode), gpb_text(b, GPB_COLUMN_mode)))
            table->many_modes = 1;
        if (strcmp(gpb_text(a, GPB_COLUMN_pci), gpb_text(b, GPB_COLUMN_pci)))
            table->many_devices = 1;
    }
}

/* For so many columns; 0: as many as it takes. */
static void gpb_print_fitted(const gpubench *bench, FILE *file, int columns)
{
    gpb_table table;
    size_t first, end;
    memset(&table, 0, sizeof table);
    table.many_runs = bench->settings.runs > 1;
    gpb_gather_lines(bench, &table);
    gpb_work_on_groups(&table);
    gpb_judge_all(&table);
    gpb_note_differences(&table);
    gpb_choose_rates(&table);
    gpb_choose_counter_units(&table);
    gpb_find_common_flags(&table);
    gpb_sort_lines(&table, bench->settings.sort);
    gpb_fit_table(&table, columns);
    if (bench->row_count > 0) {
        gpb_put_plain(file, bench->suite);
        fputs(" on ", file);
        gpb_put_plain(file, gpb_text(&bench->rows[0], GPB_COLUMN_device));
        putc('\n', file);
    }
    for (first = 0; first < table.count; first = end) {
        end = table.sections ? first + 1 : table.count;
        while (end < table.count &&
               gpb_compare_headings(&table.lines[first], &table.lines[end]) == 0)
            end++;
        gpb_print_head(file, &table, table.lines + first, end - first);
        for (; first < end; first++)
            gpb_print_line(file, &table, &table.lines[first]);
    }
    if (*table.common) {
        fputs("\nflags of every row: ", file);
        gpb_put_plain(file, table.common);
        putc('\n', file);
    }
    gpb_print_verdicts(file, &table);
    gpb_free_table(&table);
}

/* Where there is no terminal each line is whole, for whatever reads it. */
static void gpb_print_table(const gpubench *bench, FILE *file)
{
    gpb_print_fitted(bench, file, gpb_columns_of(file));
}

/* ==== processes =========================================================== */

/* Reads the rows' file from this run's on, without moving where it is written next. */
static void gpb_import_rows(gpubench *bench)
{
    struct stat about;
    gpb_slot slot;
    size_t bytes = 0;
    char *text;
    FILE *file;
    if (pread(bench->rows_file, &slot, sizeof slot, 0) == (ssize_t)sizeof slot)
        bench->samples_lost |= slot.samples_lost;
    if (fstat(bench->rows_file, &about) != 0)
        gpubench_usage_error(bench, "cannot read the rows so far: %s", strerror(errno));
    else if (about.st_size > bench->rows_at)
        bytes = (size_t)(about.st_size - bench->rows_at);
    if (bytes == 0)
        return;
    text = (char *)gpb_must(malloc(bytes));
    if (pread(bench->rows_file, text, bytes, bench->rows_at) != (ssize_t)bytes ||
        !(file = fmemopen(text, bytes, "r"))) {
        gpubench_usage_error(bench, "cannot read the rows so far: %s", strerror(errno));
        free(text);
        return;
    }
    while (gpb_read_row(file, gpb_new_row(bench))) {
        const gpb_row *row = &bench->rows[bench->row_count - 1];
        bench->failed |= gpb_is_failure(gpb_text(row, GPB_COLUMN_status));
        bench->order += gpb_number(row, GPB_COLUMN_run) == (double)bench->run;
    }
    bench->row_count--;
    bench->rows_imported = bench->row_count;
    fclose(file);
    free(text);
}

/* Its own or, under --runs, those of the runs before. */
static int gpb_has_rows(const gpubench *bench)
{
    return bench->row_count > 0 || bench->rows_at > GPB_SLOT_BYTES;
}

/* 0, or -1 after a message. */
static int gpb_start_rows(gpubench *bench)
{
    size_t i;
    unsigned mode;
    bench->most_rows = 0;
    for (i = 0; i < bench->item_count; i++)
        for (mode = GPUBENCH_COLD; mode <= GPUBENCH_DIRTY; mode *= 2)
            bench->most_rows += (gpb_modes_of(bench, &bench->items[i]) & mode) != 0;
    if (bench->rows_file < 0)
        (void)gpb_make_rows_file(bench); /* without it no case is survived */
    gpb_guard_start(bench); /* before there is a file to settle */
    if (gpb_open_journal(bench) != 0) {
        gpb_guard_stop();
        return -1;
    }
    gpb_prepare_restart(bench, bench->is_child ? bench->run : 0);
    gpb_begin_progress(bench);
    return 0;
}

static void gpb_stop_rows(gpubench *bench)
{
    gpb_settle_journal(&bench->journal);
    if (gpb_guarded == bench)
        gpb_guard_stop();
}

/* A context that an error destroyed is lost for the process, so the process
 * replaces itself: the new one knows the rows so far and measures the rest. */
static void gpb_start_over(gpubench *bench)
{
    bench->failed = 1;
    if (bench->row_count == bench->rows_imported || bench->order > bench->most_rows) {
        gpb_message(bench, "the GPU does not recover: the other cases are not measured");
        return; /* no progress: starting over would never end */
    }
    gpb_message(bench, "the GPU context is lost; going on in a fresh process");
    fflush(NULL);
    gpb_replace_process(bench);
    gpb_message(bench, "cannot start afresh: %s",
                bench->restart.why_not ? bench->restart.why_not : strerror(errno));
}

static volatile sig_atomic_t gpb_interrupted; /* the signal that wants this to end */
static volatile sig_atomic_t gpb_interruptions;
static volatile pid_t gpb_child; /* the run that is under way; 0: none */

/* The child ends by the same signal; whoever asks twice does not want to wait. */
static void gpb_interrupt(int number)
{
    int kept = errno;
    gpb_interrupted = number;
    gpb_interruptions = gpb_interruptions + 1;
    if (gpb_child > 0)
        kill(gpb_child, gpb_interruptions > 1 ? SIGKILL : number);
    errno = kept;
}

static const int gpb_ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

/* From one disposition to another; what the program chose itself stays. */
static void gpb_change_interrupts(void (*from)(int), void (*to)(int))
{
    struct sigaction action;
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_ends); i++)
        if (sigaction(gpb_ends[i], NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
            action.sa_handler == from) {
            action.sa_handler = to;
            action.sa_flags = 0;
            sigaction(gpb_ends[i], &action, NULL);
        }
}

/* The forked child, until it is a fresh process. It dies with its parent: an
 * orphan would go on measuring for nobody. */
static void gpb_become_run(const gpubench *bench, pid_t parent)
{
    gpb_change_interrupts(gpb_interrupt, SIG_DFL);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() == parent)
        gpb_replace_process(bench);
    gpb_message(bench, "cannot start afresh: %s", strerror(errno));
    _exit(2);
}

/* Whoever started this process may have ignored SIGCHLD, and then nobody is told how a
 * child ended. Gives what is to be put back. */
static struct sigaction gpb_ask_for_children(void)
{
    struct sigaction before, asking;
    memset(&asking, 0, sizeof asking);
    asking.sa_handler = SIG_DFL;
    if (sigaction(SIGCHLD, NULL, &before) != 0)
        return asking;
    if ((!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN) ||
        (before.sa_flags & SA_NOCLDWAIT))
        sigaction(SIGCHLD, &asking, NULL);
    return before;
}

/* A process for the run; its status as waitpid gives it, or -1 after a message. */
static int gpb_wait_for_run(gpubench *bench, uint64_t run)
{
    struct sigaction of_children = gpb_ask_for_children();
    sigset_t all, before;
    int status = 0;
    pid_t parent = getpid(), child;
    gpb_prepare_restart(bench, run);
    gpb_write_slot(bench, GPB_SLOT_IDLE, NULL, "");
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* a signal must find the child's number */
    child = fork();
    if (child == 0)
        gpb_become_run(bench, parent);
    gpb_child = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        gpb_message(bench, "cannot start run %llu: %s", (unsigned long long)run,
                    strerror(errno));
    while (child > 0 && waitpid(child, &status, 0) != child)
        if (errno != EINTR) {
            gpb_message(bench, "run %llu: how it ended cannot be known: %s",
                        (unsigned long long)run, strerror(errno));
            child = -1;
        }
    sigaction(SIGCHLD, &of_children, NULL);
    gpb_child = 0;
    return child < 0 ? -1 : status;
}

/* A child that ended inside a case and could not say so: by _exit, by SIGKILL
 * (which is how Linux gets memory back), by a sanitizer. Its row is written for
 * it. 0: there was none. */
static int gpb_condemn_for_child(gpubench *bench, const gpb_slot *slot, int status)
{
    gpb_guilty guilty = {NULL, 0, 0};
    char why[64] = "";
    if (slot->state != GPB_SLOT_BUSY || slot->bytes == 0)
        return 0;
    guilty.bytes = slot->bytes;
    guilty.split = slot->split;
    guilty.text = (char *)gpb_must(malloc(slot->bytes + GPB_REASON_BYTES));
    if (pread(bench->rows_file, guilty.text, slot->bytes, sizeof *slot) != (ssize_t)slot->bytes) {
        free(guilty.text);
        return 0;
    }
    if (WIFSIGNALED(status))
        gpb_name_signal(why, sizeof why, WTERMSIG(status));
    else
        snprintf(why, sizeof why, "ended the process with status %d", WEXITSTATUS(status));
    gpb_condemn(bench, &guilty, "a case", slot->stage, why);
    free(guilty.text);
    return 1;
}

static int gpb_asks_to_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT ||
           number == SIGPIPE;
}

/* A run's processes read none of the rows before theirs, else each would take longer and
 * hold more than the one before it; only where --json's file was left half written they do,
 * and write it anew. */
static void gpb_begin_run(gpubench *bench)
{
    char tail[sizeof GPB_JSON_END] = "";
    const size_t wanted = strlen(GPB_JSON_END);
    struct stat about;
    int file = bench->json_temporary ? open(bench->json_temporary, O_RDONLY | O_CLOEXEC) : -1;
    bench->rows_at = GPB_SLOT_BYTES;
    bench->json_at = 0;
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > (off_t)wanted &&
        pread(file, tail, wanted, about.st_size - (off_t)wanted) == (ssize_t)wanted &&
        !strcmp(tail, GPB_JSON_END))
        bench->json_at = about.st_size - (off_t)wanted;
    if (file >= 0)
        close(file);
    if ((!bench->json_temporary || bench->json_at > 0) &&
        fstat(bench->rows_file, &about) == 0 && about.st_size > GPB_SLOT_BYTES)
        bench->rows_at = about.st_size;
}

/* One run in fresh processes, as many as its cases cost. Its exit status, or 1
 * if it was ended. */
static int gpb_spawn_run(gpubench *bench, uint64_t run)
{
    uint64_t attempt = 0;
    gpb_begin_run(bench);
    for (;;) {
        gpb_slot slot;
        int status = gpb_wait_for_run(bench, run);
        if (status == -1)
            return 2;
        if (pread(bench->rows_file, &slot, sizeof slot, 0) != (ssize_t)sizeof slot) {
            gpb_message(bench, "run %llu: how it ended cannot be read: %s",
                        (unsigned long long)run, strerror(errno));
            return 2;
        }
        if (slot.journal_error)
            bench->journal.error = slot.journal_error;
        bench->samples_lost |= slot.samples_lost;
        if (WIFEXITED(status) && slot.state == GPB_SLOT_ENDED)
            return WEXITSTATUS(status);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
            gpb_interrupted = SIGPIPE;
        if (!gpb_interrupted &&
            !(WIFSIGNALED(status) && gpb_asks_to_end(WTERMSIG(status))) &&
            attempt++ < slot.most_rows && gpb_condemn_for_child(bench, &slot, status))
            continue;
        if (WIFSIGNALED(status))
            gpb_message(bench, "run %llu: ended by signal %d", (unsigned long long)run,
                        WTERMSIG(status));
        else
            gpb_message(bench, "run %llu: ended early with status %d",
                        (unsigned long long)run, WEXITSTATUS(status));
        return WIFEXITED(status) && WEXITSTATUS(status) > 1 ? 2 : 1;
    }
}

static int gpb_write_rows(const gpubench *bench, FILE *file)
{
    size_t i;
    gpb_write_header(file);
    for (i = 0; i < bench->row_count; i++)
        gpb_write_row(file, &bench->rows[i], GPB_FILE_COLUMNS);
    return fflush(file) != 0 || ferror(file) ? -1 : 0;
}

/* Do the rows go where standard output goes? Then the table must not. */
static int gpb_rows_fill_stdout(const gpubench *bench)
{
    struct stat rows, output;
    if (bench->settings.json && !strcmp(bench->settings.json, "-"))
        return 1;
    if (!bench->settings.csv)
        return 0;
    if (gpb_csv_stream(bench->settings.csv) == STDOUT_FILENO)
        return 1;
    return bench->journal.file >= 0 && fstat(bench->journal.file, &rows) == 0 &&
           fstat(STDOUT_FILENO, &output) == 0 && rows.st_dev == output.st_dev &&
           rows.st_ino == output.st_ino;
}

/* The rows stand in their file already. What could not be written there, or
 * shown, is not lost: standard error gets all of it. */
static int gpb_report(gpubench *bench)
{
    FILE *table = gpb_rows_fill_stdout(bench) ? stderr : stdout;
    int lost = bench->journal.error != 0;
    if (bench->row_count == 0) { /* said before; an empty file would replace a good one */
        if (bench->journal.error)
            gpb_tell_journal_error(bench); /* it may hold rows that cannot be read back */
        gpb_finish_without_rows(bench);
        return 2;
    }
    gpb_clear_progress();
    if (!bench->settings.quiet) {
        gpb_print_table(bench, table);
        if (fflush(table) != 0 || ferror(table)) {
            gpb_message(bench, "the table: %s", strerror(errno));
            lost = 1;
        }
    }
    if (bench->journal.error)
        gpb_tell_journal_error(bench);
    lost |= gpb_finish_json(bench) != 0;
    if (lost)
        (void)gpb_write_rows(bench, stderr);
    lost |= gpb_finish_samples(bench) != 0;
    return lost ? 2 : bench->failed ? 1 : 0;
}

static void gpb_tell_device(gpubench *bench, const char *device)
{
    free(bench->device_told);
    bench->device_told = gpb_duplicate(device);
}

/* Each run on each device is a process, and has a number of its own. */
static uint64_t gpb_count_processes(const gpubench *bench)
{
    return bench->settings.runs * (bench->device_count > 0 ? bench->device_count : 1);
}

/* Which process of how many begins; the earlier ones took took_s. */
static void gpb_show_runs(const gpubench *bench, uint64_t run, double took_s)
{
    char text[32];
    if (!gpb_shows_progress(bench))
        return;
    gpb_format_time_left(run > 1 ? gpb_time_left(took_s, (double)(run - 1),
                                                 (double)gpb_count_processes(bench), 0, 0)
                                 : -1, text);
    gpb_clear_progress();
    fprintf(stderr, "[run %llu of %llu%s]", (unsigned long long)run,
            (unsigned long long)gpb_count_processes(bench), text);
    fflush(stderr);
    gpb_progress_stands = 1;
}

/* --runs N, or several devices: never returns. What some runs measured is kept though others could
 * not measure, or were interrupted; the status tells. */
static void gpb_run_processes(gpubench *bench)
{
    uint64_t run;
    double began_s;
    int worst = 0, status;
    if (bench->restart.why_not) {
        gpb_message(bench, "--runs: cannot start afresh: %s", bench->restart.why_not);
        exit(2);
    }
    if (gpb_make_rows_file(bench) != 0) {
        gpb_message(bench, "--runs: no place for the rows: %s (TMPDIR names one)",
                    strerror(errno));
        exit(2);
    }
    gpb_change_interrupts(SIG_DFL, gpb_interrupt); /* before there is a file to settle */
    if (gpb_open_journal(bench) != 0)
        exit(2);
    began_s = gpb_now_s();
    for (run = 1; run <= gpb_count_processes(bench) && worst < 2 && !gpb_interrupted; run++) {
        if (bench->device_count > 0)
            gpb_tell_device(bench, bench->devices[(run - 1) % bench->device_count]);
        gpb_show_runs(bench, run, gpb_now_s() - began_s);
        status = gpb_spawn_run(bench, run);
        worst = status > worst ? status : worst;
    }
    bench->rows_at = GPB_SLOT_BYTES; /* the rows of all runs */
    bench->json_at = 0;
    gpb_import_rows(bench);
    bench->journal.rows = bench->row_count;
    gpb_settle_journal(&bench->journal);
    status = gpb_report(bench);
    gpb_change_interrupts(gpb_interrupt, SIG_DFL);
    if (gpb_interrupted) {
        fflush(NULL);
        raise(gpb_interrupted); /* as it would have ended without --runs */
    }
    exit(worst > status ? worst : status);
}

/* ==== command line ======================================================== */

typedef struct gpb_flag_help {
    const char *name, *argument, *help;
} gpb_flag_help;

static const gpb_flag_help gpb_builtin[] = {
    {"--help", NULL, "print this and exit"},
    {"--list", NULL, "print the cases and exit; --json writes them as objects"},
    {"--filter", "REGEX", "only cases whose --list line matches (POSIX extended)"},
    {"--axis", "NAME=VALUES", "a sweep's axis, as 1,2,4 or 1..8 or 2^4..2^9; one --axis for each"},
    {"--device", "auto|cpu|all|LIST",
     "all GPUs, or numbers or UUIDs of some (auto: the first one)"},
    {"--mode", "LIST", "of cold,hot,graph,dirty; all: the first three (default: by the case)"},
    {"--precision", "PERCENT", "wanted width of the median's 95 % interval (default 0.5)"},
    {"--min-samples", "N", "samples of a case at least (default 30)"},
    {"--max-samples", "N", "samples of a case at most (default 100000)"},
    {"--max-time", "SECONDS", "time for a case's samples (default 1; 0.1 on the CPU)"},
    {"--warmup", "N", "warm-up executions at least (default 5; 1 on the CPU)"},
    {"--streams", "N", "of a GPU that samples take turns on, 1 to 28 (default 28)"},
    {"--runs", "N", "repeat in N fresh processes (default 1)"},
    {"--seed", "N", "for the inputs and the order of the cases (default 1)"},
    {"--campaign", "NAME", "what the CSV calls this sitting (default: its start)"},
    {"--csv", "FILE|-", "write each row there when it is measured; - is standard output"},
    {"--json", "FILE|-", "write the same rows there as an array of objects"},
    {"--samples", "FILE", "write every sample there as CSV, in the order of measuring"},
    {"--energy", NULL, "millijoules per execution, some 3 s more for each case"},
    {"--timeout", "SECONDS",
     "give up on a case's setup, run or verify after this long (default 60)"},
    {"--no-verify", NULL, "skip verify; rows that it would have judged are flagged unverified"},
    {"--sort", "KEY", "the table's order: name, time, factor or queued (default name)"},
    {"--quiet", NULL, "no table, no progress"},
    {"--profile", NULL, "execute each case once and measure nothing, for Nsight"},
    {"--kernels", NULL, "afterwards, the kernels in another execution of each case, as a table"},
    {"--kernels-csv", "FILE", "the same as CSV"},
    {"--memory", NULL, "afterwards, each case's memory by category, as a table"},
    {"--memory-csv", "FILE", "the same as CSV, a row for each part"},
    {"--trace", "FILE", "afterwards, one more execution of each case as a timeline (JSON)"}};

static int gpb_is_argument(const gpubench_option *option)
{
    return option->name[0] != '-';
}

/* Which standard option has this name of so many bytes, or -1. */
static int gpb_find_standard(const char *name, size_t bytes)
{
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_builtin); i++)
        if (strlen(gpb_builtin[i].name) == bytes && !strncmp(gpb_builtin[i].name, name, bytes))
            return (int)i;
    return -1;
}

/* own: what the program says is given if nothing is; NULL: it says nothing. */
static void gpb_print_option(const char *name, const char *argument, const char *help,
                             const char *own, const char *called)
{
    char left[64];
    snprintf(left, sizeof left, "%s %s", name, argument ? argument : "");
    printf("  %-26s %s", left, help ? help : "");
    if (own)
        printf(" (%s%s%s)", called, *own ? " " : "", own);
    putchar('\n');
}

static const char *gpb_own_default(const gpubench_option *options, size_t count, const char *name)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (!strcmp(options[i].name, name))
            return *options[i].value;
    return NULL;
}

static void gpb_print_usage(const gpubench *bench, const gpubench_option *options, size_t count)
{
    size_t i;
    printf("usage: %s [options]", bench->argv[0]);
    for (i = 0; i < count; i++)
        if (gpb_is_argument(&options[i]))
            printf(*options[i].value ? " [%s]" : " %s", options[i].name);
    printf("\n\nMeasures the cases of '%s'.\n\n", bench->suite);
}

/* Whether standard output, as on a full disk, did not take all that the option printed there,
 * which is told: a list that is cut would look like a whole one. */
static int gpb_end_output(const gpubench *bench, const char *option)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    gpb_message(bench, "%s: %s", option, strerror(errno));
    return 1;
}

/* Before the command line has changed the defaults. */
static void gpb_print_help(const gpubench *bench, const gpubench_option *options, size_t count)
{
    size_t i;
    gpb_print_usage(bench, options, count);
    for (i = 0; i < count; i++)
        if (gpb_find_standard(options[i].name, strlen(options[i].name)) < 0)
            gpb_print_option(options[i].name, options[i].argument, options[i].help,
                             *options[i].value, "default");
    for (i = 0; i < GPB_COUNT_OF(gpb_builtin); i++)
        gpb_print_option(gpb_builtin[i].name, gpb_builtin[i].argument, gpb_builtin[i].help,
                         gpb_own_default(options, count, gpb_builtin[i].name), "here");
    puts("\nA FILE that exists stays as it is until there are rows to replace it with: they\n"
         "gather in FILE.partial, which takes its name at the end, also when a signal ends the\n"
         "program. After SIGKILL, _exit or a power failure FILE.partial stays, with the rows so\n"
         "far; the next run names it and writes beside it. Those of --json gather, as a whole\n"
         "array after each row, in FILE.PID.json.tmp.");
    puts("\nexit status: 0 no case failed, 1 some case did, 2 bad usage or no way\n"
         "to measure");
}

static void gpb_take_count(gpubench *bench, const char *name, const char *text,
                           uint64_t least, uint64_t most, uint64_t *value)
{
    uint64_t parsed;
    if (!text)
        return;
    if (gpubench_parse_count(text, &parsed) != 0 || parsed < least || parsed > most)
        gpubench_usage_error(bench, "%s '%s': wants a whole number from %llu to %llu", name, text,
                             (unsigned long long)least, (unsigned long long)most);
    else
        *value = parsed;
}

static void gpb_take_number(gpubench *bench, const char *name, const char *text, double most,
                            double *value)
{
    double parsed;
    if (!text)
        return;
    if (gpubench_parse_number(text, &parsed) != 0 || !(parsed > 0) || parsed > most)
        gpubench_usage_error(bench, "%s '%s': wants a number above 0 and up to %g", name, text,
                             most);
    else
        *value = parsed;
}

static void gpb_take_modes(gpubench *bench, const char *text)
{
    static const unsigned modes[] = {GPUBENCH_COLD, GPUBENCH_HOT, GPUBENCH_GRAPH, GPUBENCH_DIRTY,
                                     0};
    const char *at = text;
    bench->settings.mode = text;
    if (!text)
        return; /* each case's own: see gpb_default_mode */
    for (bench->settings.modes = 0;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        unsigned before = bench->settings.modes;
        while (modes[i] && (strlen(gpb_mode_name(modes[i])) != length ||
                            strncmp(at, gpb_mode_name(modes[i]), length)))
            i++;
        bench->settings.modes |= length == 3 && !strncmp(at, "all", 3) ? 7u : modes[i];
        if (bench->settings.modes == before) {
            gpubench_usage_error(bench, "--mode '%s': wants cold, hot, graph, dirty or all, each "
                                 "once", text);
            return;
        }
        at += length;
        if (!*at)
            return;
    }
}

static void gpb_take_sort(gpubench *bench, const char *text)
{
    static const char *const orders[] = {"name", "time", "factor", "queued"};
    size_t i;
    if (!text)
        return;
    for (i = 0; i < GPB_COUNT_OF(orders); i++)
        if (!strcmp(text, orders[i])) {
            bench->settings.sort = text;
            return;
        }
    gpubench_usage_error(bench, "--sort '%s': wants name, time, factor or queued", text);
}

static void gpb_take_filter(gpubench *bench)
{
    char why[128];
    int code;
    if (!bench->settings.filter)
        return;
    code = regcomp(&bench->filter, bench->settings.filter, REG_EXTENDED | REG_NOSUB);
    if (code != 0) {
        regerror(code, &bench->filter, why, sizeof why);
        gpubench_usage_error(bench, "--filter '%s': %s", bench->settings.filter, why);
        return;
    }
    bench->has_filter = 1;
}

static void gpb_add_device(gpubench *bench, const char *device)
{
    bench->devices = (char **)gpb_grow(bench->devices, bench->device_count,
                                       sizeof *bench->devices);
    bench->devices[bench->device_count++] = gpb_duplicate(device);
}

/* Before any is measured: is each there, and each another one? */
static void gpb_check_devices(gpubench *bench)
{
#if GPUBENCH_CUDA
    uint64_t seen = 0;
    int count = 0;
    size_t i;
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        return; /* whoever is to measure says so */
    for (i = 0; i < bench->device_count && !bench->refused; i++) {
        int ordinal;
        bench->settings.device = bench->devices[i];
        ordinal = gpb_cuda_find_device(bench, count);
        if (ordinal < 0)
            bench->refused = 1;
        else if (ordinal < 64 && (seen >> ordinal & 1u))
            gpubench_usage_error(bench, "--device: %s is given twice", bench->devices[i]);
        seen |= ordinal >= 0 && ordinal < 64 ? (uint64_t)1 << ordinal : 0;
    }
#else
    (void)bench;
#endif
}

/* As many as CUDA shows; none, or one, is what auto is. */
static void gpb_add_all_devices(gpubench *bench)
{
    char number[24];
    int count = 0, i;
#if GPUBENCH_CUDA
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
#endif
    for (i = 0; i < count && count > 1; i++) {
        snprintf(number, sizeof number, "%d", i);
        gpb_add_device(bench, number);
    }
}

/* One of what commas separate. */
static void gpb_take_listed_device(gpubench *bench, const char *device, const char *text)
{
    if (!gpb_names_gpu(device))
        gpubench_usage_error(bench, "--device '%s': wants GPUs' numbers or UUIDs between the "
                             "commas", text);
    else if (!gpb_find_backend(device))
        gpubench_usage_error(bench, "--device '%s': this program was built without CUDA", text);
    else
        gpb_add_device(bench, device);
}

/* Several, unless this is the process of one of them. */
static void gpb_take_devices(gpubench *bench, const char *text)
{
    const char *told = getenv(GPB_ENV_DEVICE);
    char *copy = gpb_duplicate(told ? "" : text), *at = copy;
    if (told && !gpb_find_backend(told)) {
        gpubench_usage_error(bench, "%s='%s': no device of this program", GPB_ENV_DEVICE, told);
    } else if (told) {
        gpb_tell_device(bench, told);
        bench->settings.device = bench->device_told;
    } else if (!strcmp(text, "all") && !GPUBENCH_CUDA) {
        gpubench_usage_error(bench, "--device 'all': this program was built without CUDA, and "
                             "all GPUs are meant");
    } else if (!strcmp(text, "all")) {
        gpb_add_all_devices(bench);
    }
    while (!told && at && strcmp(text, "all") && !bench->refused) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        gpb_take_listed_device(bench, at, text);
        at = comma ? comma + 1 : NULL;
    }
    gpb_check_devices(bench);
    if (bench->device_count > 0)
        bench->settings.device = bench->devices[0];
    if (bench->device_count > 0 && bench->settings.profile)
        gpubench_usage_error(bench, "--device '%s': --profile looks at one GPU", text);
    free(copy);
}

static void gpb_take_device(gpubench *bench, const char *text)
{
    if (!text)
        return;
    if (!strcmp(text, "all") || strchr(text, ','))
        gpb_take_devices(bench, text);
    else if (gpb_find_backend(text))
        bench->settings.device = text;
    else if (gpb_names_gpu(text))
        gpubench_usage_error(bench, "--device '%s': this program was built without CUDA", text);
    else
        gpubench_usage_error(bench, "--device '%s': wants auto, cpu, all, or numbers or UUIDs of "
                             "GPUs", text);
}

/* Finds the option that argument names: its index, the program's own first,
 * or -1. *value is what stands behind '=', or NULL. */
static int gpb_find_option(const char *argument, const gpubench_option *options, size_t count,
                           const char **value)
{
    size_t i, length = strcspn(argument, "=");
    int standard = gpb_find_standard(argument, length);
    *value = argument[length] == '=' ? argument + length + 1 : NULL;
    for (i = 0; i < count && standard < 0; i++)
        if (!gpb_is_argument(&options[i]) && strlen(options[i].name) == length &&
            !strncmp(options[i].name, argument, length))
            return (int)i;
    return standard < 0 ? -1 : (int)count + standard;
}

/* --axis may stand there for each axis. */
static void gpb_take_axis(gpubench *bench, const char *text)
{
    gpb_axis_given *given;
    /* --axis has a value, or was refused. NOLINTNEXTLINE(*-core.NonNullParamChecker) */
    size_t length = strcspn(text, "="), i;
    if (length == 0 || !text[length] || !text[length + 1]) {
        gpubench_usage_error(bench, "--axis '%s': wants NAME=VALUES", text);
        return;
    }
    for (i = 0; i < bench->axes_given_count; i++)
        if (bench->axes_given[i].name_bytes == length &&
            !strncmp(bench->axes_given[i].text, text, length))
            gpubench_usage_error(bench, "--axis '%s': %.*s is given twice", text, (int)length,
                                 text);
    bench->axes_given = (gpb_axis_given *)gpb_grow(bench->axes_given, bench->axes_given_count,
                                                   sizeof *bench->axes_given);
    given = &bench->axes_given[bench->axes_given_count++];
    given->text = text;
    given->name_bytes = length;
    given->used = 0;
}

static int gpb_is_repeated(const char *name)
{
    return strcspn(name, "=") == strlen("--axis") && !strncmp(name, "--axis", strlen("--axis"));
}

/* Can the program have another argument? */
static int gpb_has_room(const gpubench *bench, const gpubench_option *options, size_t count)
{
    size_t i, room = 0;
    for (i = 0; i < count; i++)
        if (gpb_is_argument(&options[i])) {
            room++;
            if (strstr(options[i].name, "..."))
                return 1;
        }
    return bench->argument_count < room;
}

static void gpb_keep_argument(gpubench *bench, const char *text, const gpubench_option *options,
                              size_t count)
{
    if (!gpb_has_room(bench, options, count)) {
        gpubench_usage_error(bench, bench->argument_count > 0
                                        ? "%s: one argument too many (--help lists them)"
                                        : "%s: unknown option (--help lists them)", text);
        return;
    }
    bench->arguments = (const char **)gpb_grow(bench->arguments, bench->argument_count,
                                               sizeof *bench->arguments);
    bench->arguments[bench->argument_count++] = text;
}

/* An option as it stands there; value: what stands behind its '='; next: the argument
 * behind it, or NULL. given NULL: it may be there for each axis. 1: it takes next. */
static int gpb_keep_option(gpubench *bench, const char *name, int takes, const char *value,
                           const char *next, const char **given)
{
    if (given && *given)
        gpubench_usage_error(bench, "%s: given twice", name);
    else if (!takes && value)
        gpubench_usage_error(bench, "%s: takes no value", name);
    else if (takes && !value && !next)
        gpubench_usage_error(bench, "%s: wants a value", name);
    else if (!given)
        gpb_take_axis(bench, value ? value : next);
    else
        *given = !takes ? "" : value ? value : next;
    return takes && !value;
}

/* Sorts the command line into given[], one text per option: "" for an option
 * without a value, NULL for one that is not there; and what is no option into
 * the arguments. */
static void gpb_read_arguments(gpubench *bench, int argc, const gpubench_option *options,
                               size_t count, const char **given)
{
    int i, only_arguments = 0;
    for (i = 1; i < argc && !bench->refused; i++) {
        const char *name = bench->argv[i], *value = NULL;
        int option = only_arguments ? -1 : gpb_find_option(name, options, count, &value);
        int standard = option - (int)count;
        if (!only_arguments && !strcmp(name, "--"))
            only_arguments = 1;
        else if (option < 0 && (only_arguments || name[0] != '-' || !name[1]))
            gpb_keep_argument(bench, name, options, count);
        else if (option < 0)
            gpubench_usage_error(bench, "%s: unknown option (--help lists them)", name);
        else
            i += gpb_keep_option(bench, name,
                                 standard < 0 ? options[option].argument != NULL
                                              : gpb_builtin[standard].argument != NULL,
                                 value, i + 1 < argc ? bench->argv[i + 1] : NULL,
                                 gpb_is_repeated(name) ? NULL : &given[option]);
    }
}

/* Gives the program its values, and a standard option the program's default. */
static void gpb_give_values(gpubench *bench, const gpubench_option *options, size_t count,
                            const char **given)
{
    size_t i, arguments = 0;
    for (i = 0; i < count; i++) {
        const char *name = options[i].name, **value = options[i].value;
        int standard = gpb_find_standard(name, strlen(name));
        const char **place = &given[standard < 0 ? i : count + (size_t)standard];
        if (gpb_is_argument(&options[i])) {
            if (arguments < bench->argument_count)
                *value = bench->arguments[arguments++];
            else if (!*value)
                gpubench_usage_error(bench, "%s is missing (--help says what it is)", name);
            continue;
        }
        if (*place)
            *value = *place;
        else if (gpb_is_repeated(name))
            gpubench_usage_error(bench, "--axis has no default: the axes of a sweep have theirs");
        else if (standard >= 0)
            *place = *value;
    }
}

const char *gpubench_argument(const gpubench *bench, size_t number)
{
    return number < bench->argument_count ? bench->arguments[number] : NULL;
}

static void gpb_default_settings(gpb_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->device = "auto";
    settings->sort = "name";
    settings->precision = 0.5;
    settings->timeout_s = 60;
    settings->min_samples = 30;
    settings->max_samples = 100000;
    settings->streams = GPB_STREAMS;
    settings->runs = 1;
    settings->seed = 1;
}

static const char *gpb_given(const char **given, const char *name)
{
    size_t i;
    for (i = 0; i < GPB_COUNT_OF(gpb_builtin); i++)
        if (!strcmp(gpb_builtin[i].name, name))
            return given[i];
    return NULL;
}

static int gpb_wants_watching(const gpb_settings *settings)
{
    return settings->kernels || settings->kernels_csv || settings->memory ||
           settings->memory_csv || settings->trace;
}

/* The folder that a file is in, or would be, and its name there; NULL if the folder is none. */
static const char *gpb_find_folder(const char *path, struct stat *folder)
{
    const char *name = strrchr(path, '/');
    char text[PATH_MAX];
    if (!name)
        return stat(".", folder) == 0 ? path : NULL;
    snprintf(text, sizeof text, "%.*s", (int)(name + 1 - path), path);
    return (size_t)(name + 1 - path) < sizeof text && stat(text, folder) == 0 ? name + 1 : NULL;
}

static int gpb_is_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* However they are written. Pipes and devices take what several write. */
static int gpb_name_one_file(const char *one, const char *other)
{
    struct stat first, second;
    const char *name, *other_name;
    int exists = stat(one, &first) == 0, other_exists = stat(other, &second) == 0;
    if (!strcmp(one, other))
        return 1;
    if (exists || other_exists)
        return exists && other_exists && S_ISREG(first.st_mode) &&
               gpb_is_same_file(&first, &second);
    name = gpb_find_folder(one, &first);
    other_name = gpb_find_folder(other, &second);
    return name && other_name && !strcmp(name, other_name) && gpb_is_same_file(&first, &second);
}

/* Two outputs that are one file would leave neither. */
static void gpb_check_outputs(gpubench *bench)
{
    const gpb_settings *settings = &bench->settings;
    const char *csv = settings->csv, *json = settings->json;
    const char *const outputs[][2] = {{"--csv", csv},
                                      {"--samples", settings->samples},
                                      {"--json", json},
                                      {"--kernels-csv", settings->kernels_csv},
                                      {"--memory-csv", settings->memory_csv},
                                      {"--trace", settings->trace}};
    size_t i, j;
    for (i = 0; i < GPB_COUNT_OF(outputs); i++) {
        if (settings->profile && outputs[i][1])
            gpubench_usage_error(bench, "--profile measures nothing: it does not go with %s",
                                 outputs[i][0]);
        for (j = 0; j < i; j++)
            if (outputs[i][1] && outputs[j][1] &&
                gpb_name_one_file(outputs[i][1], outputs[j][1]))
                gpubench_usage_error(bench, "%s '%s': %s writes there", outputs[i][0],
                                     outputs[i][1], outputs[j][0]);
    }
    if (csv && json && strcmp(csv, json) && !strcmp(json, "-") &&
        gpb_csv_stream(csv) == STDOUT_FILENO)
        gpubench_usage_error(bench, "--json '%s': --csv writes there", json);
    if (settings->profile && (settings->kernels || settings->memory))
        gpubench_usage_error(bench, "--profile measures nothing: it does not go with %s",
                             settings->kernels ? "--kernels" : "--memory");
}

/* One of --min-samples and --max-samples moves the other's default along. */
static void gpb_order_samples(gpubench *bench, const char **given)
{
    gpb_settings *settings = &bench->settings;
    if (settings->max_samples >= settings->min_samples)
        return;
    if (gpb_given(given, "--min-samples") && gpb_given(given, "--max-samples"))
        gpubench_usage_error(bench, "--max-samples %llu is below --min-samples %llu",
                             (unsigned long long)settings->max_samples,
                             (unsigned long long)settings->min_samples);
    if (gpb_given(given, "--max-samples"))
        settings->min_samples = settings->max_samples;
    else
        settings->max_samples = settings->min_samples;
}

static void gpb_take_settings(gpubench *bench, const char **given)
{
    gpb_settings *settings = &bench->settings;
    settings->list = gpb_given(given, "--list") != NULL;
    settings->energy = gpb_given(given, "--energy") != NULL;
    settings->quiet = gpb_given(given, "--quiet") != NULL;
    settings->profile = gpb_given(given, "--profile") != NULL;
    settings->no_verify = gpb_given(given, "--no-verify") != NULL;
    settings->kernels = gpb_given(given, "--kernels") != NULL;
    settings->kernels_csv = gpb_given(given, "--kernels-csv");
    settings->memory = gpb_given(given, "--memory") != NULL;
    settings->memory_csv = gpb_given(given, "--memory-csv");
    settings->trace = gpb_given(given, "--trace");
    settings->filter = gpb_given(given, "--filter");
    settings->csv = gpb_given(given, "--csv");
    settings->samples = gpb_given(given, "--samples");
    settings->json = gpb_given(given, "--json");
    settings->campaign = gpb_given(given, "--campaign");
    if (settings->campaign && (!*settings->campaign || strlen(settings->campaign) > 63))
        gpubench_usage_error(bench, "--campaign '%s': wants 1 to 63 characters",
                             settings->campaign);
    gpb_take_device(bench, gpb_given(given, "--device"));
    settings->max_time_s = gpb_find_backend(settings->device)->max_time_s;
    settings->warmup = gpb_find_backend(settings->device)->warmup;
    gpb_take_modes(bench, gpb_given(given, "--mode"));
    gpb_take_sort(bench, gpb_given(given, "--sort"));
    gpb_take_number(bench, "--precision", gpb_given(given, "--precision"), 100,
                    &settings->precision);
    settings->precision /= 100;
    gpb_take_number(bench, "--max-time", gpb_given(given, "--max-time"), 86400,
                    &settings->max_time_s);
    gpb_take_number(bench, "--timeout", gpb_given(given, "--timeout"), 86400,
                    &settings->timeout_s);
    gpb_take_count(bench, "--min-samples", gpb_given(given, "--min-samples"), 1, 10000000,
                   &settings->min_samples);
    gpb_take_count(bench, "--max-samples", gpb_given(given, "--max-samples"), 1, 10000000,
                   &settings->max_samples);
    gpb_take_count(bench, "--warmup", gpb_given(given, "--warmup"), 0, 1000000,
                   &settings->warmup);
    gpb_take_count(bench, "--streams", gpb_given(given, "--streams"), 1,
                   GPB_STREAMS, &settings->streams);
    gpb_take_count(bench, "--runs", gpb_given(given, "--runs"), 1, 1000, &settings->runs);
    gpb_take_count(bench, "--seed", gpb_given(given, "--seed"), 0, UINT64_MAX,
                   &settings->seed);
    gpb_order_samples(bench, given);
    gpb_check_outputs(bench);
    gpb_take_filter(bench);
}

/* ==== sweeps ============================================================== */

static void gpb_queue(gpubench *bench, const gpubench_case *one, size_t group)
{
    gpb_item *item;
    char *key = gpb_make_key(one);
    if (!one->name || !*one->name || !one->run)
        gpubench_usage_error(bench, "a case needs a name and a run function");
    if (gpb_index_find(&bench->item_keys, key) != GPB_NOWHERE)
        gpubench_usage_error(bench, "the case '%s' stands there twice", key);
    if (bench->has_filter && regexec(&bench->filter, key, 0, NULL, 0) != 0) {
        bench->filtered_out++;
        free(key);
        return;
    }
    gpb_index_add(&bench->item_keys, key, bench->item_count);
    bench->items =
        (gpb_item *)gpb_grow(bench->items, bench->item_count, sizeof *bench->items);
    item = &bench->items[bench->item_count++];
    memset(item, 0, sizeof *item);
    item->one = *one;
    item->one.name = gpb_duplicate(one->name);
    item->one.variant = gpb_duplicate(one->variant);
    item->one.dtype = gpb_duplicate(one->dtype);
    item->one.params = gpb_duplicate(one->params);
    item->one.runs_on = one->runs_on ? gpb_duplicate(one->runs_on) : NULL;
    item->group = group;
    item->key = key;
}

/* The values of one axis. */
typedef struct gpb_axis {
    const char *name;
    char **values;
    size_t count;
    gpb_index known; /* so that none stands there twice */
} gpb_axis;

enum { GPB_SWEEP_MOST = 100000 };

/* NULL, or what is wrong. */
static const char *gpb_add_value(gpb_axis *axis, const char *value)
{
    if (!*value)
        return "wants a value between two commas";
    if (value[strcspn(value, " =\t\r\n")])
        return "wants values without blanks and '='";
    if (gpb_index_find(&axis->known, value) != GPB_NOWHERE)
        return "has a value twice";
    if (axis->count >= GPB_SWEEP_MOST)
        return "has more than 100000 values";
    gpb_index_add(&axis->known, value, axis->count);
    axis->values = (char **)gpb_grow(axis->values, axis->count, sizeof *axis->values);
    axis->values[axis->count++] = gpb_duplicate(value);
    return NULL;
}

/* Digits at *at, behind which it then stands. 0, or -1 if there are none or too many. */
static int gpb_read_digits(const char **at, uint64_t *number)
{
    char digits[24];
    size_t length = strspn(*at, "0123456789");
    if (length >= sizeof digits)
        return -1;
    memcpy(digits, *at, length);
    digits[length] = '\0';
    *at += length;
    return gpubench_parse_count(digits, number);
}

/* 64 or 2^6, with the base 2 then, else 0. */
static int gpb_read_size(const char **at, uint64_t *number, uint64_t *base)
{
    uint64_t power;
    *base = 0;
    if (gpb_read_digits(at, number) != 0)
        return -1;
    if (**at != '^')
        return 0;
    ++*at;
    *base = *number;
    if (gpb_read_digits(at, &power) != 0 || *base < 2)
        return -1;
    for (*number = 1; power > 0; power--) {
        if (*number > UINT64_MAX / *base)
            return -1;
        *number *= *base;
    }
    return 0;
}

/* What steps from one number to the next in a range, and which is the last. */
typedef struct gpb_range {
    uint64_t last, step;
    int is_factor;
} gpb_range;

/* Behind the two dots. 0, or -1 if it is none. */
static int gpb_read_range(const char *at, uint64_t first, uint64_t base, gpb_range *range)
{
    uint64_t last_base;
    if (gpb_read_size(&at, &range->last, &last_base) != 0 || range->last < first)
        return -1;
    range->is_factor = *at == '*' || (!*at && base > 0 && base == last_base);
    range->step = range->is_factor ? base : 1;
    if ((*at == '+' || *at == '*') && (at++, gpb_read_digits(&at, &range->step) != 0))
        return -1;
    if (*at || range->step == 0 || (range->is_factor && (range->step == 1 || first == 0)))
        return -1;
    return 0;
}

/* What stands between two commas: a word, a number, or a range. NULL, or what is wrong. */
static const char *gpb_add_values(gpb_axis *axis, const char *piece)
{
    const char *at = piece, *wrong = NULL;
    gpb_range range = {0, 1, 0};
    uint64_t number, base;
    char text[32];
    int is_size = gpb_read_size(&at, &number, &base) == 0;
    if (is_size && *at == '.' && at[1] == '.') {
        if (gpb_read_range(at + 2, number, base, &range) != 0)
            return "wants a range as 1..8, 8..64+8, 1..64*2 or 2^4..2^9";
    } else if (is_size && !*at && base > 0) {
        range.last = number;
    } else {
        return strstr(piece, "..") ? "wants numbers around '..'" : gpb_add_value(axis, piece);
    }
    for (;;) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        wrong = gpb_add_value(axis, text);
        if (wrong || (range.is_factor ? number > range.last / range.step
                                      : range.last - number < range.step))
            return wrong;
        number = range.is_factor ? number * range.step : number + range.step;
    }
}

/* The text of one axis, the program's or --axis's. NULL, or what is wrong. */
static const char *gpb_read_axis(gpb_axis *axis, const char *text)
{
    char *copy = gpb_duplicate(text), *at = copy;
    const char *wrong = NULL;
    int more = 1;
    while (more && !wrong) {
        size_t length = strcspn(at, ",");
        more = at[length] == ',';
        at[length] = '\0';
        wrong = gpb_add_values(axis, at);
        at += length + 1;
    }
    free(copy);
    return wrong;
}

/* Is the name a key of the params already? */
static int gpb_has_key(const char *params, const char *name)
{
    size_t length = strlen(name);
    for (; params && *params; params += strcspn(params, " "), params += strspn(params, " "))
        if (!strncmp(params, name, length) && params[length] == '=')
            return 1;
    return 0;
}

/* One axis of the program, with what the command line says of it. */
static void gpb_take_values(gpubench *bench, const gpubench_axis *wanted, gpb_axis *axis)
{
    const char *text = wanted->values ? wanted->values : "", *where = "axis", *wrong;
    size_t i;
    axis->name = wanted->name ? wanted->name : "";
    if (!*axis->name || axis->name[strcspn(axis->name, " =\t\r\n")]) {
        gpubench_usage_error(bench, "axis '%s': wants a name without blanks and '='", axis->name);
        return;
    }
    if (!gpb_has_word(bench->axis_names, axis->name, strlen(axis->name)) &&
        strlen(bench->axis_names) + strlen(axis->name) + 2 < sizeof bench->axis_names) {
        strcat(bench->axis_names, " ");
        strcat(bench->axis_names, axis->name);
    }
    for (i = 0; i < bench->axes_given_count; i++) {
        gpb_axis_given *given = &bench->axes_given[i];
        if (strlen(axis->name) == given->name_bytes &&
            !strncmp(given->text, axis->name, given->name_bytes)) {
            text = given->text + given->name_bytes + 1;
            where = "--axis";
            given->used = 1;
        }
    }
    wrong = gpb_read_axis(axis, text);
    if (wrong)
        gpubench_usage_error(bench, "%s '%s=%s': %s", where, axis->name, text, wrong);
}

/* The case at one point of the sweep. numbers: which value of each axis. */
static void gpb_queue_point(gpubench *bench, const gpubench_case *one, const gpb_axis *axes,
                            size_t axis_count, const size_t *numbers)
{
    size_t bytes = strlen(one->params ? one->params : "") + 1, before = bench->item_count, i;
    gpubench_case point = *one;
    gpb_item *item;
    char *params;
    for (i = 0; i < axis_count; i++)
        /* An axis has a value at least. NOLINTNEXTLINE(*-core.NullDereference) */
        bytes += strlen(axes[i].name) + strlen(axes[i].values[numbers[i]]) + 2;
    params = (char *)gpb_must(malloc(bytes));
    strcpy(params, one->params ? one->params : "");
    for (i = 0; i < axis_count; i++) {
        const char *value = axes[i].values[numbers[i]];
        size_t used = strlen(params);
        if (!strcmp(axes[i].name, "dtype"))
            point.dtype = value;
        else
            snprintf(params + used, bytes - used, "%s%s=%s", used ? " " : "", axes[i].name, value);
    }
    point.params = params;
    gpb_queue(bench, &point, bench->group_count);
    free(params);
    if (bench->item_count == before) /* the filter's */
        return;
    item = &bench->items[before];
    item->places = (gpb_place *)gpb_must(calloc(axis_count + 1, sizeof *item->places));
    item->place_count = axis_count;
    for (i = 0; i < axis_count; i++) {
        item->places[i].axis = gpb_duplicate(axes[i].name);
        item->places[i].value = gpb_duplicate(axes[i].values[numbers[i]]);
    }
}

/* Counts on: the last axis first. 0 after the last point. */
static int gpb_next_point(const gpb_axis *axes, size_t axis_count, size_t *numbers)
{
    size_t i = axis_count;
    while (i > 0 && ++numbers[i - 1] == axes[i - 1].count)
        numbers[--i] = 0;
    return i > 0;
}

static void gpb_queue_sweep(gpubench *bench, const gpubench_case *cases, size_t count,
                            const gpb_axis *axes, size_t axis_count)
{
    size_t *numbers = (size_t *)gpb_must(calloc(axis_count + 1, sizeof *numbers));
    do {
        size_t i;
        for (i = 0; i < count; i++)
            gpb_queue_point(bench, &cases[i], axes, axis_count, numbers);
        bench->group_count++;
    } while (gpb_next_point(axes, axis_count, numbers));
    free(numbers);
}

/* Names that would stand in the params twice, or more points than anybody wants. */
static void gpb_check_sweep(gpubench *bench, const gpubench_case *cases, size_t count,
                            const gpb_axis *axes, size_t axis_count)
{
    size_t points = 1, i, j;
    for (i = 0; i < axis_count; i++) {
        for (j = 0; j < i; j++)
            if (!strcmp(axes[i].name, axes[j].name))
                gpubench_usage_error(bench, "axis '%s' stands there twice", axes[i].name);
        for (j = 0; j < count; j++)
            if (gpb_has_key(cases[j].params, axes[i].name))
                gpubench_usage_error(bench, "axis '%s' is in the params '%s' already", axes[i].name,
                                     cases[j].params);
        points *= points <= GPB_SWEEP_MOST ? axes[i].count : 1;
    }
    if (points > GPB_SWEEP_MOST)
        gpubench_usage_error(bench, "a sweep of more than %d combinations", GPB_SWEEP_MOST);
}

void gpubench_sweep(gpubench *bench, const gpubench_case *cases, size_t count,
                    const gpubench_axis *axes, size_t axis_count)
{
    gpb_axis *made = (gpb_axis *)gpb_must(calloc(axis_count + 1, sizeof *made));
    size_t i, j;
    for (i = 0; i < axis_count; i++)
        gpb_take_values(bench, &axes[i], &made[i]);
    if (!bench->refused)
        gpb_check_sweep(bench, cases, count, made, axis_count);
    if (!bench->refused)
        gpb_queue_sweep(bench, cases, count, made, axis_count);
    for (i = 0; i < axis_count; i++) {
        for (j = 0; j < made[i].count; j++)
            free(made[i].values[j]);
        free(made[i].values);
        gpb_index_free(&made[i].known);
    }
    free(made);
}

/* A case of a sweep asks; without an answer it fails. */
static const char *gpb_find_place(gpubench *bench, const char *name)
{
    const gpb_item *item = bench->current ? bench->current->item : NULL;
    size_t i;
    for (i = 0; item && i < item->place_count; i++)
        if (!strcmp(item->places[i].axis, name))
            return item->places[i].value;
    if (!item)
        gpubench_usage_error(bench, "axis '%s' is asked for outside a case's setup", name);
    else
        gpb_misuse(bench, "has no axis '%s'", name);
    return NULL;
}

const char *gpubench_axis_text(gpubench *bench, const char *name)
{
    const char *value = gpb_find_place(bench, name);
    return value ? value : "";
}

int64_t gpubench_axis_number(gpubench *bench, const char *name)
{
    const char *value = gpb_find_place(bench, name);
    int is_negative = value && *value == '-';
    uint64_t number = 0;
    if (!value)
        return 0;
    if (gpubench_parse_count(value + is_negative, &number) != 0 || number > INT64_MAX) {
        gpb_misuse(bench, "axis '%s' is '%s', and wants a whole number", name, value);
        return 0;
    }
    return is_negative ? -(int64_t)number : (int64_t)number;
}

/* An axis that no sweep has was mistyped. */
static void gpb_check_axes(gpubench *bench)
{
    size_t i;
    for (i = 0; i < bench->axes_given_count; i++)
        if (!bench->axes_given[i].used)
            gpubench_usage_error(bench, "--axis '%s': there is no such axis%s%s",
                                 bench->axes_given[i].text, *bench->axis_names ? "; there are" : "",
                                 bench->axis_names);
}

/* ==== the public functions ================================================ */

static void gpb_name_campaign(gpubench *bench)
{
    time_t now = time(NULL);
    struct tm utc;
    if (bench->settings.campaign)
        snprintf(bench->campaign, sizeof bench->campaign, "%s", bench->settings.campaign);
    else
        strftime(bench->campaign, sizeof bench->campaign, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
}

/* What an earlier process of this program left for its first handle: files that
 * are open already, and how they are called. */
static void gpb_take_over(gpubench *bench, const char *rows)
{
    const char *partial = getenv(GPB_ENV_JOURNAL);
    gpb_journal *journal = &bench->journal;
    long long rows_at, json_at;
    int files[4], error;
    if (sscanf(rows, "%d %d %d %d %lld %lld %d", &files[0], &files[1], &files[2], &files[3],
               &rows_at, &json_at, &error) != 7 ||
        rows_at < GPB_SLOT_BYTES || json_at < 0 ||
        fcntl(files[0], F_SETFD, FD_CLOEXEC) != 0) {
        gpubench_usage_error(bench, "%s='%s': no file of rows", GPB_ENV_ROWS, rows);
        return;
    }
    bench->rows_file = files[0];
    bench->rows_at = (off_t)rows_at;
    bench->json_at = (off_t)json_at;
    journal->file = files[1];
    journal->is_stream = files[2];
    journal->old = files[3];
    journal->error = error;
    journal->header_bytes = gpb_header_bytes();
    if (journal->file >= 0 && journal->file > STDERR_FILENO)
        (void)fcntl(journal->file, F_SETFD, FD_CLOEXEC);
    if (journal->old >= 0)
        (void)fcntl(journal->old, F_SETFD, FD_CLOEXEC);
    if (bench->settings.csv && !bench->is_child && !journal->is_stream && journal->file >= 0) {
        journal->path = gpb_duplicate(partial ? partial : bench->settings.csv);
        journal->partial = partial ? gpb_duplicate(partial) : NULL;
        if (partial) /* of a link it is the target that is replaced, as its name says */
            *gpb_find_last(journal->path, ".partial") = '\0';
        gpb_watch_journal(bench);
    }
    gpb_import_rows(bench);
    journal->rows = bench->row_count;
}

static void gpb_join_processes(gpubench *bench)
{
    const char *rows = getenv(GPB_ENV_ROWS), *run = getenv(GPB_ENV_RUN);
    const char *campaign = getenv(GPB_ENV_CAMPAIGN);
    bench->run = 1;
    if (campaign)
        snprintf(bench->campaign, sizeof bench->campaign, "%s", campaign);
    if (run && gpubench_parse_count(run, &bench->run) != 0)
        gpubench_usage_error(bench, "%s='%s': not a run's number", GPB_ENV_RUN, run);
    bench->is_child = run != NULL;
    if (rows && !bench->refused)
        gpb_take_over(bench, rows);
    if (run) {
        bench->settings.quiet = 1;
        bench->settings.csv = NULL;
    }
    unsetenv(GPB_ENV_ROWS);
    unsetenv(GPB_ENV_RUN);
    unsetenv(GPB_ENV_JOURNAL);
    unsetenv(GPB_ENV_CAMPAIGN);
    unsetenv(GPB_ENV_DEVICE);
}

/* Rows of an earlier process are kept where there is no device for more. */
static void gpb_choose_device(gpubench *bench)
{
    bench->device_chosen = bench->backend->choose(bench) == 0;
    bench->failed |= !bench->device_chosen;
    bench->refused |= !bench->device_chosen && !gpb_has_rows(bench);
}

/* What has to be known before the program changes it. */
static void gpb_prepare_handle(gpubench *bench)
{
    static unsigned opened;
    if (++opened == 1)
        gpb_watch_exit();
    bench->rows_file = bench->journal.file = bench->journal.old = -1;
    bench->rows_at = GPB_SLOT_BYTES;
    sigprocmask(SIG_SETMASK, NULL, &bench->restart.mask);
    bench->restart.environment = gpb_copy_environment();
    bench->restart.program = gpb_find_program(bench);
    gpb_find_command(bench, &bench->restart);
    if (opened > 1) /* the first would measure again, with what it had lost */
        bench->restart.why_not = "only the first handle of a program can";
    else if (!bench->restart.program)
        bench->restart.why_not = "the path of this program is not known: there is no "
                                 GPB_PROC_SELF ", and it was not started by a path";
}

static void gpb_free(gpubench *bench);

gpubench *gpubench_open_with(const char *suite, const gpubench_option *options, size_t option_count,
                             int argc, char **argv)
{
    size_t total = option_count + GPB_COUNT_OF(gpb_builtin);
    const char **given = (const char **)gpb_must(calloc(total, sizeof *given));
    gpubench *bench = (gpubench *)gpb_must(calloc(1, sizeof *bench));
    bench->suite = gpb_duplicate(suite);
    bench->argv = argv;
    gpb_prepare_handle(bench);
    gpb_default_settings(&bench->settings);
    gpb_read_arguments(bench, argc, options, option_count, given);
    if (!bench->refused && gpb_given(given + option_count, "--help")) {
        int lost;
        gpb_print_help(bench, options, option_count);
        lost = gpb_end_output(bench, "--help");
        bench->given = given;
        gpb_free(bench);
        exit(lost ? 2 : 0);
    }
    if (!bench->refused)
        gpb_give_values(bench, options, option_count, given);
    bench->given = given;
    bench->given_standard = given + option_count;
    if (!bench->refused)
        gpb_take_settings(bench, bench->given_standard);
    bench->backend = gpb_find_backend(bench->settings.device);
    gpb_read_cpu_name(bench->machine.cpu, sizeof bench->machine.cpu);
    gpb_name_campaign(bench);
    gpb_join_processes(bench);
    if (!bench->refused && bench->rows_file < 0)
        gpb_try_path(bench);
    if (!bench->refused)
        gpb_open_samples(bench);
    if (!bench->refused)
        gpb_open_json(bench);
    if (!bench->refused && gpb_count_processes(bench) > 1 && !bench->is_child &&
        !bench->settings.list && !bench->settings.profile)
        gpb_run_processes(bench);
    if (!bench->refused && !bench->settings.list)
        gpb_choose_device(bench);
    return bench;
}

gpubench *gpubench_open(const char *suite, int argc, char **argv)
{
    return gpubench_open_with(suite, NULL, 0, argc, argv);
}

gpubench_case gpubench_case_init(const char *name, int (*run)(void *, gpubench_stream),
                                 void *context)
{
    gpubench_case one;
    memset(&one, 0, sizeof one);
    one.name = name;
    one.run = run;
    one.context = context;
    return one;
}

void gpubench_measure_group(gpubench *bench, const gpubench_case *cases, size_t count)
{
    size_t i;
    for (i = 0; i < count; i++)
        gpb_queue(bench, &cases[i], bench->group_count);
    bench->group_count++;
}

void gpubench_stay(gpubench *bench, const char *why)
{
    bench->restart.why_not = why;
}

void gpubench_measure(gpubench *bench, const gpubench_case *one)
{
    gpubench_measure_group(bench, one, 1);
}

/* The order of the new groups: a permutation by the seed and the run (Fisher
 * and Yates), so that no case always follows the same one. */
static size_t *gpb_shuffle_groups(const gpubench *bench, size_t count)
{
    uint64_t state = bench->settings.seed * 1000003u + bench->run;
    size_t *order = (size_t *)gpb_must(calloc(count + 1, sizeof *order));
    size_t i;
    for (i = 0; i < count; i++) {
        size_t j = (size_t)(gpubench_random_word(&state) % (i + 1));
        order[i] = order[j];
        order[j] = bench->groups_done + i;
    }
    return order;
}

/* The items stand in the order of their groups; a filter may have left none. */
static size_t gpb_first_of_group(const gpubench *bench, size_t group)
{
    size_t low = 0, high = bench->item_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bench->items[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void gpb_run_group(gpubench *bench, size_t group)
{
    size_t first = gpb_first_of_group(bench, group), count = 0, i;
    while (first + count < bench->item_count && bench->items[first + count].group == group)
        count++;
    for (i = 0; i < count && bench->settings.profile && !bench->lost; i++)
        gpb_profile(bench, &bench->items[first + i]);
    if (count > 0 && !bench->settings.profile)
        gpb_measure_unit(bench, &bench->items[first], count);
}

/* The cases, also as objects where --json wants them: what is known of a row
 * before anything is measured. The exit status. */
static int gpb_list(gpubench *bench)
{
    const int is_json_only = bench->settings.json && !strcmp(bench->settings.json, "-");
    int lost;
    size_t i;
    for (i = 0; i < bench->item_count && !is_json_only; i++) {
        gpb_put_plain(stdout, bench->items[i].key);
        putc('\n', stdout);
    }
    lost = gpb_end_output(bench, "--list");
    for (i = 0; i < bench->item_count && bench->settings.json; i++) {
        gpb_row *row = gpb_new_row(bench);
        gpb_fill_case(bench, &bench->items[i].one, row);
        gpb_fill_amounts(bench->items[i].one.bytes, bench->items[i].one.flops, row);
        gpb_fill_build(bench, row);
    }
    return gpb_finish_json(bench) != 0 || lost ? 2 : 0;
}

static void gpb_check_queue(gpubench *bench)
{
    const unsigned every_mode = 2 * GPUBENCH_DIRTY - 1;
    unsigned modes = 0;
    size_t i;
    gpb_check_axes(bench);
    for (i = 0; i < bench->item_count; i++) {
        modes |= gpb_modes_of(bench, &bench->items[i]);
        if (bench->items[i].one.modes && !(bench->items[i].one.modes & every_mode))
            gpubench_usage_error(bench, "%s: modes=%u: there is no such mode", bench->items[i].key,
                                 bench->items[i].one.modes);
    }
    if (bench->item_count == 0 && bench->filtered_out > 0)
        gpubench_usage_error(bench, "--filter '%s' matches none of the %llu cases",
                             bench->settings.filter, (unsigned long long)bench->filtered_out);
    else if (bench->item_count == 0)
        gpubench_usage_error(bench, "there is no case to measure");
    else if (modes == 0 && bench->settings.mode)
        gpubench_usage_error(bench, "--mode '%s': no case can be measured in it",
                             bench->settings.mode);
    if (!bench->settings.mode)
        bench->settings.modes = modes;
    if (gpb_wants_watching(&bench->settings) && !bench->watcher)
        gpubench_usage_error(bench, "%s: this program was built without gpubench_trace.h",
                             bench->settings.kernels       ? "--kernels"
                             : bench->settings.kernels_csv ? "--kernels-csv"
                             : bench->settings.memory      ? "--memory"
                             : bench->settings.memory_csv  ? "--memory-csv"
                                                           : "--trace");
}

void gpubench_measured_peaks(gpubench *bench, double gb_per_s, double tflop_per_s)
{
    bench->machine.measured_gb_per_s = gb_per_s;
    bench->machine.measured_tflop_per_s = tflop_per_s;
}

void gpubench_sweep_on(gpubench *bench, gpubench_threads *all)
{
    bench->sweep_on = all;
}

void gpubench_before_all(gpubench *bench, int (*function)(void *context, gpubench *bench),
                         void *context)
{
    bench->before.function = function;
    bench->before.context = context;
    bench->before.called = 0;
}

/* As the setup of a case that owns what it allocates until the end. 0, or a code
 * after a message. */
static int gpb_call_before_all(gpubench *bench)
{
    gpb_before *before = &bench->before;
    gpb_live live;
    int code;
    if (!before->function || before->called)
        return 0;
    before->called = 1;
    before->item.key = (char *)(uintptr_t)"before all";
    live = gpb_new_live(&before->item);
    code = bench->backend->make_current(bench);
    bench->current = &live;
    if (code == 0)
        code = before->function(before->context, bench);
    if (code == 0)
        code = live.misused ? GPUBENCH_FAILED : bench->backend->finish(bench);
    if (code != 0) {
        gpb_blame(bench, &live, code, "setup");
        gpb_message(bench, "before all cases: %s: %s", live.status, live.reason);
    }
    bench->current = NULL;
    return code;
}

/* Once; and what the method costs in modes that no case before was measured in. */
static int gpb_open_device(gpubench *bench)
{
    int code = bench->device_open ? 0 : bench->backend->open(bench);
    bench->device_open = 1;
    return code != 0 || bench->settings.profile ? code : gpb_measure_overhead(bench);
}

/* All that were queued since the last time. 0, or a code after a message. */
static int gpb_run_groups(gpubench *bench)
{
    size_t *order, i, count = bench->group_count - bench->groups_done;
    if (gpb_call_before_all(bench) != 0) {
        bench->failed = 1;
        bench->refused = !gpb_has_rows(bench);
        return -1;
    }
    if (!bench->settings.profile && gpb_start_rows(bench) != 0)
        return -1;
    order = gpb_shuffle_groups(bench, count);
    for (i = 0; i < count && !bench->lost; i++)
        gpb_run_group(bench, order[i]);
    bench->groups_done = bench->group_count;
    free(order);
    return 0;
}

/* What is measured has its signals taken still, and its files are not settled yet. */
static void gpb_run_queued(gpubench *bench)
{
    gpubench *before = gpb_measuring;
    int code;
    if (!bench->refused)
        gpb_check_queue(bench);
    if (bench->refused || bench->settings.list || !bench->device_chosen)
        return;
    if (gpb_open_device(bench) != 0) {
        bench->failed = 1;
        bench->refused = !gpb_has_rows(bench); /* rows of an earlier process are kept */
        return;
    }
    gpb_measuring = bench;
    code = gpb_run_groups(bench);
    gpb_measuring = before;
    if (code == 0 && bench->lost && !bench->settings.profile)
        gpb_start_over(bench);
}

void gpubench_run(gpubench *bench)
{
    gpb_run_queued(bench);
    gpb_stop_rows(bench);
}

static void gpb_free(gpubench *bench)
{
    size_t i, j;
    if (gpb_measuring == bench) /* an exception left its gpubench_run */
        gpb_measuring = NULL;
    gpb_call_at_close(bench);
    for (i = 0; i < bench->item_count; i++) {
        free((char *)(uintptr_t)bench->items[i].one.name);
        free((char *)(uintptr_t)bench->items[i].one.variant);
        free((char *)(uintptr_t)bench->items[i].one.dtype);
        free((char *)(uintptr_t)bench->items[i].one.params);
        free((char *)(uintptr_t)bench->items[i].one.runs_on);
        free(bench->items[i].key);
        for (j = 0; j < bench->items[i].place_count; j++) {
            free(bench->items[i].places[j].axis);
            free(bench->items[i].places[j].value);
        }
        free(bench->items[i].places);
    }
    for (i = 0; i < bench->row_count; i++)
        gpb_free_row(&bench->rows[i]);
    if (bench->device_open && bench->lost)
        gpb_forget_memory(bench);
    if (bench->device_open) {
        gpb_release_memory(bench, &bench->before.item);
        gpb_release_memory(bench, NULL);
        bench->backend->close(bench);
    }
    for (i = 0; i < bench->device_count; i++)
        free(bench->devices[i]);
    free(bench->devices);
    free(bench->device_told);
    free(bench->axes_given);
    free(bench->arguments);
    if (bench->has_filter)
        regfree(&bench->filter);
    gpb_index_free(&bench->item_keys);
    gpb_index_free(&bench->row_keys);
    free(bench->given);
    free(bench->samples_path);
    free(bench->samples_temporary);
    free(bench->json_path);
    free(bench->json_temporary);
    free(bench->items);
    free(bench->rows);
    gpb_free_journal(bench);
    gpb_free_restart(&bench->restart);
    free(bench->suite);
    free(bench);
}

int gpubench_close(gpubench *bench)
{
    int status = 0;
    if (!bench->refused && (bench->groups_done < bench->group_count || bench->group_count == 0))
        gpb_run_queued(bench);
    gpb_settle_journal(&bench->journal);
    if (bench->refused)
        status = 2;
    else if (bench->settings.list)
        status = gpb_list(bench);
    else if (bench->settings.profile)
        status = bench->failed;
    else if (bench->is_child)
        status = bench->rows_error || bench->journal.error ? 2 : bench->failed;
    else
        status = gpb_report(bench);
    if (bench->refused && bench->row_count > 0 && !bench->is_child)
        (void)gpb_report(bench); /* what was measured before is not lost; the status tells */
    if (bench->is_child)
        gpb_write_slot(bench, GPB_SLOT_ENDED, NULL, "");
    gpb_stop_rows(bench); /* no earlier, as a signal would leave what --samples and --json gather */
    if (!bench->refused && !bench->lost && bench->device_open &&
        gpb_wants_watching(&bench->settings) && bench->run == bench->settings.runs) {
        int watched = gpb_trace_all(bench);
        status = watched > status ? watched : status;
    }
    gpb_free(bench);
    return status;
}

void gpubench_watch(gpubench *bench, const gpubench_watcher *watcher)
{
    bench->watcher = watcher;
}

const char *gpubench_given(const gpubench *bench, const char *option)
{
    return gpb_given(bench->given_standard, option);
}

void gpubench_range_begin(const char *name)
{
    if (gpb_traced)
        gpb_traced->watcher->range(name);
    else if (gpb_profiler_push)
        gpb_profiler_push(name);
}

void gpubench_range_end(void)
{
    if (gpb_traced)
        gpb_traced->watcher->range(NULL);
    else if (gpb_profiler_pop)
        gpb_profiler_pop();
}

int gpubench_is_cuda(const gpubench *bench)
{
    return !strcmp(bench->backend->name, "cuda");
}

int gpubench_compute_capability(const gpubench *bench)
{
    return bench->machine.capability;
}

uint64_t gpubench_seed(const gpubench *bench)
{
    return bench->settings.seed;
}

size_t gpubench_row_count(const gpubench *bench)
{
    return bench->row_count;
}

const char *gpubench_value(const gpubench *bench, size_t row, const char *column)
{
    int i;
    for (i = 0; i < GPB_COLUMN_COUNT && row < bench->row_count; i++)
        if (!strcmp(gpb_column_names[i], column))
            return gpb_text(&bench->rows[row], i);
    return NULL;
}

#if defined(__clang__)
#pragma clang diagnostic pop
#pragma clang optimize on
#elif defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC pop_options
#endif

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_IMPLEMENTATION */

/*
 * gpubench 2.0.0
 *
 * MIT License
 *
 * Copyright (c) 2026 the gpubench authors
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy
 * of this software and associated documentation files (the "Software"), to deal
 * in the Software without restriction, including without limitation the rights
 * to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
 * copies of the Software, and to permit persons to whom the Software is
 * furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all
 * copies or substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
 * IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
 * FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
 * AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
 * LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
 * SOFTWARE.
 */
