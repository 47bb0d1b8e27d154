/*
 * gpubench_trace.h - what happens inside one execution of a case and what memory it
 * takes: --kernels, --kernels-csv, --memory, --memory-csv and --trace. Optional, beside
 * gpubench.h.
 *
 * In ONE source file:
 *
 *     #define GPUBENCH_TRACE_IMPLEMENTATION
 *     #include "gpubench_trace.h"
 *
 * and in the program, between opening and closing:
 *
 *     gpubench_trace(bench);
 *
 * When everything has been timed, each case is executed again and watched, in the mode
 * of its row (cold if it was timed cold) with caches and clocks as they were then: up to
 * nine times, of which the one is told of whose work took the median time. On a GPU by
 * CUPTI's activity records, where the toolkit's headers were there when this was compiled
 * and its library is found at run time (by dlopen: a program without the option needs
 * neither). On the CPU by the host's clock: the run, and the ranges that it names by
 * gpubench_range_begin.
 *
 * Times of kernels are the device's own, from the first block's start to the last
 * one's end: without what a launch costs, which a case's time has.
 *
 * POSIX; C99 and C++11 or later. Private names begin with gpt_ or GPT_.
 *
 * Licence: MIT, as gpubench.h's.
 */
#ifndef GPUBENCH_TRACE_H
#define GPUBENCH_TRACE_H

#include "gpubench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the five options work. Refuses the command line where one of their files
 * cannot be written. Call it after gpubench_open. */
void gpubench_trace(gpubench *bench);

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_TRACE_H */

#if defined(GPUBENCH_TRACE_IMPLEMENTATION) && !defined(GPUBENCH_TRACE_IMPLEMENTED)
#define GPUBENCH_TRACE_IMPLEMENTED

/* The sections:
 *
 *   events            what happened, and when
 *   the host          ranges, by the monotonic clock
 *   CUPTI             kernels, copies, memsets, calls
 *   occupancy         how many blocks of a kernel a multiprocessor holds
 *   a case's summary  events by name, busy and idle time
 *   findings          what the numbers of a case say
 *   the table         --kernels
 *   CSV               --kernels-csv
 *   memory            --memory and --memory-csv
 *   the timeline      --trace
 *   the watcher       what gpubench.h calls
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef GPT_CUPTI
#if GPUBENCH_CUDA && defined(__has_include)
#if __has_include(<cupti.h>) && __has_include(<cuda_occupancy.h>)
#define GPT_CUPTI 1
#endif
#endif
#endif
#ifndef GPT_CUPTI
#define GPT_CUPTI 0
#endif

#if GPT_CUPTI
#if defined __GNUC__ /* its switches leave values out */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-enum"
#endif
#include <cuda_occupancy.h>
#if defined __GNUC__
#pragma GCC diagnostic pop
#endif
#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== events ============================================================== */

enum { GPT_KERNEL, GPT_COPY, GPT_SET, GPT_RANGE, GPT_CALL };

static const char *const gpt_kind_names[] = {"kernel", "copy", "memset", "range", "call"};

typedef struct gpt_event {
    int kind;
    size_t name; /* in gpt.names */
    uint64_t start_ns, end_ns;
    uint64_t bytes;       /* of a copy or memset */
    uint64_t correlation; /* of a call and what it enqueued */
    unsigned stream;
    unsigned graph; /* 0: it was launched by itself */
    unsigned grid[3], block[3], registers, shared_bytes, dynamic_bytes; /* of a kernel */
    int depth;                                                          /* of a range */
} gpt_event;

/* Of one kernel, copy or range: all of its events in a case. */
typedef struct gpt_group {
    const gpt_event *first;
    uint64_t count, total_ns, least_ns, most_ns, bytes;
    int other_grids, other_blocks; /* not all are the first one's */
    double occupancy, waves;       /* of a kernel, the first one's; 0: unknown */
    const char *limit;             /* of its occupancy */
} gpt_group;

typedef struct gpt_summary {
    gpt_group *groups; /* by total time, the longest first */
    size_t count;
    uint64_t launches, total_ns; /* of kernels, copies and memsets, or of ranges */
    uint64_t of_graphs, graph_launches; /* those that graphs launched, and how many of graphs */
    uint64_t span_ns, busy_ns;   /* from the first start to the last end; when any was at work */
    uint64_t input_ns;           /* when none was, in front of a copy from the host */
} gpt_summary;

enum { GPT_MOST_RANGES = 64 };

/* One of a case's executions. */
typedef struct gpt_execution {
    gpt_event *events;
    size_t count;
    uint64_t begun_ns, ended_ns, total_ns;
} gpt_execution;

enum { GPT_MOST_EXECUTIONS = 16 };

static struct {
    gpt_event *events; /* of the execution that is watched, or told of */
    size_t count, capacity;
    gpt_execution executions[GPT_MOST_EXECUTIONS];
    size_t execution_count;
    uint64_t empty_ns; /* of an empty kernel; 0: unknown */
    double peak_gb_per_s; /* of the device's memory, by its clock and width; 0: unknown */
    const char *mode;  /* of the executions */
    char **names;
    size_t name_count;
    size_t open[GPT_MOST_RANGES]; /* ranges that have not ended, indices of events */
    int depth;
    uint64_t lost; /* events: no memory, or dropped by CUPTI */
    uint64_t begun_ns, ended_ns;
    uint64_t origin_ns; /* of the timeline: when its first case began */
    FILE *table, *csv, *trace, *memory, *memory_csv;
    int cases;       /* that were told of */
    int first_event; /* of the timeline: no comma in front */
    struct gpt_lane *lanes;
    size_t lane_count, lane_capacity;
    uint64_t span_count, spans_left_out;
    const char *on_gpu;     /* the library that watches; NULL: the host's clock */
} gpt;

static uint64_t gpt_now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) { /* no time that is told would be true */
        perror("gpubench_trace: clock_gettime");
        exit(2);
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Room for one more; 0 where there is none. */
static int gpt_reserve(void **array, size_t count, size_t *capacity, size_t element_bytes)
{
    size_t wanted = *capacity ? 2 * *capacity : 256;
    void *larger;
    if (count < *capacity)
        return 1;
    larger = realloc(*array, wanted * element_bytes);
    if (!larger)
        return 0;
    *array = larger;
    *capacity = wanted;
    return 1;
}

/* The number of a name, the same for equal ones. Of few: kernels, not launches. */
static size_t gpt_intern(const char *name)
{
    size_t i, bytes = strlen(name) + 1;
    char **larger, *copy;
    for (i = 0; i < gpt.name_count; i++)
        if (!strcmp(gpt.names[i], name))
            return i;
    larger = (char **)realloc(gpt.names, (gpt.name_count + 1) * sizeof *larger);
    gpt.names = larger ? larger : gpt.names;
    copy = larger ? (char *)malloc(bytes) : NULL;
    if (!copy)
        return 0; /* an event of the first name, and the loss is told */
    memcpy(copy, name, bytes);
    gpt.names[gpt.name_count] = copy;
    return gpt.name_count++;
}

static gpt_event *gpt_add(int kind, const char *name)
{
    void *events = gpt.events;
    gpt_event *event;
    if (!gpt_reserve(&events, gpt.count, &gpt.capacity, sizeof *gpt.events)) {
        gpt.lost++;
        return NULL;
    }
    gpt.events = (gpt_event *)events;
    event = &gpt.events[gpt.count++];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->name = gpt_intern(name);
    return event;
}

static const char gpt_from_host[] = "host to device";

static const char *gpt_name(const gpt_event *event)
{
    return event->name < gpt.name_count ? gpt.names[event->name] : "";
}

/* Names are anybody's, a terminal obeys what is in them: as text, at most four at a time. */
static const char *gpt_shown(const char *name)
{
    static char rooms[4][400];
    static unsigned turn;
    turn = (turn + 1) % 4;
    return gpubench_plain(name, rooms[turn], sizeof rooms[turn]);
}

/* Blocks of a grid, threads of a block. */
static double gpt_count_of(const unsigned *three)
{
    return (double)three[0] * three[1] * three[2];
}

static uint64_t gpt_duration(const gpt_event *event)
{
    return event->end_ns > event->start_ns ? event->end_ns - event->start_ns : 0;
}

static int gpt_is_device_work(const gpt_event *event)
{
    return event->kind == GPT_KERNEL || event->kind == GPT_COPY || event->kind == GPT_SET;
}

/* On a GPU what the device did; on the CPU the run, which holds all other ranges. */
static int gpt_is_in_total(const gpt_event *event)
{
    return gpt.on_gpu ? gpt_is_device_work(event)
                      : event->kind == GPT_RANGE && event->depth == 0;
}

/* Puts the events aside as one execution. */
static void gpt_keep_execution(void)
{
    gpt_execution *kept = &gpt.executions[gpt.execution_count];
    size_t i;
    if (gpt.execution_count == GPT_MOST_EXECUTIONS)
        return;
    kept->events = gpt.events;
    kept->count = gpt.count;
    kept->begun_ns = gpt.begun_ns;
    kept->ended_ns = gpt.ended_ns;
    for (kept->total_ns = 0, i = 0; i < gpt.count; i++)
        kept->total_ns += gpt_is_in_total(&gpt.events[i]) ? gpt_duration(&gpt.events[i]) : 0;
    gpt.execution_count++;
    gpt.events = NULL;
    gpt.count = gpt.capacity = 0;
}

static int gpt_by_execution_total(const void *left, const void *right)
{
    const gpt_execution *a = (const gpt_execution *)left, *b = (const gpt_execution *)right;
    return (a->total_ns > b->total_ns) - (a->total_ns < b->total_ns);
}

/* Of an even number the shorter one of the two in the middle: a whole execution is told
 * of, with its own timeline. */
static void gpt_take_median(void)
{
    const gpt_execution *median = &gpt.executions[(gpt.execution_count - 1) / 2];
    qsort(gpt.executions, gpt.execution_count, sizeof *gpt.executions, gpt_by_execution_total);
    free(gpt.events);
    gpt.events = median->events;
    gpt.count = gpt.capacity = median->count;
    gpt.begun_ns = median->begun_ns;
    gpt.ended_ns = median->ended_ns;
}

static void gpt_forget_executions(void)
{
    size_t i;
    for (i = 0; i < gpt.execution_count; i++)
        if (gpt.executions[i].events != gpt.events)
            free(gpt.executions[i].events);
    gpt.execution_count = 0;
}

/* ==== the host ============================================================ */

static uint64_t gpt_clock_ns(void);

static void gpt_end_range(void)
{
    if (--gpt.depth < GPT_MOST_RANGES && gpt.open[gpt.depth] < gpt.count)
        gpt.events[gpt.open[gpt.depth]].end_ns = gpt_clock_ns();
}

static void gpt_range(const char *name)
{
    gpt_event *event;
    if (!name) {
        if (gpt.depth > 1) /* the first is not the case's to end */
            gpt_end_range();
        return;
    }
    event = gpt_add(GPT_RANGE, name);
    if (event) {
        event->depth = gpt.depth;
        event->start_ns = event->end_ns = gpt_clock_ns();
    }
    if (gpt.depth < GPT_MOST_RANGES)
        gpt.open[gpt.depth] = event ? gpt.count - 1 : (size_t)-1;
    gpt.depth++;
}

/* ==== CUPTI =============================================================== */

#if GPT_CUPTI

typedef struct gpt_buffer {
    struct gpt_buffer *next;
    uint8_t *records;
    size_t bytes;
} gpt_buffer;

static struct {
    void *library, *demangler;
    CUptiResult (*callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
    CUptiResult (*enable)(CUpti_ActivityKind);
    CUptiResult (*disable)(CUpti_ActivityKind);
    CUptiResult (*flush)(uint32_t);
    CUptiResult (*next)(uint8_t *, size_t, CUpti_Activity **);
    CUptiResult (*dropped)(CUcontext, uint32_t, size_t *);
    CUptiResult (*text)(CUptiResult, const char **);
    CUptiResult (*timestamp)(uint64_t *);
    CUptiResult (*call_name)(CUpti_CallbackDomain, uint32_t, const char **);
    CUptiResult (*version)(uint32_t *);
    char *(*demangle)(const char *, char *, size_t *, int *);
    gpt_buffer *complete, *spare, *lent; /* the latest first; CUPTI's threads take and add */
    size_t made;                  /* buffers that there are */
    int collecting;
    pthread_mutex_t lock;
    struct cudaOccDeviceProp device;
} gpt_cupti;

static const CUpti_ActivityKind gpt_kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_RUNTIME}; /* the last for the timeline only: it delays the host */

static uint64_t gpt_clock_ns(void)
{
    uint64_t now;
    if (gpt.on_gpu && gpt_cupti.timestamp(&now) == CUPTI_SUCCESS)
        return now;
    return gpt_now_ns();
}

/* What is watched may take 256 MiB: more than a million launches. CUPTI drops what is
 * beyond, and counts it. */
enum { GPT_MOST_BUFFERS = 32, GPT_BUFFER_BYTES = 8 << 20 };

/* One whose pages are there: the host's launches do not wait for them. NULL: no memory. */
static gpt_buffer *gpt_make_buffer(void)
{
    gpt_buffer *buffer = (gpt_buffer *)calloc(1, sizeof *buffer);
    void *records = NULL;
    if (!buffer || posix_memalign(&records, 8, GPT_BUFFER_BYTES) != 0) {
        free(buffer);
        return NULL;
    }
    memset(records, 0, GPT_BUFFER_BYTES);
    buffer->records = (uint8_t *)records;
    return buffer;
}

static void CUPTIAPI gpt_give_buffer(uint8_t **records, size_t *bytes, size_t *most_records)
{
    gpt_buffer *buffer;
    pthread_mutex_lock(&gpt_cupti.lock);
    buffer = gpt_cupti.spare;
    if (buffer)
        gpt_cupti.spare = buffer->next;
    else if (gpt_cupti.made < GPT_MOST_BUFFERS && (buffer = gpt_make_buffer()))
        gpt_cupti.made++;
    if (buffer) {
        buffer->next = gpt_cupti.lent;
        gpt_cupti.lent = buffer;
    }
    pthread_mutex_unlock(&gpt_cupti.lock);
    *records = buffer ? buffer->records : NULL;
    *bytes = buffer ? GPT_BUFFER_BYTES : 0;
    *most_records = 0; /* as many as fit */
}

/* Takes out of a list the buffer with these records. */
static gpt_buffer *gpt_unlink_buffer(gpt_buffer **list, const uint8_t *records)
{
    gpt_buffer *found;
    while (*list && (*list)->records != records)
        list = &(*list)->next;
    found = *list;
    if (found)
        *list = found->next;
    return found;
}

static void CUPTIAPI gpt_take_buffer(CUcontext context, uint32_t stream, uint8_t *records,
                                     size_t size, size_t valid)
{
    gpt_buffer *buffer;
    size_t dropped = 0;
    (void)size;
    pthread_mutex_lock(&gpt_cupti.lock);
    if (gpt_cupti.dropped(context, stream, &dropped) == CUPTI_SUCCESS)
        gpt.lost += dropped;
    buffer = gpt_unlink_buffer(&gpt_cupti.lent, records);
    if (buffer) {
        gpt_buffer **list = valid > 0 ? &gpt_cupti.complete : &gpt_cupti.spare;
        buffer->bytes = valid;
        buffer->next = *list;
        *list = buffer;
    }
    pthread_mutex_unlock(&gpt_cupti.lock);
}

/* The end of a template's arguments, or of a function's, that begin at text. */
static const char *gpt_skip_brackets(const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        depth += strchr("(<[", *text) != NULL;
        depth -= strchr(")>]", *text) != NULL;
        if (depth == 0)
            return text + 1;
    }
    return text;
}

/* A kernel's name as its author would say it: without result, namespaces that have no
 * name, and parameters. In place. */
static void gpt_shorten(char *name)
{
    static const char nameless[] = "(anonymous namespace)::";
    char *at = strncmp(name, "void ", 5) == 0 ? name + 5 : name;
    memmove(name, at, strlen(at) + 1);
    while ((at = strstr(name, nameless)))
        memmove(at, at + sizeof nameless - 1, strlen(at + sizeof nameless - 1) + 1);
    for (at = name; *at && *at != '(';)
        at = *at == '<' ? name + (gpt_skip_brackets(at) - name) : at + 1;
    *at = '\0';
}

static gpt_event *gpt_add_kernel(const CUpti_ActivityKernel10 *record)
{
    int status = -1;
    char *whole = gpt_cupti.demangle && record->name
                      ? gpt_cupti.demangle(record->name, NULL, NULL, &status)
                      : NULL;
    gpt_event *event;
    if (whole)
        gpt_shorten(whole);
    event = gpt_add(GPT_KERNEL, whole ? whole : record->name ? record->name : "<unknown>");
    free(whole);
    if (!event)
        return NULL;
    event->grid[0] = (unsigned)record->gridX;
    event->grid[1] = (unsigned)record->gridY;
    event->grid[2] = (unsigned)record->gridZ;
    event->block[0] = (unsigned)record->blockX;
    event->block[1] = (unsigned)record->blockY;
    event->block[2] = (unsigned)record->blockZ;
    event->registers = record->registersPerThread;
    event->shared_bytes = (unsigned)record->staticSharedMemory;
    event->dynamic_bytes = (unsigned)record->dynamicSharedMemory;
    return event;
}

static const char *gpt_copy_name(int kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return gpt_from_host;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "device to other device";
    default: return "copy";
    }
}

/* As programs call it: CUPTI appends the version since which a function is what it is. */
static gpt_event *gpt_add_call(uint32_t id)
{
    const char *name = NULL;
    char plain[96], *version;
    if (gpt_cupti.call_name(CUPTI_CB_DOMAIN_RUNTIME_API, id, &name) != CUPTI_SUCCESS || !name)
        name = "a call of the runtime";
    snprintf(plain, sizeof plain, "%s", name);
    version = strstr(plain, "_v");
    if (version && version[2] >= '0' && version[2] <= '9')
        *version = '\0';
    return gpt_add(GPT_CALL, plain);
}

/* What all records have, under the same names. */
#define GPT_TAKE_TIMES(event, record)                                                      \
    do {                                                                                   \
        (event)->start_ns = (record)->start;                                               \
        (event)->end_ns = (record)->end;                                                   \
        (event)->correlation = (record)->correlationId;                                    \
    } while (0)

static void gpt_add_copy(const CUpti_ActivityMemcpy6 *record)
{
    gpt_event *event = gpt_add(GPT_COPY, gpt_copy_name(record->copyKind));
    if (!event)
        return;
    GPT_TAKE_TIMES(event, record);
    event->stream = record->streamId;
    event->graph = record->graphId;
    event->bytes = record->bytes;
}

static void gpt_add_set(const CUpti_ActivityMemset4 *record)
{
    gpt_event *event = gpt_add(GPT_SET, "memset");
    if (!event)
        return;
    GPT_TAKE_TIMES(event, record);
    event->stream = record->streamId;
    event->graph = record->graphId;
    event->bytes = record->bytes;
}

static void gpt_add_record(const CUpti_Activity *record)
{
    gpt_event *event;
    switch ((int)record->kind) { /* of many kinds, those that were asked for */
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const CUpti_ActivityKernel10 *kernel = (const CUpti_ActivityKernel10 *)(const void *)record;
        if ((event = gpt_add_kernel(kernel))) {
            GPT_TAKE_TIMES(event, kernel);
            event->stream = kernel->streamId;
            event->graph = kernel->graphId;
        }
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        gpt_add_copy((const CUpti_ActivityMemcpy6 *)(const void *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        gpt_add_set((const CUpti_ActivityMemset4 *)(const void *)record);
        break;
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
        const CUpti_ActivityAPI *call = (const CUpti_ActivityAPI *)(const void *)record;
        if ((event = gpt_add_call(call->cbid)))
            GPT_TAKE_TIMES(event, call);
        break;
    }
    default: break;
    }
}

/* Nobody adds to them any more: the device was idle, and everything is flushed. With
 * wanted 0 nobody reads them. */
static void gpt_read_buffers(int wanted)
{
    for (;;) {
        gpt_buffer *buffer;
        CUpti_Activity *record = NULL;
        pthread_mutex_lock(&gpt_cupti.lock);
        buffer = gpt_cupti.complete;
        gpt_cupti.complete = buffer ? buffer->next : NULL;
        pthread_mutex_unlock(&gpt_cupti.lock);
        if (!buffer)
            return;
        while (wanted && gpt_cupti.next(buffer->records, buffer->bytes, &record) == CUPTI_SUCCESS)
            gpt_add_record(record);
        pthread_mutex_lock(&gpt_cupti.lock);
        buffer->next = gpt_cupti.spare;
        gpt_cupti.spare = buffer;
        pthread_mutex_unlock(&gpt_cupti.lock);
    }
}

/* What helps, where that is known. */
static const char *gpt_cupti_remedy(CUptiResult result)
{
    switch ((int)result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return ": the driver lets only administrators look (NVreg_RestrictProfilingToAdminUsers; in "
               "a container CAP_SYS_ADMIN)";
    case CUPTI_ERROR_MAX_LIMIT_REACHED:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
        return ": another profiler or sanitizer looks on already; run without it";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        return ": this virtual GPU cannot be watched";
    default: return "";
    }
}

static const char *gpt_cupti_text(CUptiResult result)
{
    static char whole[256];
    const char *text = NULL;
    if (gpt_cupti.text(result, &text) != CUPTI_SUCCESS || !text)
        text = "unknown reason";
    snprintf(whole, sizeof whole, "CUPTI's error %d, %s%s", (int)result, text,
             gpt_cupti_remedy(result));
    return whole;
}

static size_t gpt_kinds_wanted(void)
{
    return sizeof gpt_kinds / sizeof gpt_kinds[0] - (gpt.trace ? 0 : 1);
}

/* From the first of a case's executions to its last: in between nothing is enabled, which
 * takes the host a while and may take memory of the device. NULL, or why not. */
static const char *gpt_enable(void)
{
    size_t i;
    for (i = 0; i < gpt_kinds_wanted() && !gpt_cupti.collecting; i++) {
        CUptiResult result = gpt_cupti.enable(gpt_kinds[i]);
        if (result != CUPTI_SUCCESS)
            return gpt_cupti_text(result);
    }
    gpt_cupti.collecting = 1;
    return NULL;
}

static void gpt_disable(void)
{
    size_t i;
    for (i = 0; i < gpt_kinds_wanted() && gpt_cupti.collecting; i++)
        (void)gpt_cupti.disable(gpt_kinds[i]);
    gpt_cupti.collecting = 0;
}

/* What came before, the flushing kernels among it, is dropped. */
static const char *gpt_start_collecting(void)
{
    const char *why = gpt_enable();
    CUptiResult result = why ? CUPTI_SUCCESS : gpt_cupti.flush(1);
    gpt_read_buffers(0);
    if (!why && result != CUPTI_SUCCESS)
        why = gpt_cupti_text(result);
    return why;
}

static const char *gpt_stop_collecting(void)
{
    CUptiResult result = gpt_cupti.flush(1);
    gpt_read_buffers(1);
    return result == CUPTI_SUCCESS ? NULL : gpt_cupti_text(result);
}

static int gpt_look_up(const char *symbol, void *function)
{
    void *address = dlsym(gpt_cupti.library, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* The library of the same major version as the headers: records grow with it. A variable,
 * so that a test can ask for one that is nowhere. */
static int gpt_cupti_major = CUDART_VERSION / 1000;

static void *gpt_load_cupti(void)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/",
                                          "/usr/local/cuda/extras/CUPTI/lib64/"};
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    char path[4200];
    void *library = NULL;
    size_t i;
    for (i = 0; i < sizeof variables / sizeof variables[0] && !library; i++)
        if (getenv(variables[i])) {
            snprintf(path, sizeof path, "%s/lib64/libcupti.so.%d", getenv(variables[i]),
                     gpt_cupti_major);
            library = dlopen(path, RTLD_NOW);
        }
    for (i = 0; i < sizeof folders / sizeof folders[0] && !library; i++) {
        snprintf(path, sizeof path, "%slibcupti.so.%d", folders[i], gpt_cupti_major);
        library = dlopen(path, RTLD_NOW);
    }
    return library;
}

static void gpt_load_demangler(void)
{
    void *address;
    gpt_cupti.demangler = dlopen("libstdc++.so.6", RTLD_NOW);
    address = gpt_cupti.demangler ? dlsym(gpt_cupti.demangler, "__cxa_demangle") : NULL;
    memcpy(&gpt_cupti.demangle, &address, sizeof address);
}

static int gpt_find_functions(void)
{
    return gpt_look_up("cuptiActivityRegisterCallbacks", &gpt_cupti.callbacks) &&
           gpt_look_up("cuptiActivityEnable", &gpt_cupti.enable) &&
           gpt_look_up("cuptiActivityDisable", &gpt_cupti.disable) &&
           gpt_look_up("cuptiActivityFlushAll", &gpt_cupti.flush) &&
           gpt_look_up("cuptiActivityGetNextRecord", &gpt_cupti.next) &&
           gpt_look_up("cuptiActivityGetNumDroppedRecords", &gpt_cupti.dropped) &&
           gpt_look_up("cuptiGetResultString", &gpt_cupti.text) &&
           gpt_look_up("cuptiGetTimestamp", &gpt_cupti.timestamp) &&
           gpt_look_up("cuptiGetCallbackName", &gpt_cupti.call_name) &&
           gpt_look_up("cuptiGetVersion", &gpt_cupti.version);
}

static void gpt_describe_device(void)
{
    struct cudaOccDeviceProp *device = &gpt_cupti.device;
    struct cudaDeviceProp properties;
    int ordinal = 0, khz = 0, bits = 0;
    memset((void *)device, 0, sizeof *device);
    gpt.peak_gb_per_s = 0;
    if (cudaGetDevice(&ordinal) != cudaSuccess ||
        cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess)
        return;
    device->computeMajor = properties.major;
    device->computeMinor = properties.minor;
    device->maxThreadsPerBlock = properties.maxThreadsPerBlock;
    device->maxThreadsPerMultiprocessor = properties.maxThreadsPerMultiProcessor;
    device->regsPerBlock = properties.regsPerBlock;
    device->regsPerMultiprocessor = properties.regsPerMultiprocessor;
    device->warpSize = properties.warpSize;
    device->sharedMemPerBlock = properties.sharedMemPerBlock;
    device->sharedMemPerMultiprocessor = properties.sharedMemPerMultiprocessor;
    device->numSms = properties.multiProcessorCount;
    device->sharedMemPerBlockOptin = properties.sharedMemPerBlockOptin;
    device->reservedSharedMemPerBlock = properties.reservedSharedMemPerBlock;
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, ordinal) == cudaSuccess &&
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, ordinal) == cudaSuccess)
        gpt.peak_gb_per_s = 2.0 * khz * bits / 8 / 1e6; /* two transfers a clock */
}

/* NULL, or why not. */
static const char *gpt_open_cupti(void)
{
    CUptiResult result;
    pthread_mutex_init(&gpt_cupti.lock, NULL);
    gpt_cupti.library = gpt_load_cupti();
    if (!gpt_cupti.library)
        return "libcupti is not found (LD_LIBRARY_PATH or CUDA_HOME names its folder)";
    if (!gpt_find_functions())
        return "this libcupti lacks functions of the activity API";
    result = gpt_cupti.callbacks(gpt_give_buffer, gpt_take_buffer);
    if (result != CUPTI_SUCCESS)
        return gpt_cupti_text(result);
    gpt_load_demangler();
    gpt_describe_device();
    gpt.on_gpu = "CUPTI";
    return NULL;
}

/* The library stays loaded: its threads may still run in it. */
static void gpt_close_cupti(void)
{
    if (gpt_cupti.demangler)
        dlclose(gpt_cupti.demangler);
    gpt_cupti.demangler = NULL;
    gpt_disable();
    while (gpt_cupti.spare) {
        gpt_buffer *buffer = gpt_cupti.spare;
        gpt_cupti.spare = buffer->next;
        free(buffer->records);
        free(buffer);
        gpt_cupti.made--;
    }
}

/* ==== occupancy =========================================================== */

static const char *gpt_limit_name(unsigned limits)
{
    if (limits & OCC_LIMIT_WARPS)
        return ""; /* all that it can hold */
    if (limits & OCC_LIMIT_REGISTERS)
        return "registers";
    if (limits & OCC_LIMIT_SHARED_MEMORY)
        return "shared memory";
    return limits & OCC_LIMIT_BLOCKS ? "blocks" : "barriers";
}

/* Theoretical: warps that fit a multiprocessor, over those that it can hold (the
 * toolkit's own calculator, cuda_occupancy.h). */
static void gpt_find_occupancy(gpt_group *group)
{
    const gpt_event *kernel = group->first;
    struct cudaOccDeviceState state;
    struct cudaOccFuncAttributes attributes;
    struct cudaOccResult result;
    double threads = gpt_count_of(kernel->block);
    memset((void *)&state, 0, sizeof state);
    memset((void *)&attributes, 0, sizeof attributes);
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    attributes.maxThreadsPerBlock = INT32_MAX;
    attributes.numRegs = (int)kernel->registers;
    attributes.sharedSizeBytes = kernel->shared_bytes;
    attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
    attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    attributes.maxDynamicSharedSizeBytes = kernel->dynamic_bytes;
    attributes.numBlockBarriers = 1;
    if (gpt_cupti.device.numSms == 0 ||
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpt_cupti.device, &attributes, &state,
                                                (int)threads, kernel->dynamic_bytes) !=
            CUDA_OCC_SUCCESS ||
        result.activeBlocksPerMultiprocessor <= 0)
        return;
    group->occupancy = result.activeBlocksPerMultiprocessor * threads /
                       gpt_cupti.device.maxThreadsPerMultiprocessor;
    group->limit = gpt_limit_name(result.limitingFactors);
    group->waves = gpt_count_of(kernel->grid) /
                   ((double)result.activeBlocksPerMultiprocessor * gpt_cupti.device.numSms);
}

#else /* no CUPTI where this was compiled */

static uint64_t gpt_clock_ns(void)
{
    return gpt_now_ns();
}

static const char *gpt_start_collecting(void)
{
    return NULL;
}

static void gpt_disable(void)
{
}

static const char *gpt_stop_collecting(void)
{
    return NULL;
}

static const char *gpt_open_cupti(void)
{
    return "this program was built where the toolkit had no headers of CUPTI";
}

static void gpt_close_cupti(void)
{
}

static void gpt_find_occupancy(gpt_group *group)
{
    (void)group;
}

#endif

/* ==== a case's summary ==================================================== */

static int gpt_same_three(const unsigned *a, const unsigned *b)
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static void gpt_add_to_group(gpt_group *group, const gpt_event *event)
{
    uint64_t ns = gpt_duration(event);
    if (group->count == 0) {
        group->first = event;
        group->least_ns = ns;
    }
    group->other_grids |= !gpt_same_three(group->first->grid, event->grid);
    group->other_blocks |= !gpt_same_three(group->first->block, event->block);
    group->least_ns = ns < group->least_ns ? ns : group->least_ns;
    group->most_ns = ns > group->most_ns ? ns : group->most_ns;
    group->total_ns += ns;
    group->bytes += event->bytes;
    group->count++;
}

static int gpt_by_total(const void *left, const void *right)
{
    const gpt_group *a = (const gpt_group *)left, *b = (const gpt_group *)right;
    if (a->total_ns != b->total_ns)
        return a->total_ns < b->total_ns ? 1 : -1;
    return strcmp(gpt_name(a->first), gpt_name(b->first));
}

static int gpt_by_start(const void *left, const void *right)
{
    const gpt_event *a = *(const gpt_event *const *)left, *b = *(const gpt_event *const *)right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Time covered by at least one of the events, which may overlap on several streams. */
static void gpt_measure_span(gpt_summary *summary, const gpt_event **events, size_t count)
{
    uint64_t end = 0;
    size_t i;
    qsort(events, count, sizeof *events, gpt_by_start);
    for (i = 0; i < count; i++) {
        uint64_t from = events[i]->start_ns > end ? events[i]->start_ns : end;
        if (i > 0 && from > end && !strcmp(gpt_name(events[i]), gpt_from_host))
            summary->input_ns += from - end;
        summary->busy_ns += events[i]->end_ns > from ? events[i]->end_ns - from : 0;
        end = events[i]->end_ns > end ? events[i]->end_ns : end;
    }
    summary->span_ns = count > 0 ? end - events[0]->start_ns : 0;
}

/* On a GPU what the device did; on the CPU the ranges. */
static int gpt_is_counted(const gpt_event *event)
{
    return gpt.on_gpu ? gpt_is_device_work(event) : event->kind == GPT_RANGE;
}

static gpt_group *gpt_find_group(gpt_summary *summary, const gpt_event *event)
{
    size_t i;
    for (i = 0; i < summary->count; i++)
        if (summary->groups[i].first->kind == event->kind &&
            summary->groups[i].first->name == event->name)
            return &summary->groups[i];
    return &summary->groups[summary->count++];
}

static int gpt_by_correlation(const void *left, const void *right)
{
    const gpt_event *a = *(const gpt_event *const *)left, *b = *(const gpt_event *const *)right;
    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* What one launch of a graph enqueued has the same correlation. Leaves the events so sorted. */
static void gpt_count_graphs(gpt_summary *summary, const gpt_event **events, size_t count)
{
    size_t i;
    qsort(events, count, sizeof *events, gpt_by_correlation);
    for (i = 0; i < count; i++)
        if (events[i]->graph) {
            summary->of_graphs++;
            summary->graph_launches += i == 0 || events[i - 1]->correlation != events[i]->correlation;
        }
}

/* 0, or -1 when memory ran out. gpt_free_summary is due. */
static int gpt_summarize(gpt_summary *summary)
{
    const gpt_event **counted = (const gpt_event **)malloc((gpt.count + 1) * sizeof *counted);
    size_t kinds = sizeof gpt_kind_names / sizeof gpt_kind_names[0], count = 0, i;
    memset(summary, 0, sizeof *summary);
    summary->groups =
        (gpt_group *)calloc(kinds * gpt.name_count + 1, sizeof *summary->groups);
    if (!counted || !summary->groups) {
        free(counted);
        return -1;
    }
    for (i = 0; i < gpt.count; i++)
        if (gpt_is_counted(&gpt.events[i])) {
            const gpt_event *event = &gpt.events[i];
            gpt_add_to_group(gpt_find_group(summary, event), event);
            summary->total_ns += gpt_is_in_total(event) ? gpt_duration(event) : 0;
            counted[count++] = event;
        }
    summary->launches = count;
    gpt_measure_span(summary, counted, count);
    gpt_count_graphs(summary, counted, count);
    for (i = 0; i < summary->count; i++)
        if (summary->groups[i].first->kind == GPT_KERNEL)
            gpt_find_occupancy(&summary->groups[i]);
    qsort(summary->groups, summary->count, sizeof *summary->groups, gpt_by_total);
    free(counted);
    return 0;
}

static void gpt_free_summary(gpt_summary *summary)
{
    free(summary->groups);
    summary->groups = NULL;
}

/* A column of the row that the executions are held against; "" if there is none. */
static const char *gpt_timed(const gpubench *bench, const gpubench_case *one, const char *column)
{
    static const char *const keys[] = {"case", "variant", "dtype", "params", "mode", "status"};
    const char *const wanted[] = {one->name, one->variant, one->dtype, one->params, gpt.mode, "ok"};
    const size_t count = sizeof keys / sizeof keys[0];
    size_t row, i;
    for (row = 0; row < gpubench_row_count(bench); row++) {
        for (i = 0; i < count && !strcmp(gpubench_value(bench, row, keys[i]), wanted[i]); i++)
            continue;
        if (i == count)
            return gpubench_value(bench, row, column);
    }
    return "";
}

static double gpt_timed_number(const gpubench *bench, const gpubench_case *one, const char *column)
{
    double value;
    return gpubench_parse_number(gpt_timed(bench, one, column), &value) == 0 ? value : 0;
}

/* What the timed median says that the work itself takes: less what an empty launch takes
 * in the same way, whose kernel is work too and comes back, as it was watched. 0: unknown. */
static double gpt_own_us(const gpubench *bench, const gpubench_case *one)
{
    double timed_us = gpt_timed_number(bench, one, "median_us");
    double empty_us = gpt_timed_number(bench, one, "overhead_us");
    double own_us = timed_us - empty_us + (double)gpt.empty_ns / 1e3;
    return timed_us > 0 && empty_us > 0 && gpt.empty_ns > 0 && own_us > 0 ? own_us : 0;
}

/* The case tells its work as a whole, so a rate is known where one kernel does it. */
static double gpt_rate(const gpt_summary *summary, const gpt_group *group, uint64_t work,
                       double per)
{
    int alone = group->first->kind == GPT_KERNEL && group->count == 1 && summary->launches == 1;
    if (group->first->kind != GPT_KERNEL && group->bytes > 0)
        return 0;
    return alone && group->total_ns > 0 ? (double)work / (double)group->total_ns / per : 0;
}

static double gpt_gb_per_s(const gpt_summary *summary, const gpt_group *group,
                           const gpubench_case *one)
{
    if (group->bytes > 0 && group->total_ns > 0)
        return (double)group->bytes / (double)group->total_ns;
    return gpt_rate(summary, group, one->bytes, 1);
}

static void gpt_format_three(char *text, size_t bytes, const unsigned *three, int others)
{
    if (others)
        snprintf(text, bytes, "various");
    else if (three[2] > 1)
        snprintf(text, bytes, "%ux%ux%u", three[0], three[1], three[2]);
    else if (three[1] > 1)
        snprintf(text, bytes, "%ux%u", three[0], three[1]);
    else
        snprintf(text, bytes, "%u", three[0]);
}

/* ==== findings ============================================================ */

/* How many kernels are shorter than ns. */
static uint64_t gpt_count_shorter(double ns)
{
    uint64_t shorter = 0;
    size_t i;
    for (i = 0; i < gpt.count; i++)
        shorter += gpt.events[i].kind == GPT_KERNEL &&
                   (double)gpt_duration(&gpt.events[i]) < ns;
    return shorter;
}

static uint64_t gpt_time_of_kind(const gpt_summary *summary, int kind)
{
    uint64_t ns = 0;
    size_t i;
    for (i = 0; i < summary->count; i++)
        ns += summary->groups[i].first->kind == kind ? summary->groups[i].total_ns : 0;
    return ns;
}

/* Each has the numbers that it was found by, and where there is one the row of the model
 * suite that shows the remedy. Thresholds are where it would gain a tenth or more. */
static void gpt_print_launch_findings(const gpubench *bench, const gpubench_case *one,
                                      const gpt_summary *summary)
{
    double timed_us = gpt_timed_number(bench, one, "median_us");
    double host_us = gpt_timed_number(bench, one, "host_us");
    double empty_us = gpt_timed_number(bench, one, "overhead_us");
    uint64_t shorter = gpt_count_shorter(1e3 * empty_us);
    if (timed_us > 0 && host_us > 1.5 * timed_us && summary->launches > 1)
        fprintf(gpt.table, "  launch-bound: from an idle device the host needs %.1f us for what the "
                "device does in %.1f; a graph is launched at once (--mode graph; model.habit graph, "
                "habit=launches)\n", host_us, timed_us);
    if (shorter > 4 && 2 * shorter > summary->launches)
        fprintf(gpt.table, "  many small kernels: %llu of %llu are shorter than an empty launch's "
                "%.1f us; fused, or in a graph, they cost less (model.habit multi_tensor, "
                "habit=optimizer)\n", (unsigned long long)shorter,
                (unsigned long long)summary->launches, empty_us);
}

static void gpt_print_idle_findings(const gpubench *bench, const gpubench_case *one,
                                    const gpt_summary *summary)
{
    double span = (double)summary->span_ns, idle = span - (double)summary->busy_ns;
    double input = (double)summary->input_ns, other = idle - input;
    double copies = (double)gpt_time_of_kind(summary, GPT_COPY);
    int waits = strstr(gpt_timed(bench, one, "flags"), "ungated") != NULL;
    if (input > 0.1 * span)
        fprintf(gpt.table, "  waiting for input: nothing ran for %.1f of %.1f us in front of copies "
                "from the host; made and copied before, a batch is there (model.habit prefetched, "
                "habit=inputs)\n", input / 1e3, span / 1e3);
    if (waits && other > 0.1 * span)
        fprintf(gpt.table, "  synchronizing: the run waits for the device inside, and nothing ran "
                "for %.1f of %.1f us, as nothing can be enqueued meanwhile (model.habit every_100, "
                "habit=loss)\n", other / 1e3, span / 1e3);
    else if (other > 0.1 * span)
        fprintf(gpt.table, "  waiting: nothing ran for %.1f of %.1f us, though all was enqueued: "
                "streams that wait for each other, or for memory\n", other / 1e3, span / 1e3);
    if (copies > 0.1 * (double)summary->total_ns)
        fprintf(gpt.table, "  copying: %.1f us, %.0f %% of all work\n", copies / 1e3,
                100 * copies / (double)summary->total_ns);
}

/* A share of the memory's rate by data sheet, of the bytes that the case cannot do without:
 * where one kernel that fills the device does all of it. */
static void gpt_print_bytes_finding(const gpubench_case *one, const gpt_summary *summary,
                                    const gpt_group *group)
{
    double rate = group->bytes > 0 ? 0 : gpt_rate(summary, group, one->bytes, 1);
    double flops_per_byte = one->bytes > 0 ? (double)one->flops / (double)one->bytes : 0;
    if (rate <= 0 || gpt.peak_gb_per_s <= 0 || rate > 0.4 * gpt.peak_gb_per_s ||
        flops_per_byte > 10 || group->waves < 1 || group->total_ns < 10000)
        return;
    fprintf(gpt.table, "  far from the memory's rate: %.60s moves the %.1f MB that it must at %.0f "
            "GB/s, %.0f %% of %.0f, though it fills the device: accesses that are not coalesced, "
            "data that are moved again, or waiting\n", gpt_shown(gpt_name(group->first)),
            (double)one->bytes / 1e6, rate, 100 * rate / gpt.peak_gb_per_s, gpt.peak_gb_per_s);
}

/* Of a kernel that does a fifth of the work or more and leaves most of the device empty. */
static void gpt_print_findings_of_kernel(const gpubench_case *one, const gpt_summary *summary,
                                         const gpt_group *group)
{
    double share = (double)group->total_ns / (double)summary->total_ns;
    if (group->first->kind != GPT_KERNEL || share < 0.2 || group->waves <= 0)
        return;
    if (group->waves < 0.5)
        fprintf(gpt.table, "  a small grid: %.60s (%.0f %%) has %.0f blocks, which fill %.2f of what "
                "the device holds at once\n", gpt_shown(gpt_name(group->first)), 100 * share,
                gpt_count_of(group->first->grid), group->waves);
    else if (group->waves > 1 && group->waves < 1.5)
        fprintf(gpt.table, "  a short last wave: %.60s (%.0f %%) needs %.2f waves, so the device is "
                "partly empty in every second one\n", gpt_shown(gpt_name(group->first)), 100 * share,
                group->waves);
    if (group->occupancy < 0.5 && group->limit && !strcmp(group->limit, "registers"))
        fprintf(gpt.table, "  low occupancy: %.60s (%.0f %%, %.1f us) has %u registers a thread, so "
                "that %.0f %% of a multiprocessor's warps fit; it pays unless its threads have "
                "enough to do meanwhile\n", gpt_shown(gpt_name(group->first)), 100 * share,
                (double)group->total_ns / 1e3, group->first->registers, 100 * group->occupancy);
    gpt_print_bytes_finding(one, summary, group);
}

static void gpt_print_findings(const gpubench *bench, const gpubench_case *one,
                               const gpt_summary *summary)
{
    size_t i;
    if (!gpt.on_gpu || summary->total_ns == 0)
        return;
    gpt_print_launch_findings(bench, one, summary);
    gpt_print_idle_findings(bench, one, summary);
    for (i = 0; i < summary->count; i++)
        gpt_print_findings_of_kernel(one, summary, &summary->groups[i]);
}

/* ==== the table =========================================================== */

enum { GPT_TOP = 20 };

/* What the sum is held against, and how far the executions were apart. */
static void gpt_print_timed(const gpubench *bench, const gpubench_case *one)
{
    const gpt_execution *least = gpt.executions, *most = least + gpt.execution_count - 1;
    double timed_us = gpt_timed_number(bench, one, "median_us"), own_us = gpt_own_us(bench, one);
    if (timed_us > 0)
        fprintf(gpt.table, "  timed, %s: %.2f us", gpt.mode, timed_us);
    if (own_us > 0)
        fprintf(gpt.table, "; %.2f with an empty kernel's %.2f in place of an empty launch's %.2f",
                own_us, (double)gpt.empty_ns / 1e3, gpt_timed_number(bench, one, "overhead_us"));
    if (timed_us > 0)
        fputc('\n', gpt.table);
    if (gpt.execution_count > 1)
        fprintf(gpt.table, "  the median of %zu executions of %.2f to %.2f us\n",
                gpt.execution_count, (double)least->total_ns / 1e3, (double)most->total_ns / 1e3);
}

static void gpt_print_head(const gpubench *bench, const gpubench_case *one,
                           const gpt_summary *summary)
{
    double idle = summary->span_ns > 0 ? 1 - (double)summary->busy_ns / (double)summary->span_ns : 0;
    fprintf(gpt.table, "\n%s %s %s %s\n  %s: %llu, %.2f us in all", gpt_shown(one->name),
            gpt_shown(one->variant), gpt_shown(one->dtype), gpt_shown(one->params),
            gpt.on_gpu ? "kernels, copies and memsets" : "ranges",
            (unsigned long long)summary->launches, (double)summary->total_ns / 1e3);
    if (gpt.on_gpu)
        fprintf(gpt.table, "; %.2f us from the first to the last, %.0f %% of it idle",
                (double)summary->span_ns / 1e3, 100 * idle);
    fputc('\n', gpt.table);
    if (summary->of_graphs > 0)
        fprintf(gpt.table, "  %llu of them by %llu %s of a graph\n",
                (unsigned long long)summary->of_graphs, (unsigned long long)summary->graph_launches,
                summary->graph_launches == 1 ? "launch" : "launches");
    gpt_print_timed(bench, one);
    fputc('\n', gpt.table);
}

static void gpt_print_number(double value, int width, const char *format)
{
    char text[32] = "";
    if (value > 0)
        snprintf(text, sizeof text, format, value);
    fprintf(gpt.table, " %*s", width, text);
}

/* What only a kernel or a copy has. */
static void gpt_print_device_columns(const gpubench_case *one, const gpt_summary *summary,
                                     const gpt_group *group)
{
    const gpt_event *first = group->first;
    char grid[48] = "", block[48] = "";
    if (first->kind == GPT_KERNEL) {
        gpt_format_three(grid, sizeof grid, first->grid, group->other_grids);
        gpt_format_three(block, sizeof block, first->block, group->other_blocks);
    }
    fprintf(gpt.table, " %12s %9s", grid, block);
    gpt_print_number(first->registers, 5, "%.0f");
    gpt_print_number((first->shared_bytes + first->dynamic_bytes) / 1024.0, 7, "%.1f");
    gpt_print_number(100 * group->occupancy, 6, "%.0f");
    fprintf(gpt.table, " %-13s", group->limit ? group->limit : "");
    gpt_print_number(group->waves, 7, "%.2f");
    gpt_print_number(gpt_gb_per_s(summary, group, one), 7, "%.0f");
    gpt_print_number(gpt_rate(summary, group, one->flops, 1e3), 8, "%.2f");
}

static void gpt_print_group(const gpubench_case *one, const gpt_summary *summary,
                            const gpt_group *group)
{
    double whole = (double)(gpt.on_gpu ? summary->total_ns : summary->span_ns);
    double total = (double)group->total_ns, count = (double)group->count;
    fprintf(gpt.table, "  %5.1f %10.2f %8.0f %10.2f", whole > 0 ? 100 * total / whole : 0,
            total / 1e3, count, total / 1e3 / count);
    if (gpt.on_gpu)
        gpt_print_device_columns(one, summary, group);
    fprintf(gpt.table, "  %.90s\n", gpt_shown(gpt_name(group->first)));
}

static void gpt_print_summary(const gpubench *bench, const gpubench_case *one,
                              const gpt_summary *summary)
{
    size_t i;
    gpt_print_head(bench, one, summary);
    fprintf(gpt.table, "  %5s %10s %8s %10s", "%", "us", "times", "mean us");
    if (gpt.on_gpu)
        fprintf(gpt.table, " %12s %9s %5s %7s %6s %-13s %7s %7s %8s", "grid", "block", "regs",
                "KiB", "occ. %", "limited by", "waves", "GB/s", "TFLOP/s");
    fputs("  what\n", gpt.table);
    for (i = 0; i < summary->count && i < GPT_TOP; i++)
        gpt_print_group(one, summary, &summary->groups[i]);
    if (summary->count > GPT_TOP)
        fprintf(gpt.table, "  and %zu more (--kernels-csv has all)\n", summary->count - GPT_TOP);
    gpt_print_findings(bench, one, summary);
}

/* ==== CSV ================================================================= */

static void gpt_put_field(FILE *file, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fprintf(file, "%s,", text);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    fputs("\",", file);
}

/* Empty for 0, which says that it does not apply. */
static void gpt_put_number(FILE *file, double value)
{
    char text[32] = "";
    if (value > 0)
        gpubench_format_number(value, text);
    fprintf(file, "%s,", text);
}

static void gpt_write_csv_header(void)
{
    fputs("kernels_schema,suite,case,variant,backend,dtype,params,campaign,kind,name,launches,"
          "total_us,mean_us,min_us,max_us,share,grid,block,registers,shared_bytes,occupancy,limit,"
          "waves,bytes,gb_per_s,tflop_per_s,span_us,busy_us,case_us,mode,executions,empty_us,own_us,"
          "graph_launches,"
          "device,uuid,git\n",
          gpt.csv);
}

static void gpt_write_kernel_columns(const gpt_group *group)
{
    const gpt_event *first = group->first;
    char grid[48] = "", block[48] = "";
    if (first->kind == GPT_KERNEL) {
        gpt_format_three(grid, sizeof grid, first->grid, group->other_grids);
        gpt_format_three(block, sizeof block, first->block, group->other_blocks);
    }
    fprintf(gpt.csv, "%s,%s,", grid, block);
    gpt_put_number(gpt.csv, first->registers);
    gpt_put_number(gpt.csv, (double)first->shared_bytes + first->dynamic_bytes);
    gpt_put_number(gpt.csv, group->occupancy);
    fprintf(gpt.csv, "%s,", group->limit ? group->limit : "");
    gpt_put_number(gpt.csv, group->waves);
    gpt_put_number(gpt.csv, (double)group->bytes);
}

static void gpt_write_group(const gpubench *bench, const gpubench_case *one,
                            const gpt_summary *summary, const gpt_group *group)
{
    static const char *const from_row[] = {"suite", "case", "variant", "backend",
                                           "dtype", "params", "campaign"};
    double whole = (double)(gpt.on_gpu ? summary->total_ns : summary->span_ns);
    size_t i;
    fputs("1,", gpt.csv);
    for (i = 0; i < sizeof from_row / sizeof from_row[0]; i++)
        gpt_put_field(gpt.csv, gpt_timed(bench, one, from_row[i]));
    fprintf(gpt.csv, "%s,", gpt_kind_names[group->first->kind]);
    gpt_put_field(gpt.csv, gpt_name(group->first));
    fprintf(gpt.csv, "%llu,", (unsigned long long)group->count);
    gpt_put_number(gpt.csv, (double)group->total_ns / 1e3);
    gpt_put_number(gpt.csv, (double)group->total_ns / 1e3 / (double)group->count);
    gpt_put_number(gpt.csv, (double)group->least_ns / 1e3);
    gpt_put_number(gpt.csv, (double)group->most_ns / 1e3);
    gpt_put_number(gpt.csv, whole > 0 ? (double)group->total_ns / whole : 0);
    gpt_write_kernel_columns(group);
    gpt_put_number(gpt.csv, gpt_gb_per_s(summary, group, one));
    gpt_put_number(gpt.csv, gpt_rate(summary, group, one->flops, 1e3));
    gpt_put_number(gpt.csv, (double)summary->span_ns / 1e3);
    gpt_put_number(gpt.csv, (double)summary->busy_ns / 1e3);
    gpt_put_field(gpt.csv, gpt_timed(bench, one, "median_us"));
    fprintf(gpt.csv, "%s,%zu,", gpt.mode, gpt.execution_count);
    gpt_put_number(gpt.csv, (double)gpt.empty_ns / 1e3);
    gpt_put_number(gpt.csv, gpt_own_us(bench, one));
    gpt_put_number(gpt.csv, (double)summary->graph_launches);
    gpt_put_field(gpt.csv, gpt_timed(bench, one, "device"));
    gpt_put_field(gpt.csv, gpt_timed(bench, one, "uuid"));
    fprintf(gpt.csv, "%s\n", gpt_timed(bench, one, "git"));
}

/* ==== memory ============================================================== */

enum { GPT_MOST_PARTS = 64 };

/* The parts of one category, or of what a change would make of it. */
typedef struct gpt_category {
    char name[48], change[48];
    uint64_t bytes, parts;
    double at_us; /* of the first */
} gpt_category;

typedef struct gpt_memory {
    const gpubench *bench;
    const gpubench_case *one;
    gpt_category categories[GPT_MOST_PARTS];
    size_t count;
} gpt_memory;

static gpt_category *gpt_find_category(gpt_memory *memory, const gpubench_part *part)
{
    const char *change = part->change ? part->change : "";
    gpt_category *found;
    size_t i;
    for (i = 0; i < memory->count; i++)
        if (!strncmp(memory->categories[i].name, part->category, sizeof found->name - 1) &&
            !strncmp(memory->categories[i].change, change, sizeof found->change - 1))
            return &memory->categories[i];
    if (memory->count == GPT_MOST_PARTS) /* the rest is the last one's */
        return &memory->categories[GPT_MOST_PARTS - 1];
    found = &memory->categories[memory->count++];
    memset(found, 0, sizeof *found);
    snprintf(found->name, sizeof found->name, "%s", part->category);
    snprintf(found->change, sizeof found->change, "%s", change);
    found->at_us = part->at_us;
    return found;
}

static void gpt_add_part(void *context, const gpubench_part *part)
{
    gpt_category *category = gpt_find_category((gpt_memory *)context, part);
    category->bytes += part->bytes;
    category->at_us = part->at_us < category->at_us ? part->at_us : category->at_us;
    category->parts++;
}

static uint64_t gpt_bytes_of_change(const gpt_memory *memory, const char *change)
{
    uint64_t bytes = 0;
    size_t i;
    for (i = 0; i < memory->count; i++)
        bytes += strcmp(memory->categories[i].change, change) ? 0 : memory->categories[i].bytes;
    return bytes;
}

/* As it is in front, then the changes in their order; in each the most first. */
static int gpt_by_bytes(const void *left, const void *right)
{
    const gpt_category *a = (const gpt_category *)left, *b = (const gpt_category *)right;
    int order = strcmp(a->change, b->change);
    if (order == 0)
        order = (a->bytes < b->bytes) - (a->bytes > b->bytes);
    return order ? order : strcmp(a->name, b->name);
}

/* The bytes of a category without a change. */
static uint64_t gpt_bytes_as_is(const gpt_memory *memory, const char *name)
{
    size_t i;
    for (i = 0; i < memory->count; i++)
        if (!*memory->categories[i].change && !strcmp(memory->categories[i].name, name))
            return memory->categories[i].bytes;
    return 0;
}

static const double gpt_mib = 1048576;

static void gpt_print_change(const gpt_memory *memory, size_t first)
{
    const char *change = memory->categories[first].change;
    size_t i;
    fprintf(gpt.memory, "  %s would take %.2f MiB, computed:", gpt_shown(change),
            (double)gpt_bytes_of_change(memory, change) / gpt_mib);
    for (i = first; i < memory->count && !strcmp(memory->categories[i].change, change); i++)
        fprintf(gpt.memory, "%s %s %.2f (%.2f)", i > first ? "," : "",
                gpt_shown(memory->categories[i].name),
                (double)memory->categories[i].bytes / gpt_mib,
                (double)gpt_bytes_as_is(memory, memory->categories[i].name) / gpt_mib);
    fputs("\n", gpt.memory);
}

static void gpt_print_memory(const gpt_memory *memory)
{
    const gpubench_case *one = memory->one;
    double whole = (double)gpt_bytes_of_change(memory, "");
    double driver = gpt_timed_number(memory->bench, one, "device_bytes");
    size_t i;
    fprintf(gpt.memory, "\n%s %s %s %s\n  memory: %.2f MiB, all of it from setup to teardown",
            gpt_shown(one->name), gpt_shown(one->variant), gpt_shown(one->dtype),
            gpt_shown(one->params), whole / gpt_mib);
    if (driver > 0)
        fprintf(gpt.memory, "; setup took %.2f MiB", driver / gpt_mib);
    fprintf(gpt.memory, "\n\n  %5s %12s %6s %12s  what\n", "%", "MiB", "parts", "since us");
    for (i = 0; i < memory->count; i++) {
        const gpt_category *category = &memory->categories[i];
        if (!*category->change)
            fprintf(gpt.memory, "  %5.1f %12.2f %6llu %12.1f  %s\n",
                    whole > 0 ? 100 * (double)category->bytes / whole : 0,
                    (double)category->bytes / gpt_mib, (unsigned long long)category->parts,
                    category->at_us, gpt_shown(category->name));
        else if (i == 0 || strcmp(memory->categories[i - 1].change, category->change))
            gpt_print_change(memory, i);
    }
}

static void gpt_write_memory_header(void)
{
    fputs("memory_schema,suite,case,variant,backend,dtype,params,campaign,change,category,bytes,"
          "at_us,device_bytes,device,uuid,git\n",
          gpt.memory_csv);
}

static void gpt_write_part(void *context, const gpubench_part *part)
{
    static const char *const from_row[] = {"suite", "case", "variant", "backend",
                                           "dtype", "params", "campaign"};
    const gpt_memory *memory = (const gpt_memory *)context;
    size_t i;
    fputs("1,", gpt.memory_csv);
    for (i = 0; i < sizeof from_row / sizeof from_row[0]; i++)
        gpt_put_field(gpt.memory_csv, gpt_timed(memory->bench, memory->one, from_row[i]));
    gpt_put_field(gpt.memory_csv, part->change ? part->change : "");
    gpt_put_field(gpt.memory_csv, part->category);
    fprintf(gpt.memory_csv, "%llu,", (unsigned long long)part->bytes);
    gpt_put_number(gpt.memory_csv, part->change ? 0 : part->at_us);
    gpt_put_field(gpt.memory_csv, gpt_timed(memory->bench, memory->one, "device_bytes"));
    gpt_put_field(gpt.memory_csv, gpt_timed(memory->bench, memory->one, "device"));
    gpt_put_field(gpt.memory_csv, gpt_timed(memory->bench, memory->one, "uuid"));
    fprintf(gpt.memory_csv, "%s\n", gpt_timed(memory->bench, memory->one, "git"));
}

static void gpt_tell_memory(gpubench *bench, const gpubench_case *one)
{
    gpt_memory memory;
    memset(&memory, 0, sizeof memory);
    memory.bench = bench;
    memory.one = one;
    gpubench_for_each_part(bench, gpt_add_part, &memory);
    qsort(memory.categories, memory.count, sizeof *memory.categories, gpt_by_bytes);
    if (gpt.memory)
        gpt_print_memory(&memory);
    if (gpt.memory_csv)
        gpubench_for_each_part(bench, gpt_write_part, &memory);
}

/* ==== the timeline ======================================================== */

/* The Chrome trace event format: complete events ("X"), metadata ("M"), counters ("C").
 * Process 1 is the host: its ranges and its calls. Process 2 is the device: a thread for
 * each stream, and thread 0 for where the ranges' work was. */
enum { GPT_HOST = 1, GPT_DEVICE = 2, GPT_RANGES_THREAD = 0, GPT_CALLS_THREAD = 1 };
enum { GPT_GRAPHS_THREAD = 99999 }; /* no stream has so high a number */

/* The bytes of the UTF-8 sequence that begins at text, 0 where there is none: cut short,
 * longer than needed, a surrogate, or beyond Unicode. */
static int gpt_utf8_bytes(const unsigned char *text)
{
    int bytes = text[0] < 0x80   ? 1
                : text[0] < 0xc2 ? 0
                : text[0] < 0xe0 ? 2
                : text[0] < 0xf0 ? 3
                : text[0] < 0xf5 ? 4
                                 : 0;
    int i;
    for (i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return bytes;
}

/* Names are anybody's: what is no UTF-8 becomes U+FFFD. */
static void gpt_put_json(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    putc('"', gpt.trace);
    while (*at) {
        int bytes = gpt_utf8_bytes(at);
        if (bytes == 0)
            fputs("\\ufffd", gpt.trace);
        else if (*at == '"' || *at == '\\')
            fprintf(gpt.trace, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(gpt.trace, "\\u%04x", *at);
        else
            fwrite(at, 1, (size_t)bytes, gpt.trace);
        at += bytes ? bytes : 1;
    }
    putc('"', gpt.trace);
}

/* Microseconds with a point. */
static void gpt_put_us(const char *name, uint64_t ns)
{
    fprintf(gpt.trace, ",\"%s\":%llu.%03llu", name, (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

/* Readers hold times as doubles, which have no nanoseconds of today's date. */
static uint64_t gpt_since_origin(uint64_t ns)
{
    return ns > gpt.origin_ns ? ns - gpt.origin_ns : 0;
}

static void gpt_begin_event(const char *phase, int process, unsigned thread, const char *name)
{
    fprintf(gpt.trace, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u,\"name\":",
            gpt.first_event ? "" : ",", phase, process, thread);
    gpt.first_event = 0;
    gpt_put_json(name);
}

static void gpt_name_track(const char *what, int process, unsigned thread, const char *name)
{
    gpt_begin_event("M", process, thread, what);
    fputs(",\"args\":{\"name\":", gpt.trace);
    gpt_put_json(name);
    fputs("}}", gpt.trace);
}

/* ---- lanes: spans of one track nest or follow each other, or readers drop them ---- */

enum { GPT_MOST_NESTED = 16, GPT_LANE = 100000 }; /* from one lane's thread to the next */

typedef struct gpt_lane {
    int process, nested;
    unsigned thread, number;
    uint64_t latest_ns; /* start of a span of its */
    uint64_t ends[GPT_MOST_NESTED];
} gpt_lane;

/* Whether the span fits in: behind all that is there, or inside the last. Takes it. */
static int gpt_takes(gpt_lane *lane, uint64_t start_ns, uint64_t end_ns)
{
    if (start_ns < lane->latest_ns)
        return 0; /* what it may overlap is not known any more */
    while (lane->nested > 0 && lane->ends[lane->nested - 1] <= start_ns)
        lane->nested--;
    if (lane->nested == GPT_MOST_NESTED ||
        (lane->nested > 0 && lane->ends[lane->nested - 1] < end_ns))
        return 0;
    lane->ends[lane->nested++] = end_ns;
    lane->latest_ns = start_ns;
    return 1;
}

static void gpt_name_lane(const gpt_lane *lane);

/* The thread that a span goes to: the track's own, or one more of its lanes. */
static unsigned gpt_place(int process, unsigned thread, uint64_t start_ns, uint64_t end_ns)
{
    void *lanes = gpt.lanes;
    unsigned number = 0;
    gpt_lane *lane;
    size_t i;
    for (i = 0; i < gpt.lane_count; i++) {
        lane = &gpt.lanes[i];
        if (lane->process != process || lane->thread != thread)
            continue;
        if (gpt_takes(lane, start_ns, end_ns))
            return thread + lane->number * GPT_LANE;
        number++;
    }
    if (!gpt_reserve(&lanes, gpt.lane_count, &gpt.lane_capacity, sizeof *gpt.lanes))
        return thread;
    gpt.lanes = (gpt_lane *)lanes;
    lane = &gpt.lanes[gpt.lane_count++];
    memset(lane, 0, sizeof *lane);
    lane->process = process;
    lane->thread = thread;
    lane->number = number;
    gpt_name_lane(lane);
    (void)gpt_takes(lane, start_ns, end_ns);
    return thread + number * GPT_LANE;
}

/* What is beyond is counted and left out: readers give up on files of some 250 MB. 0: left
 * out. */
enum { GPT_MOST_SPANS = 1000000 };

static int gpt_put_span(int process, unsigned thread, const char *name, uint64_t start_ns,
                        uint64_t end_ns)
{
    unsigned lane;
    if (gpt.span_count >= GPT_MOST_SPANS) {
        gpt.spans_left_out++;
        return 0;
    }
    gpt.span_count++;
    end_ns = end_ns > start_ns ? end_ns : start_ns;
    lane = gpt_place(process, thread, start_ns, end_ns);
    gpt_begin_event("X", process, lane, name);
    gpt_put_us("ts", gpt_since_origin(start_ns));
    gpt_put_us("dur", end_ns - start_ns);
    return 1;
}

static void gpt_put_counter(const char *name, uint64_t at_ns, const char *value)
{
    if (!*value)
        return;
    gpt_begin_event("C", GPT_DEVICE, 0, name);
    gpt_put_us("ts", gpt_since_origin(at_ns));
    fprintf(gpt.trace, ",\"args\":{\"value\":%s}}", value);
}

/* The outermost range goes by the case's name, which a timeline of several cases needs. */
static const char *gpt_track_name(const gpubench_case *one, const gpt_event *event, char *text,
                                  size_t bytes)
{
    if (event->kind != GPT_RANGE || event->depth > 0)
        return gpt_name(event);
    snprintf(text, bytes, "%s %s %s %s", one->name, one->variant, one->dtype, one->params);
    return text;
}

static void gpt_write_host_event(const gpubench_case *one, const gpt_event *event)
{
    char text[512];
    if (gpt_put_span(GPT_HOST, event->kind == GPT_CALL ? GPT_CALLS_THREAD : GPT_RANGES_THREAD,
                     gpt_track_name(one, event, text, sizeof text), event->start_ns,
                     event->end_ns))
        fputc('}', gpt.trace);
}

static void gpt_write_device_event(const gpt_event *event)
{
    if (!gpt_put_span(GPT_DEVICE, event->stream + 1, gpt_name(event), event->start_ns,
                      event->end_ns))
        return;
    fputs(",\"args\":{", gpt.trace);
    if (event->graph)
        fprintf(gpt.trace, "\"graph\":%u,", event->graph);
    if (event->kind == GPT_KERNEL)
        fprintf(gpt.trace,
                "\"grid\":\"%u %u %u\",\"block\":\"%u %u %u\",\"registers\":%u,"
                "\"shared_bytes\":%u}}",
                event->grid[0], event->grid[1], event->grid[2], event->block[0], event->block[1],
                event->block[2], event->registers, event->shared_bytes + event->dynamic_bytes);
    else
        fprintf(gpt.trace, "\"bytes\":%llu}}", (unsigned long long)event->bytes);
}

/* Where on the device the work was that a range's calls enqueued. */
static void gpt_write_range_on_device(const gpubench_case *one, const gpt_event *range,
                                      const gpt_event **work, size_t count)
{
    char text[512];
    uint64_t start = UINT64_MAX, end = 0;
    size_t i, low, high;
    for (i = 0; i < gpt.count; i++) {
        const gpt_event *call = &gpt.events[i];
        if (call->kind != GPT_CALL || call->start_ns < range->start_ns ||
            call->end_ns > range->end_ns)
            continue;
        for (low = 0, high = count; low < high;) {
            size_t middle = low + (high - low) / 2;
            if (work[middle]->correlation < call->correlation)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < count && work[low]->correlation == call->correlation; low++) {
            start = work[low]->start_ns < start ? work[low]->start_ns : start;
            end = work[low]->end_ns > end ? work[low]->end_ns : end;
        }
    }
    if (end == 0)
        return;
    if (gpt_put_span(GPT_DEVICE, GPT_RANGES_THREAD, gpt_track_name(one, range, text, sizeof text),
                     start, end))
        fputc('}', gpt.trace);
}

/* From the first start to the last end of what each launch of a graph enqueued. */
static void gpt_write_graphs(const gpt_event **work, size_t count)
{
    size_t i, next;
    for (i = 0; i < count; i = next) {
        uint64_t start = work[i]->start_ns, end = work[i]->end_ns;
        for (next = i + 1; next < count && work[next]->correlation == work[i]->correlation; next++) {
            start = work[next]->start_ns < start ? work[next]->start_ns : start;
            end = work[next]->end_ns > end ? work[next]->end_ns : end;
        }
        if (work[i]->graph && gpt_put_span(GPT_DEVICE, GPT_GRAPHS_THREAD, "graph launch", start, end))
            fprintf(gpt.trace, ",\"args\":{\"graph\":%u,\"nodes\":%zu}}", work[i]->graph, next - i);
    }
}

static void gpt_write_ranges_on_device(const gpubench_case *one)
{
    const gpt_event **work = (const gpt_event **)malloc((gpt.count + 1) * sizeof *work);
    size_t count = 0, i;
    for (i = 0; i < gpt.count && work; i++)
        if (gpt_is_device_work(&gpt.events[i]))
            work[count++] = &gpt.events[i];
    if (work)
        qsort(work, count, sizeof *work, gpt_by_correlation);
    for (i = 0; i < gpt.count && work && count > 0; i++)
        if (gpt.events[i].kind == GPT_RANGE)
            gpt_write_range_on_device(one, &gpt.events[i], work, count);
    if (work)
        gpt_write_graphs(work, count);
    free(work);
}

static void gpt_memory_in_use(char *text, size_t bytes)
{
    text[0] = '\0';
#if GPUBENCH_CUDA
    {
        size_t available = 0, total = 0;
        if (gpt.on_gpu && cudaMemGetInfo(&available, &total) == cudaSuccess)
            snprintf(text, bytes, "%zu", total - available);
    }
#else
    (void)bytes;
#endif
}

/* Lanes of streams are named when they come, and the other lanes of all tracks. */
static void gpt_name_lane(const gpt_lane *lane)
{
    char track[48], name[64];
    if (lane->process == GPT_DEVICE && lane->thread == GPT_GRAPHS_THREAD)
        snprintf(track, sizeof track, "graph launches");
    else if (lane->thread == GPT_RANGES_THREAD)
        snprintf(track, sizeof track, "ranges");
    else if (lane->process == GPT_HOST)
        snprintf(track, sizeof track, "calls");
    else
        snprintf(track, sizeof track, "stream %u", lane->thread - 1);
    snprintf(name, sizeof name, lane->number ? "%s, lane %u" : "%s", track, lane->number + 1);
    gpt_name_track("thread_name", lane->process, lane->thread + lane->number * GPT_LANE, name);
}

static void gpt_start_timeline(void)
{
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", gpt.trace);
    gpt.first_event = 1;
    gpt_name_track("process_name", GPT_HOST, 0, "host");
    if (gpt.on_gpu)
        gpt_name_track("process_name", GPT_DEVICE, 0, "device");
}

/* Of two that begin together the longer one is in front: the other lies inside. */
static int gpt_by_start_and_length(const void *left, const void *right)
{
    const gpt_event *a = *(const gpt_event *const *)left, *b = *(const gpt_event *const *)right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return (a->depth > b->depth) - (a->depth < b->depth);
}

/* The case's own range first, which holds all others. */
static void gpt_write_events(const gpubench_case *one)
{
    const gpt_event **events = (const gpt_event **)malloc((gpt.count + 1) * sizeof *events);
    size_t i;
    for (i = 0; i < gpt.count && events; i++)
        events[i] = &gpt.events[i];
    if (events)
        qsort(events, gpt.count, sizeof *events, gpt_by_start_and_length);
    for (i = 0; i < gpt.count && events; i++) {
        if (gpt_is_device_work(events[i]))
            gpt_write_device_event(events[i]);
        else
            gpt_write_host_event(one, events[i]);
    }
    free(events);
}

static void gpt_write_timeline(const gpubench *bench, const gpubench_case *one)
{
    char memory[32];
    if (gpt.origin_ns == 0)
        gpt.origin_ns = gpt.begun_ns;
    gpt_memory_in_use(memory, sizeof memory);
    gpt_put_counter("memory in use, bytes", gpt.begun_ns, memory);
    gpt_put_counter("SM clock while timed, MHz", gpt.begun_ns, gpt_timed(bench, one, "sm_mhz"));
    gpt_put_counter("power while timed, W", gpt.begun_ns, gpt_timed(bench, one, "power_w"));
    gpt_write_events(one);
    gpt_write_ranges_on_device(one);
}

/* When it began, by the clock that it goes by, which no double holds to the nanosecond. */
static void gpt_end_timeline(const gpubench *bench)
{
    fprintf(gpt.trace, "\n],\"otherData\":{\"origin_ns\":\"%llu\",\"left_out\":\"%llu\"}}\n",
            (unsigned long long)gpt.origin_ns, (unsigned long long)gpt.spans_left_out);
    if (gpt.spans_left_out > 0)
        fprintf(stderr, "--trace '%s': %llu events were left out behind the first %d, which is what "
                "readers open; --filter chooses fewer cases\n", gpubench_given(bench, "--trace"),
                (unsigned long long)gpt.spans_left_out, (int)GPT_MOST_SPANS);
}

/* ==== the watcher ========================================================= */

static void gpt_complain(const char *option, const char *path, const char *why)
{
    fprintf(stderr, "%s%s%s%s: %s\n", option, path ? " '" : "", path ? path : "", path ? "'" : "",
            why);
}

enum { GPT_TABLE_FILE, GPT_MEMORY_FILE, GPT_TRACE_FILE, GPT_FILES, GPT_PATH = 4200 };

static char gpt_real[GPT_FILES][GPT_PATH]; /* each file's path, links followed */

/* Where each gathers until it is whole; empty: it is, or there is none. */
static struct {
    char path[GPT_PATH + 48];
    pid_t made_by; /* a process that it forks removes nothing */
} gpt_partial[GPT_FILES];

/* What a path names where links lead: they stay, and their target is what changes. How many
 * they are, or -1 with errno. */
static int gpt_follow(const char *path, char real[GPT_PATH])
{
    char target[GPT_PATH];
    int links;
    snprintf(real, GPT_PATH, "%s", path);
    for (links = 0; links < 40; links++) {
        ssize_t bytes = readlink(real, target, sizeof target - 1);
        char *slash = strrchr(real, '/');
        size_t at = slash && bytes > 0 && target[0] != '/' ? (size_t)(slash - real) + 1 : 0;
        if (bytes < 0)
            return errno == EINVAL || errno == ENOENT ? links : -1;
        if (at + (size_t)bytes >= GPT_PATH)
            break;
        memcpy(real + at, target, (size_t)bytes);
        real[at + (size_t)bytes] = '\0';
    }
    errno = ELOOP;
    return -1;
}

/* A process that ends before they are whole leaves nothing of them. */
static void gpt_remove_partial_files(void)
{
    size_t i;
    for (i = 0; i < GPT_FILES; i++) {
        if (gpt_partial[i].path[0] && gpt_partial[i].made_by == getpid())
            (void)unlink(gpt_partial[i].path);
        gpt_partial[i].path[0] = '\0';
    }
}

/* A file of its own: what lies under its name, another process's or a link, is gone around. */
static FILE *gpt_create_partial(int which)
{
    char *partial = gpt_partial[which].path;
    FILE *created;
    int i, file = -1;
    for (i = 0; file < 0 && i < 100 && (i == 0 || errno == EEXIST); i++) {
        if (i == 0)
            snprintf(partial, sizeof gpt_partial[which].path, "%s.partial", gpt_real[which]);
        else
            snprintf(partial, sizeof gpt_partial[which].path, "%s.partial.%ld-%d",
                     gpt_real[which], (long)getpid(), i);
        file = open(partial, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    created = file >= 0 ? fdopen(file, "w") : NULL;
    if (file >= 0 && !created) {
        close(file);
        (void)unlink(partial);
    }
    return created;
}

/* *file stays NULL without the option. 0, or 2 after a message. */
static int gpt_open_file(const gpubench *bench, const char *option, int which, FILE **file)
{
    static int is_watched;
    const char *path = gpubench_given(bench, option);
    if (!path)
        return 0;
    *file = gpt_follow(path, gpt_real[which]) < 0 ? NULL : gpt_create_partial(which);
    if (!*file) {
        gpt_complain(option, path, strerror(errno));
        gpt_partial[which].path[0] = '\0';
        return 2;
    }
    gpt_partial[which].made_by = getpid();
    if (!is_watched)
        is_watched = atexit(gpt_remove_partial_files) == 0;
    return 0;
}

/* Of no case there is nothing to tell: a file that was there before stays. */
static int gpt_close_file(const gpubench *bench, const char *option, int which, FILE **file)
{
    char *partial = gpt_partial[which].path;
    int failed;
    if (!*file)
        return 0;
    failed = ferror(*file);
    failed |= fclose(*file) != 0;
    *file = NULL;
    if (!failed && gpt.cases > 0 && rename(partial, gpt_real[which]) == 0) {
        *partial = '\0';
        return 0;
    }
    if (failed || gpt.cases > 0)
        gpt_complain(option, gpubench_given(bench, option), strerror(errno));
    (void)unlink(partial);
    *partial = '\0';
    return 2;
}

static const char *gpt_option(const gpubench *bench)
{
    return gpubench_given(bench, "--kernels")       ? "--kernels"
           : gpubench_given(bench, "--kernels-csv") ? "--kernels-csv"
                                                    : "--trace";
}

/* Memory is known without it. */
static int gpt_wants_events(const gpubench *bench)
{
    return gpubench_given(bench, "--kernels") || gpubench_given(bench, "--kernels-csv") ||
           gpubench_given(bench, "--trace");
}

static int gpt_open(gpubench *bench)
{
    const char *why;
    gpt.on_gpu = NULL;
    why = gpubench_is_cuda(bench) && gpt_wants_events(bench) ? gpt_open_cupti() : NULL;
    if (why) {
        gpt_complain(gpt_option(bench), NULL, why);
        return 2;
    }
    gpt.cases = 0;
    gpt.table = gpubench_given(bench, "--kernels") ? stdout : NULL;
    gpt.memory = gpubench_given(bench, "--memory") ? stdout : NULL;
    if (gpt_open_file(bench, "--kernels-csv", GPT_TABLE_FILE, &gpt.csv) != 0 ||
        gpt_open_file(bench, "--memory-csv", GPT_MEMORY_FILE, &gpt.memory_csv) != 0 ||
        gpt_open_file(bench, "--trace", GPT_TRACE_FILE, &gpt.trace) != 0)
        return 2;
    if (gpt.csv)
        gpt_write_csv_header();
    if (gpt.memory_csv)
        gpt_write_memory_header();
    if (gpt.trace)
        gpt_start_timeline();
    return 0;
}

/* Nothing of the case is told. */
static void gpt_give_up(void)
{
    gpt_forget_executions();
    gpt_disable();
}

static int gpt_begin(gpubench *bench, const gpubench_case *one)
{
    const char *why = gpt.on_gpu ? gpt_start_collecting() : NULL;
    (void)one;
    gpt.count = 0;
    gpt.depth = 0;
    gpt.lost = 0;
    if (why) {
        gpt_complain(gpt_option(bench), NULL, why);
        gpt_give_up();
        return 2;
    }
    gpt.begun_ns = gpt_clock_ns();
    gpt_range("run");
    return 0;
}

static int gpt_complain_of_case(const gpubench *bench, const gpubench_case *one, const char *why)
{
    if (one)
        fprintf(stderr, "%s: %s %s %s %s: %s\n", gpt_option(bench), gpt_shown(one->name),
                gpt_shown(one->variant), gpt_shown(one->dtype), gpt_shown(one->params), why);
    else
        fprintf(stderr, "%s: an empty kernel: %s\n", gpt_option(bench), why);
    return 2;
}

/* Nothing is told of a run that failed: gpubench.h says that it did. */
static int gpt_end(gpubench *bench, const gpubench_case *one, int code)
{
    char lost[96];
    const char *why;
    while (gpt.depth > 0)
        gpt_end_range();
    gpt.ended_ns = gpt_clock_ns();
    why = gpt.on_gpu ? gpt_stop_collecting() : NULL;
    if (code != 0) {
        if (code != GPUBENCH_SKIPPED)
            gpt_give_up();
        return 0;
    }
    if (!why && gpt.lost > 0) {
        snprintf(lost, sizeof lost, "%llu of its launches and calls were lost, beyond what there "
                 "is memory for", (unsigned long long)gpt.lost);
        why = lost;
    }
    if (!why) {
        gpt_keep_execution();
        return 0;
    }
    gpt_give_up();
    return gpt_complain_of_case(bench, one, why);
}

/* Its bytes and operations are the row's, which a setup may have told only. */
static gpubench_case gpt_as_measured(const gpubench *bench, const gpubench_case *one)
{
    gpubench_case measured = *one;
    double bytes = gpt_timed_number(bench, one, "bytes"), flops = gpt_timed_number(bench, one, "flops");
    measured.bytes = bytes > 0 ? (uint64_t)bytes : measured.bytes;
    measured.flops = flops > 0 ? (uint64_t)flops : measured.flops;
    return measured;
}

static void gpt_tell_case(gpubench *bench, const gpubench_case *told, const gpt_summary *summary)
{
    const gpubench_case measured = gpt_as_measured(bench, told), *one = &measured;
    size_t i;
    if (gpt.table)
        gpt_print_summary(bench, one, summary);
    for (i = 0; i < summary->count && gpt.csv; i++)
        gpt_write_group(bench, one, summary, &summary->groups[i]);
    if (gpt.memory || gpt.memory_csv)
        gpt_tell_memory(bench, one);
    if (gpt.trace)
        gpt_write_timeline(bench, one);
    gpt.cases++;
}

static int gpt_tell(gpubench *bench, const gpubench_case *one, const char *mode)
{
    gpt_summary summary;
    int failed;
    if (gpt.execution_count == 0)
        return 0;
    gpt_disable();
    gpt_take_median();
    gpt.mode = mode;
    failed = gpt_summarize(&summary) != 0;
    if (!failed && one)
        gpt_tell_case(bench, one, &summary);
    else if (!failed)
        gpt.empty_ns = summary.total_ns;
    gpt_free_summary(&summary);
    gpt_forget_executions();
    return failed ? gpt_complain_of_case(bench, one, "no memory for a summary") : 0;
}

static void gpt_free(void)
{
    while (gpt.name_count > 0)
        free(gpt.names[--gpt.name_count]);
    free(gpt.names);
    gpt_forget_executions();
    free(gpt.events);
    gpt.names = NULL;
    gpt.events = NULL;
    gpt.count = gpt.capacity = 0;
    gpt.origin_ns = gpt.empty_ns = 0;
    free(gpt.lanes);
    gpt.lanes = NULL;
    gpt.lane_count = gpt.lane_capacity = 0;
    gpt.span_count = gpt.spans_left_out = 0;
}

static int gpt_close(gpubench *bench)
{
    int worst = 0;
    if (gpt.trace)
        gpt_end_timeline(bench);
    if (gpt_close_file(bench, "--kernels-csv", GPT_TABLE_FILE, &gpt.csv) != 0)
        worst = 2;
    if (gpt_close_file(bench, "--memory-csv", GPT_MEMORY_FILE, &gpt.memory_csv) != 0)
        worst = 2;
    if (gpt_close_file(bench, "--trace", GPT_TRACE_FILE, &gpt.trace) != 0)
        worst = 2;
    if ((gpt.table || gpt.memory) && fflush(stdout) != 0) {
        gpt_complain(gpt.table ? "--kernels" : "--memory", NULL, strerror(errno));
        worst = 2;
    }
    gpt_close_cupti();
    gpt_free();
    return worst;
}

/* Why the path cannot get a file, or NULL: what is there and no file, a link that leads
 * nowhere or a file that may not be written is not replaced. */
static const char *gpt_refusal(const char *path)
{
    char real[GPT_PATH], folder[GPT_PATH + 1];
    const char *slash;
    struct stat found;
    int links = gpt_follow(path, real), exists = links >= 0 && stat(real, &found) == 0;
    if (!*path || path[strlen(path) - 1] == '/')
        return "wants a file's name";
    if (!exists && (links != 0 || errno != ENOENT))
        return strerror(errno);
    if (exists && !S_ISREG(found.st_mode))
        return "wants a file";
    slash = strrchr(real, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - real + 1) : 1, slash ? real : ".");
    return access(folder, W_OK) != 0 || (exists && access(real, W_OK) != 0) ? strerror(errno) : NULL;
}

/* Better now than after an hour of measuring. */
static void gpt_try_file(gpubench *bench, const char *option)
{
    const char *path = gpubench_given(bench, option), *why = path ? gpt_refusal(path) : NULL;
    if (why)
        gpubench_usage_error(bench, "%s '%s': %s", option, path, why);
}

void gpubench_trace(gpubench *bench)
{
    static const gpubench_watcher watcher = {gpt_open, gpt_begin,  gpt_end,
                                             gpt_tell, gpt_close, gpt_range};
    gpt_try_file(bench, "--kernels-csv");
    gpt_try_file(bench, "--memory-csv");
    gpt_try_file(bench, "--trace");
    gpubench_watch(bench, &watcher);
}

#ifdef __cplusplus
}
#endif
#endif /* GPUBENCH_TRACE_IMPLEMENTATION */
