/* The CPU backend: clocks of any step, cold runs, long runs, runs that do
 * nothing. Time is what this program says it is. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "support.h"

#define FEW "--max-samples", "8", "--min-samples", "8", "--warmup", "1", "--max-time", "0.2"

/* ---- a clock that steps ---- */

static struct {
    int real;          /* the system's own clock */
    uint64_t now_ns;   /* the true time, */
    uint64_t step_ns;  /* of which the clock shows whole steps */
    uint64_t read_ns;  /* what reading it takes, and by turns one more */
    uint64_t jitter;
    uint64_t repeats, reads, shown_ns; /* so many readings in a row say the same */
    uint64_t turn, cold_ns; /* the first reading of a live's turn takes so much more */
} fake = {.real = 1};

static gpubench *measured; /* whose turns count */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t shown;
    if (fake.real || clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, time);
    if (fake.repeats == 0 || fake.reads++ % fake.repeats == 0)
        fake.shown_ns = fake.now_ns / fake.step_ns * fake.step_ns;
    shown = fake.shown_ns;
    time->tv_sec = (time_t)(shown / 1000000000);
    time->tv_nsec = (long)(shown % 1000000000);
    fake.jitter = !fake.jitter;
    fake.now_ns += fake.read_ns ? fake.read_ns + fake.jitter : 0;
    if (measured && measured->current && measured->current->turn != fake.turn) {
        fake.turn = measured->current->turn;
        fake.now_ns += fake.cold_ns;
    }
    return 0;
}

static void set_clock(uint64_t step_ns, uint64_t read_ns)
{
    memset(&fake, 0, sizeof fake);
    fake.now_ns = 1000000000;
    fake.step_ns = step_ns;
    fake.read_ns = read_ns;
    fake.cold_ns = 5000000; /* about as long as the sweep really takes */
}

static int use_real_clock(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.real = 1;
    measured = NULL;
    return 0;
}

/* ---- a case that takes the time it is told ---- */

typedef struct worker {
    uint64_t ns, swept_ns; /* of a run; more of it behind a sweep */
    uint64_t noise_ns;     /* up to so much more */
    uint64_t runs;
    size_t alloc_bytes;
    uint64_t random;
} worker;

static int work(void *context, gpubench_stream stream)
{
    worker *w = (worker *)context;
    (void)stream;
    w->runs++;
    fake.now_ns += w->ns;
    if (measured->current->mode == GPUBENCH_COLD && !measured->current->unswept)
        fake.now_ns += w->swept_ns;
    if (w->noise_ns > 0)
        fake.now_ns += gpubench_random_word(&w->random) % w->noise_ns;
    return 0;
}

static int allocate(void *context, gpubench *bench)
{
    const worker *w = (const worker *)context;
    if (w->alloc_bytes == 0 || gpubench_alloc(bench, w->alloc_bytes, GPUBENCH_DEVICE))
        return 0;
    return GPUBENCH_OOM;
}

/* Measures w and leaves its row; the caller closes. */
static gpubench *measure(worker *w, uint64_t bytes, const char *const *options)
{
    gpubench *bench = open_bench(options);
    gpubench_case one = gpubench_case_init("work", work, w);
    one.setup = allocate;
    one.bytes = bytes;
    measured = bench;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    return bench;
}

#define MEASURE(w, bytes, ...) measure(w, bytes, (const char *const[]){__VA_ARGS__, NULL})

/* ---- the clock's step ---- */

static void the_step_is_found(void **state)
{
    static const struct { uint64_t step_ns, read_ns; double step_us; } clocks[] = {
        {1, 21, 0.001},      /* each reading differs: what the differences differ by */
        {40, 21, 0.04},      /* 25 MHz, read twice a tick */
        {1000, 25, 1},       /* microseconds */
        {1000000, 300, 1000},
        {10000000, 300, 10000}, /* a tick of 100 Hz */
        {1, 0, 0}};          /* stands still */
    size_t i;
    (void)state;
    for (i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        double step_us;
        set_clock(clocks[i].step_ns, clocks[i].read_ns);
        step_us = gpb_find_clock_step();
        if (fabs(step_us - clocks[i].step_us) > 1e-6)
            fail_msg("a step of %g us is taken for %g", clocks[i].step_us, step_us);
    }
}

/* 7 readings in a row say the same, and then it is 178 or 179 ns later: not a
 * clock of 1 ns. */
static void a_clock_that_repeats_itself_is_as_coarse_as_that(void **state)
{
    (void)state;
    set_clock(1, 25);
    fake.repeats = 7;
    assert_true(gpb_find_clock_step() >= 0.175);
}

static void a_clock_that_stands_still_measures_nothing(void **state)
{
    gpubench *bench;
    worker w = {.ns = 0};
    (void)state;
    set_clock(1, 0);
    bench = MEASURE(&w, 0, FEW);
    assert_int_equal(gpubench_row_count(bench), 0);
    assert_int_equal(gpubench_close(bench), 2);
}

/* No NaN, no infinity, nothing negative: in a row, and in the table. */
static void expect_sane(const gpubench *bench)
{
    int column;
    char *table = NULL;
    size_t length;
    FILE *file = open_memstream(&table, &length);
    for (column = GPB_COLUMN_samples; column <= GPB_COLUMN_host_us; column++) {
        const char *text = gpubench_value(bench, 0, gpb_column_names[column]);
        double value;
        if (*text && gpubench_parse_number(text, &value) != 0) /* which takes no sign */
            fail_msg("%s is '%s'", gpb_column_names[column], text);
    }
    gpb_print_table(bench, file);
    fclose(file);
    support_expect_no_text(table, "inf");
    support_expect_no_text(table, "nan");
    support_expect_no_text(table, "-0");
    free(table);
}

static void a_cold_run_below_the_step_fails_with_the_step(void **state)
{
    gpubench *bench;
    worker w = {.ns = 3000};
    (void)state;
    set_clock(10000000, 300);
    bench = MEASURE(&w, 1000, "--mode", "cold", FEW);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "step_of_10000_us");
    expect_cell(bench, 0, "median_us", "");
    expect_sane(bench);
    assert_int_equal(gpubench_close(bench), 1);
}

/* A run of one and a half steps is seen as one or two. */
static void a_run_of_few_steps_is_marked(void **state)
{
    gpubench *bench;
    worker w = {.ns = 1300, .noise_ns = 400};
    (void)state;
    set_clock(1000, 25);
    bench = MEASURE(&w, 0, FEW);
    expect_cell(bench, 0, "status", "ok");
    expect_flag(bench, 0, "coarse-clock");
    assert_true(value_of(bench, 0, "ci95_high_us") >= 1.5);
    expect_sane(bench);
    assert_int_equal(gpubench_close(bench), 0);
}

/* Of samples that are 0 or one step, and hardly more ones, the interval starts
 * at 0 and not half a step below. */
static void an_interval_does_not_reach_below_zero(void **state)
{
    gpubench *bench;
    worker w = {.ns = 300, .noise_ns = 500};
    (void)state;
    set_clock(1000, 25);
    bench = MEASURE(&w, 0, "--max-samples", "60", "--min-samples", "60", "--max-time", "1");
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 0, "p25_us", "0");
    expect_cell(bench, 0, "ci95_low_us", "0");
    expect_sane(bench);
    gpubench_close(bench);
}

static void a_hot_batch_is_long_enough_for_the_step(void **state)
{
    static const uint64_t steps_ns[] = {1000, 1000000, 10000000};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof steps_ns / sizeof steps_ns[0]; i++) {
        gpubench *bench;
        worker w = {.ns = 3000};
        double step_us = (double)steps_ns[i] / 1e3;
        set_clock(steps_ns[i], 300);
        bench = MEASURE(&w, 0, "--mode", "hot", FEW);
        expect_cell(bench, 0, "status", "ok");
        assert_true(value_of(bench, 0, "batch") * 3 >= 9 * step_us);
        assert_true(fabs(value_of(bench, 0, "median_us") - 3) <= 0.3);
        expect_sane(bench);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* Half a millisecond of a function of 1 us and of one of 10 ns. */
static void a_hot_batch_is_as_long_as_its_time(void **state)
{
    static const uint64_t ns[] = {1000, 10};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench;
        worker w = {.ns = ns[i]};
        set_clock(1, 21);
        bench = MEASURE(&w, 0, "--mode", "hot", FEW);
        assert_true(fabs(value_of(bench, 0, "batch") * (double)ns[i] - 500000) < 5000);
        assert_true(fabs(value_of(bench, 0, "median_us") - (double)ns[i] / 1e3) < 0.0001);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* ---- which mode, where nobody says ---- */

static void expect_mode(uint64_t bytes, unsigned modes, const char *option, const char *value,
                        const char *mode)
{
    gpubench *bench = OPEN(FEW, option, value);
    worker w = {.ns = 3000};
    gpubench_case one = gpubench_case_init("work", work, &w);
    one.bytes = bytes;
    one.modes = modes;
    measured = bench;
    set_clock(1, 21);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 1);
    expect_cell(bench, 0, "mode", mode);
    expect_cell(bench, 0, "status", strcmp(mode, "graph") ? "ok" : "unsupported");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_small_case_is_hot_unless_told(void **state)
{
    (void)state;
    expect_mode(4095, 0, "--seed", "1", "hot");
    expect_mode(1, 0, "--seed", "1", "hot");
    expect_mode(4096, 0, "--seed", "1", "cold");
    expect_mode(0, 0, "--seed", "1", "cold"); /* it may touch anything */
    expect_mode(8, 0, "--mode", "cold", "cold");
    expect_mode(8, GPUBENCH_COLD, "--seed", "1", "cold");
}

static void a_case_is_measured_in_a_mode_that_it_allows(void **state)
{
    (void)state;
    expect_mode(0, GPUBENCH_HOT, "--seed", "1", "hot");
    expect_mode(0, GPUBENCH_HOT | GPUBENCH_DIRTY, "--seed", "1", "hot");
    expect_mode(0, GPUBENCH_DIRTY, "--seed", "1", "dirty");
    expect_mode(0, GPUBENCH_GRAPH, "--seed", "1", "graph");
    expect_mode(8, GPUBENCH_DIRTY, "--seed", "1", "dirty");
}

/* Also of a mode that comes into use with a later case. */
static void each_mode_that_is_used_has_an_overhead(void **state)
{
    gpubench *bench = OPEN(FEW);
    worker w = {.ns = 3000};
    gpubench_case one = gpubench_case_init("large", work, &w);
    (void)state;
    measured = bench;
    set_clock(1, 21);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    one.name = "small";
    one.bytes = 8;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 1, "mode", "hot");
    assert_true(value_of(bench, 0, "overhead_us") > 0);
    assert_true(value_of(bench, 1, "overhead_us") > 0);
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- what is timed ---- */

/* 1.5 us of cold clock behind each flush are neither the run's nor the method's. */
static void the_clock_is_warm_when_a_run_starts(void **state)
{
    gpubench *bench;
    worker w = {.ns = 4000};
    (void)state;
    set_clock(1, 21);
    fake.cold_ns = 1500;
    bench = MEASURE(&w, 0, FEW);
    assert_true(value_of(bench, 0, "median_us") < 4.1);
    assert_true(value_of(bench, 0, "overhead_us") < 0.1);
    expect_cell(bench, 0, "events_us", "");
    expect_cell(bench, 0, "host_us", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* 1 s, of which the time limit allows a fifth: once to learn that, and once measured. */
static void a_long_function_runs_twice(void **state)
{
    static const char *const modes[] = {"cold", "hot", "dirty"};
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        gpubench *bench;
        worker w = {.ns = 1000000000};
        set_clock(1, 21);
        bench = MEASURE(&w, 0, "--mode", modes[i], "--max-time", "0.2");
        assert_int_equal(w.runs, 2);
        expect_cell(bench, 0, "samples", "1");
        assert_true(fabs(value_of(bench, 0, "median_us") - 1e6) < 1);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* ---- large pages ---- */

static struct { int calls, advice; void *memory; size_t bytes; } advised;

int madvise(void *memory, size_t bytes, int advice)
{
    advised.calls++;
    advised.advice = advice;
    advised.memory = memory;
    advised.bytes = bytes;
    return -1; /* refused, which is no reason to fail */
}

static void much_memory_asks_for_large_pages(void **state)
{
    const size_t mib = 1 << 20;
    void *memory;
    (void)state;
    memset(&advised, 0, sizeof advised);
    assert_int_equal(gpb_host_allocate(2 * mib - 1, GPUBENCH_DEVICE, &memory), 0);
    assert_int_equal(advised.calls, 0);
    gpb_host_release(memory, GPUBENCH_DEVICE);
    assert_int_equal(gpb_host_allocate(5 * mib, GPUBENCH_DEVICE, &memory), 0);
    assert_int_equal(advised.calls, 1);
    assert_int_equal(advised.advice, MADV_HUGEPAGE);
    assert_ptr_equal(advised.memory, memory);
    assert_int_equal((uintptr_t)memory % (2 * mib), 0);
    assert_int_equal(advised.bytes, 4 * mib);
    gpb_host_release(memory, GPUBENCH_DEVICE);
}

/* ---- the caches ---- */

static unsigned char *sweep_of(const gpubench *bench)
{
    return ((const gpb_host *)bench->device_state)->sweep;
}

/* Of memory that the case allocated itself nobody knows but the sweep. */
static void a_case_with_memory_of_its_own_is_swept(void **state)
{
    gpubench *bench;
    worker w = {.ns = 10000, .swept_ns = 500, .alloc_bytes = 4096};
    (void)state;
    set_clock(1, 21);
    bench = MEASURE(&w, 0, FEW);
    assert_true(fabs(value_of(bench, 0, "median_us") - 10.5) < 0.1);
    assert_non_null(sweep_of(bench));
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_case_that_the_sweep_does_not_slow_is_not_swept(void **state)
{
    gpubench *bench;
    worker w = {.ns = 10000, .alloc_bytes = 4096};
    gpb_item item = {.one = {.run = work, .context = &w}};
    gpb_live live = {.item = &item, .mode = GPUBENCH_COLD, .batch = 1};
    (void)state;
    set_clock(1, 21);
    bench = MEASURE(&w, 0, FEW);
    bench->current = &live;
    assert_int_equal(gpb_host_begin(bench, &live), 0);
    assert_true(live.unswept);
    bench->current = NULL;
    assert_int_equal(gpubench_close(bench), 0);
}

/* Of 400 noisy cases that the sweep slows by 4 %, at most one in 50 is believed
 * to need none, and of those that it slows by half, none. */
static void noise_is_no_reason_to_leave_out_the_sweep(void **state)
{
    gpubench *bench;
    worker w = {.ns = 10000};
    int i, slowdown, unswept;
    (void)state;
    set_clock(1, 21);
    bench = MEASURE(&w, 0, FEW);
    ((gpb_host *)bench->device_state)->sweep_bytes = 256; /* the decision only */
    for (slowdown = 400; slowdown <= 5000; slowdown += 4600) {
        for (i = 0, unswept = 0; i < 400; i++) {
            worker noisy = {.ns = 10000, .swept_ns = (uint64_t)slowdown, .noise_ns = 3000,
                            .random = (uint64_t)i};
            gpb_item item = {.one = {.run = work, .context = &noisy}};
            gpb_live live = {.item = &item, .mode = GPUBENCH_COLD, .batch = 1};
            bench->current = &live;
            assert_int_equal(gpb_host_begin(bench, &live), 0);
            unswept += live.unswept;
        }
        assert_true(unswept <= (slowdown == 400 ? 8 : 0));
    }
    bench->current = NULL;
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_sweep_reads_and_the_dirty_one_writes(void **state)
{
    static const char *const modes[] = {"cold", "dirty"};
    size_t i, at;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench *bench;
        worker w = {.ns = 10000, .swept_ns = 10000};
        size_t bytes, changed = 0;
        set_clock(1, 21);
        bench = MEASURE(&w, 0, "--mode", modes[i], FEW);
        bytes = ((const gpb_host *)bench->device_state)->sweep_bytes;
        assert_true(bytes > 0);
        for (at = 0; at < bytes; at += 64)
            changed += sweep_of(bench)[at] != 1;
        assert_int_equal(changed, i == 0 ? 0 : bytes / 64);
        assert_int_equal(gpubench_close(bench), 0);
    }
}

/* The machine's own caches, of as little memory as sweeps fast: tests else sweep 1 MiB. */
static void a_sample_sweeps_what_the_machine_shows(void **state)
{
    gpubench *bench = OPEN(FEW);
    worker w = {.ns = 10000};
    gpb_item item = {.one = {.run = work, .context = &w}};
    gpb_live live = {.item = &item, .mode = GPUBENCH_COLD, .batch = 1};
    gpb_host shown = {0};
    gpb_caches caches;
    char allowed[2048];
    size_t bytes;
    double us;
    (void)state;
    measured = bench;
    gpb_find_allowed(allowed, sizeof allowed);
    caches = gpb_find_caches("/sys/devices/system/cpu", allowed);
    gpb_size_sweep(&shown, (uint64_t)1 << 60);
    assert_int_equal(shown.nearer_bytes, caches.nearer_bytes);
    assert_int_equal(shown.sweep_bytes,
                     gpb_find_sweep_bytes(caches.last_bytes, gpb_memory_limit((uint64_t)1 << 60)));
    bench->backend = &gpb_host_backend;
    bench->current = &live;
    assert_int_equal(bench->backend->open(bench), 0);
    bench->device_open = 1;
    bench->machine.memory_bytes = 64 << 20;
    assert_int_equal(bench->backend->sample(bench, &live, &us), 0);
    bytes = gpb_find_sweep_bytes(caches.last_bytes, 64 << 20);
    assert_int_equal(((const gpb_host *)bench->device_state)->sweep_bytes, bytes);
    assert_int_equal(sweep_of(bench)[bytes - 1], 1);
    bench->current = NULL;
    gpubench_close(bench);
}

/* ---- how much is swept, and by whom ---- */

/* As Linux shows a processor's cache: level, type, size, and who shares it. */
static void put_cache(const char *folder, long cpu, int index, const char *const *values)
{
    static const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
    char path[200], file[240], text[64];
    size_t i;
    snprintf(path, sizeof path, "%s/cpu%ld", folder, cpu);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/cpu%ld/cache", folder, cpu);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/cpu%ld/cache/index%d", folder, cpu, index);
    assert_int_equal(mkdir(path, 0700), 0);
    for (i = 0; i < 4; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        snprintf(text, sizeof text, "%s\n", values[i]);
        support_write(file, text);
    }
}

/* Eight processors, two of a core (a number apart by 4), four of one last cache; and two
 * more that have no last cache but their own L2. */
static void put_processors(const char *folder)
{
    static const char *const cores[] = {"0,4", "1,5", "2,6", "3,7"};
    static const char *const quads[] = {"0-1,4-5", "2-3,6-7"};
    static const char *const own[] = {"8", "9"};
    long cpu;
    for (cpu = 0; cpu < 10; cpu++) {
        const char *core = cpu < 8 ? cores[cpu % 4] : own[cpu - 8];
        const char *data[] = {"1", "Data", "32K", core};
        const char *code[] = {"1", "Instruction", "64K", core};
        const char *second[] = {"2", "Unified", cpu < 8 ? "1024K" : "4096K", core};
        const char *last[] = {"3", "Unified", "32768K", cpu < 8 ? quads[cpu % 4 / 2] : ""};
        put_cache(folder, cpu, 0, cpu == 5 ? second : data); /* in any order */
        put_cache(folder, cpu, 1, code);
        put_cache(folder, cpu, 2, cpu == 5 ? data : second);
        if (cpu < 8)
            put_cache(folder, cpu, 3, last);
    }
}

static void the_caches_of_the_allowed_processors_count(void **state)
{
    static const struct { const char *allowed; size_t last_kib, nearer_kib; } cases[] = {
        {"0", 32768, 1056},         {"0-7", 65536, 1056},  {"4-5", 32768, 1056},
        {"1,3", 65536, 1056},       {"5", 32768, 1056},    {"6-7", 32768, 1056},
        {"8-9", 8192, 32},          {"0,8", 36864, 1056},  {"0-9", 65536 + 8192, 1056},
        {"11", 0, 0},               {"", 0, 0},            {"none", 0, 0}};
    const char *folder = support_folder;
    size_t i;
    (void)state;
    put_processors(folder);
    for (i = 0; i < GPB_COUNT_OF(cases); i++) {
        gpb_caches found = gpb_find_caches(folder, cases[i].allowed);
        assert_int_equal(found.last_bytes, cases[i].last_kib << 10);
        assert_int_equal(found.nearer_bytes, cases[i].nearer_kib << 10);
    }
}

static void the_sweep_is_twice_the_last_caches(void **state)
{
    const size_t mib = 1 << 20;
    (void)state;
    assert_int_equal(gpb_find_sweep_bytes(32 * mib, 0), 64 * mib);
    assert_int_equal(gpb_find_sweep_bytes(210 * mib, (uint64_t)64 << 30), 420 * mib);
    assert_int_equal(gpb_find_sweep_bytes(1152 * mib, (uint64_t)4 << 30), 512 * mib);
    assert_between(gpb_find_sweep_bytes(0, 0), 2 * 128, 64 * mib);
    assert_int_equal(gpb_find_sweep_bytes(1000, 0), 1920); /* whole pairs of lines */
}

static void lists_of_processors_are_read(void **state)
{
    (void)state;
    assert_int_equal(gpb_next_in("0-3,8,10-11", 0), 0);
    assert_int_equal(gpb_next_in("0-3,8,10-11", 3), 3);
    assert_int_equal(gpb_next_in("0-3,8,10-11", 4), 8);
    assert_int_equal(gpb_next_in("0-3,8,10-11", 9), 10);
    assert_int_equal(gpb_next_in("0-3,8,10-11", 12), -1);
    assert_int_equal(gpb_next_in("", 0), -1);
}

/* A pretended pool: who was called, and the pairs of lines that each thread read. */
static int pretended_threads, calls;

static void pretend_threads(void (*visit)(void *context, int thread, int threads), void *context)
{
    int i;
    for (i = 0; i < pretended_threads; i++, calls++)
        visit(context, i, pretended_threads);
}

/* By turns each thread alone writes its share: each byte belongs to one of them. */
static void the_shares_are_the_whole_and_no_byte_is_twos(void **state)
{
    static unsigned char memory[128 * 11], before[sizeof memory];
    gpb_host host = {.sweep = memory, .sweep_bytes = sizeof memory, .nearer_bytes = 1 << 20};
    int threads, i;
    size_t at;
    (void)state;
    for (threads = 1; threads < 14; threads++) {
        memset(memory, 0, sizeof memory);
        for (i = 0; i < threads; i++) {
            gpb_sweeping sweep = {&host, i + 1};
            memcpy(before, memory, sizeof memory);
            gpb_sweep_share(&sweep, i, threads);
            for (at = 0; at < sizeof memory; at++)
                assert_true(memory[at] == before[at] || before[at] == 0);
        }
        for (at = 0; at < sizeof memory; at++)
            assert_true(memory[at] != 0);
    }
}

static void a_program_s_own_threads_sweep(void **state)
{
    gpubench *bench;
    worker w = {.ns = 10000, .swept_ns = 500, .alloc_bytes = 4096};
    gpb_item item = {.one = {.run = work, .context = &w}};
    gpb_live live = {.item = &item, .mode = GPUBENCH_COLD, .batch = 1};
    double us;
    (void)state;
    set_clock(1, 21);
    bench = MEASURE(&w, 0, FEW);
    bench->current = &live;
    gpubench_sweep_on(bench, pretend_threads);
    for (pretended_threads = 1; pretended_threads < 4; pretended_threads++) {
        calls = 0;
        assert_int_equal(gpb_host_sample(bench, &live, &us), 0);
        assert_int_equal(calls, pretended_threads);
    }
    gpubench_sweep_on(bench, NULL);
    assert_int_equal(gpb_host_sample(bench, &live, &us), 0);
    assert_int_equal(calls, 3);
    bench->current = NULL;
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- runs that do nothing ---- */

static char text[1 << 16];

/* Counting that it ran, as for coverage, would be something. */
__attribute__((no_profile_instrument_function))
static int do_nothing(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

static int discard(void *context, gpubench_stream stream)
{
    const char *where = (const char *)context;
    long sum = 0;
    size_t i;
    (void)stream;
    for (i = 0; i < sizeof text; i++)
        sum += where[i];
    (void)sum;
    return 0;
}

static int keep_sum(void *context, gpubench_stream stream)
{
    const char *where = (const char *)context;
    long sum = 0;
    size_t i;
    (void)stream;
    for (i = 0; i < sizeof text; i++)
        sum += where[i];
    gpubench_keep(sum);
    return 0;
}

static int store(void *context, gpubench_stream stream)
{
    (void)stream;
    *(volatile char *)context = 1;
    return 0;
}

static int keep_little(void *context, gpubench_stream stream)
{
    (void)stream;
    gpubench_keep(context);
    return 0;
}

static int write_text(void *context, gpubench_stream stream)
{
    char *where = (char *)context;
    (void)stream;
    where[0]++;
    return 0;
}

static void expect_emptiness(int (*run)(void *, gpubench_stream), int empty)
{
    static const char *const modes[] = {"cold", "hot", "dirty"};
    size_t i;
    for (i = 0; i < 3; i++) {
        gpubench *bench = OPEN("--mode", modes[i], FEW);
        gpubench_case one = gpubench_case_init("run", run, text);
        one.reset = write_text;
        gpubench_measure(bench, &one);
        gpubench_run(bench);
        if (empty)
            expect_flag(bench, 0, "did_nothing");
        expect_cell(bench, 0, "status", empty ? "failed" : "ok");
        assert_int_equal(gpubench_close(bench), empty);
    }
}

/* Whatever the mode, and with a reset that does something. */
static void an_empty_function_fails(void **state)
{
    (void)state;
#if defined(GPB_EMPTY_CODES) && defined(__OPTIMIZE__)
    expect_emptiness(do_nothing, 1);
#else
    skip();
#endif
}

/* The sanitizers keep the loop; a compiler that optimizes without them does not. */
static void a_discarded_result_fails(void **state)
{
    (void)state;
#if defined(GPB_EMPTY_CODES) && defined(__OPTIMIZE__)
    if (!gpb_is_empty(discard))
        skip();
    expect_emptiness(discard, 1);
#else
    skip();
#endif
}

static void a_small_function_is_not_empty(void **state)
{
    (void)state;
    expect_emptiness(store, 0);
    expect_emptiness(keep_little, 0);
    expect_emptiness(keep_sum, 0);
}

/* 8 MiB in 20 ns: 400 TB/s, where some code is left of what was removed. */
static void work_that_no_core_can_do_fails(void **state)
{
    gpubench *bench;
    worker w = {.ns = 20};
    (void)state;
    set_clock(1, 21);
    bench = MEASURE(&w, 8 << 20, FEW);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "gpubench_keep");
    assert_int_equal(gpubench_close(bench), 1);
    bench = MEASURE(&w, 2048, FEW); /* 50 GB/s with the clock's 22 ns */
    expect_cell(bench, 0, "status", "ok");
    assert_int_equal(gpubench_close(bench), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_step_is_found, use_real_clock),
        cmocka_unit_test_teardown(a_clock_that_repeats_itself_is_as_coarse_as_that,
                                  use_real_clock),
        cmocka_unit_test_teardown(a_clock_that_stands_still_measures_nothing, use_real_clock),
        cmocka_unit_test_teardown(a_cold_run_below_the_step_fails_with_the_step, use_real_clock),
        cmocka_unit_test_teardown(a_run_of_few_steps_is_marked, use_real_clock),
        cmocka_unit_test_teardown(an_interval_does_not_reach_below_zero, use_real_clock),
        cmocka_unit_test_teardown(a_hot_batch_is_long_enough_for_the_step, use_real_clock),
        cmocka_unit_test_teardown(a_hot_batch_is_as_long_as_its_time, use_real_clock),
        cmocka_unit_test_teardown(a_small_case_is_hot_unless_told, use_real_clock),
        cmocka_unit_test_teardown(a_case_is_measured_in_a_mode_that_it_allows, use_real_clock),
        cmocka_unit_test_teardown(each_mode_that_is_used_has_an_overhead, use_real_clock),
        cmocka_unit_test_teardown(the_clock_is_warm_when_a_run_starts, use_real_clock),
        cmocka_unit_test_teardown(a_long_function_runs_twice, use_real_clock),
        cmocka_unit_test_teardown(a_case_with_memory_of_its_own_is_swept, use_real_clock),
        cmocka_unit_test_teardown(a_case_that_the_sweep_does_not_slow_is_not_swept,
                                  use_real_clock),
        cmocka_unit_test_teardown(noise_is_no_reason_to_leave_out_the_sweep, use_real_clock),
        cmocka_unit_test_teardown(the_sweep_reads_and_the_dirty_one_writes, use_real_clock),
        cmocka_unit_test(much_memory_asks_for_large_pages),
        cmocka_unit_test(the_caches_of_the_allowed_processors_count),
        cmocka_unit_test(the_sweep_is_twice_the_last_caches),
        cmocka_unit_test_teardown(a_sample_sweeps_what_the_machine_shows, use_real_clock),
        cmocka_unit_test(lists_of_processors_are_read),
        cmocka_unit_test(the_shares_are_the_whole_and_no_byte_is_twos),
        cmocka_unit_test_teardown(a_program_s_own_threads_sweep, use_real_clock),
        cmocka_unit_test(an_empty_function_fails),
        cmocka_unit_test(a_discarded_result_fails),
        cmocka_unit_test(a_small_function_is_not_empty),
        cmocka_unit_test_teardown(work_that_no_core_can_do_fails, use_real_clock)};
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("host", tests, NULL, NULL));
}
