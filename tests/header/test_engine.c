/* The measuring engine: on host code in this process, on a scripted backend
 * whose samples are given, and through the fixture program. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

/* What is measured cold waits some 5 ms for a sweep of the caches: a few samples fit. */
#define QUICK "--max-time", "0.1", "--min-samples", "6", "--warmup", "1"

/* ---- a case that keeps a diary ---- */

enum { DIARY_BYTES = 1 << 20 };
static char diary[DIARY_BYTES];
static size_t diary_length;

static void note(char what)
{
    if (diary_length + 1 < DIARY_BYTES)
        diary[diary_length++] = what;
    diary[diary_length] = '\0';
}

typedef struct diarist {
    char letter;     /* what run notes */
    int setup_code;  /* what setup returns */
    unsigned char *memory;
    long pause_ns;   /* how long run sleeps */
    uint64_t since_reset, most_since_reset;
} diarist;

static int diary_setup(void *context, gpubench *bench)
{
    diarist *d = (diarist *)context;
    note('s');
    d->memory = (unsigned char *)gpubench_alloc(bench, 64, GPUBENCH_DEVICE);
    if (d->setup_code != 0)
        return gpubench_fail(bench, d->setup_code, "as told");
    return d->memory ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int diary_reset(void *context, gpubench_stream stream)
{
    diarist *d = (diarist *)context;
    (void)stream;
    d->since_reset = 0;
    note('r');
    return 0;
}

static int diary_run(void *context, gpubench_stream stream)
{
    diarist *d = (diarist *)context;
    struct timespec pause = {0, d->pause_ns};
    (void)stream;
    note(d->letter);
    d->since_reset++;
    if (d->since_reset > d->most_since_reset)
        d->most_since_reset = d->since_reset;
    if (d->pause_ns > 0)
        nanosleep(&pause, NULL);
    return 0;
}

static int diary_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)bench;
    note('v');
    return 0;
}

static void diary_teardown(void *context)
{
    (void)context;
    note('t');
}

static gpubench_case diary_case(const char *name, diarist *d)
{
    gpubench_case one = gpubench_case_init(name, diary_run, d);
    one.setup = diary_setup;
    one.verify = diary_verify;
    one.teardown = diary_teardown;
    return one;
}

static int clear_diary(void **state)
{
    (void)state;
    diary_length = 0;
    diary[0] = '\0';
    return 0;
}

/* ---- the life of a case ---- */

static void a_life_is_setup_pairs_verify_teardown(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x', .pause_ns = 100000};
    gpubench_case one = diary_case("life", &d);
    size_t i, pairs;
    (void)state;
    one.reset = diary_reset;
    gpubench_measure(bench, &one);
    assert_string_equal(diary, ""); /* queued only */
    assert_int_equal(gpubench_close(bench), 0);
    assert_true(diary_length > 3 && diary_length % 2 == 1);
    pairs = (diary_length - 3) / 2;
    assert_int_equal(diary[0], 's');
    for (i = 0; i < pairs; i++)
        assert_memory_equal(diary + 1 + 2 * i, "rx", 2);
    assert_string_equal(diary + 1 + 2 * pairs, "vt");
    assert_true(pairs >= 6 + 5); /* samples, warm-up */
}

static void a_case_may_have_nothing_but_run(void **state)
{
    gpubench *bench = OPEN("--max-samples", "3", "--max-time", "0.01");
    diarist d = {.letter = 'x'};
    gpubench_case one = gpubench_case_init("bare", diary_run, &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 0, "variant", "");
    assert_int_equal(gpubench_close(bench), 0);
}

static void teardown_follows_a_half_done_setup(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x', .setup_code = GPUBENCH_FAILED};
    gpubench_case one = diary_case("half", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_string_equal(diary, "st");
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "reason=as_told");
    assert_int_equal(gpubench_close(bench), 1);
}

static void hot_mode_resets_before_a_batch(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    diarist d = {.letter = 'x', .pause_ns = 2000};
    gpubench_case one = diary_case("hot", &d);
    double batch;
    (void)state;
    one.reset = diary_reset;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    batch = value_of(bench, 0, "batch");
    expect_cell(bench, 0, "mode", "hot");
    assert_true(batch >= 2);
    assert_true((double)d.most_since_reset >= batch + 1); /* one in front of the timed ones */
    assert_string_equal(diary + diary_length - 4, "rxvt"); /* verify sees one run after a reset */
    assert_int_equal(gpubench_close(bench), 0);
}

static void single_cases_do_not_interleave(void **state)
{
    gpubench *bench = OPEN("--max-samples", "4", "--max-time", "0.01");
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        gpubench_case one = diary_case(i ? "b" : "a", &d[i]);
        gpubench_measure(bench, &one);
    }
    assert_int_equal(gpubench_close(bench), 0);
    for (i = 0; diary[i] != 'v'; i++)
        assert_true(diary[i] == 's' || diary[i] == diary[1]);
}

static void a_failure_in_a_group_spares_the_others(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d[3] = {{.letter = 'A'},
                    {.letter = 'B', .setup_code = GPUBENCH_FAILED},
                    {.letter = 'C'}};
    gpubench_case cases[3];
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        cases[i] = diary_case(names[i], &d[i]);
    }
    gpubench_measure_group(bench, cases, 3);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 1, "status", "failed");
    expect_cell(bench, 2, "status", "ok");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- what is queued ---- */

static void strings_are_copied(void **state)
{
    gpubench *bench = OPEN(QUICK);
    char name[] = "name", variant[] = "variant", dtype[] = "dtype", params[] = "params";
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case(name, &d);
    (void)state;
    one.variant = variant;
    one.dtype = dtype;
    one.params = params;
    gpubench_measure(bench, &one);
    name[0] = variant[0] = dtype[0] = params[0] = '?';
    gpubench_run(bench);
    expect_cell(bench, 0, "case", "name");
    expect_cell(bench, 0, "variant", "variant");
    expect_cell(bench, 0, "dtype", "dtype");
    expect_cell(bench, 0, "params", "params");
    assert_int_equal(gpubench_close(bench), 0);
}

static void what_is_queued_after_a_run_is_measured_too(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    gpubench_case one = diary_case("first", &d[0]), other = diary_case("second", &d[1]);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    gpubench_measure(bench, &other);
    assert_int_equal(gpubench_close(bench), 0);
    assert_non_null(strchr(diary, 'B'));
    assert_null(strchr(strchr(diary, 'B'), 'A')); /* and the first not again */
}

static void a_run_function_is_needed(void **state)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("idle", NULL, NULL);
    (void)state;
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 2);
}

static void a_refused_handle_measures_nothing(void **state)
{
    gpubench *bench = OPEN("--warmup", "no");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("never", &d);
    (void)state;
    assert_non_null(bench);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 0);
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(diary, "");
}

static void a_program_may_refuse_its_command_line(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("never", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_usage_error(bench, "--shape '%s': no such shape", "b=0");
    assert_int_equal(gpubench_close(bench), 2);
    assert_string_equal(diary, "");
}

/* Like a filter that matches nothing: measuring nothing is no success. */
static void a_mode_that_no_case_has_is_refused(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "hot");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("cold-only", &d);
    (void)state;
    one.modes = GPUBENCH_COLD;
    gpubench_measure(bench, &one);
    assert_int_equal(gpubench_close(bench), 2);
}

/* ---- modes ---- */

static void each_mode_is_a_row(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "all");
    diarist d = {.letter = 'x', .pause_ns = 2000};
    gpubench_case one = diary_case("modes", &d);
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 3);
    expect_cell(bench, 0, "mode", "cold");
    expect_cell(bench, 0, "batch", "1");
    expect_cell(bench, 1, "mode", "hot");
    assert_true(value_of(bench, 1, "batch") > 1);
    expect_cell(bench, 2, "mode", "graph");
    expect_cell(bench, 2, "status", "unsupported");
    expect_cell(bench, 2, "median_us", "");
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_case_chooses_its_modes(void **state)
{
    gpubench *bench = OPEN(QUICK, "--mode", "cold,hot");
    diarist d = {.letter = 'x', .pause_ns = 100000};
    gpubench_case one = diary_case("hot-only", &d);
    (void)state;
    one.modes = GPUBENCH_HOT | GPUBENCH_GRAPH;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 1);
    expect_cell(bench, 0, "mode", "hot");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- a backend whose samples are given ---- */

static struct script {
    const double *samples; /* in us, one per timed sample; the first also in warm-up */
    size_t count;
    double drift;          /* us that each sample adds */
    long pause_ns;
    int energy_fails;
    uint64_t executed;     /* runs so far */
    double clock_step;     /* by which the overhead's samples differ, in us */
    uint64_t overheads;
    int room;              /* allocations at one time; 0: any number */
    int taken;
} script;

static gpb_backend scripted;

static int scripted_open(gpubench *bench)
{
    int code = gpb_host_backend.open(bench);
    bench->machine.l2_bytes = 1000;
    bench->clock_step_us = 0; /* the script's samples tell it */
    return code;
}

static int scripted_allocate(size_t bytes, int kind, void **memory)
{
    if (script.room > 0 && script.taken >= script.room)
        return GPUBENCH_OOM;
    script.taken++;
    return gpb_host_backend.allocate(bytes, kind, memory);
}

static void scripted_release(void *base, int kind)
{
    script.taken--;
    gpb_host_backend.release(base, kind);
}

static int scripted_sample(gpubench *bench, gpb_live *live, double *us)
{
    struct timespec pause = {0, script.pause_ns};
    size_t i = live->count < script.count ? live->count : script.count - 1;
    (void)bench;
    if (!strcmp(live->item->key, "overhead")) {
        *us = 1 + (script.overheads++ % 2 ? script.clock_step : 0);
        return 0;
    }
    if (script.pause_ns > 0)
        nanosleep(&pause, NULL);
    live->item->one.run(live->item->one.context, NULL);
    script.executed += live->batch + (live->mode == GPUBENCH_HOT);
    *us = (script.samples[i] + script.drift * (double)script.executed) * (double)live->batch;
    return 0;
}

static int scripted_begin(gpubench *bench, gpb_live *live)
{
    (void)bench;
    (void)live;
    return 0;
}

static void scripted_read_state(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->sm_mhz = 1980;
    live->mem_mhz = 2619;
    live->temperature_c = 41;
    live->power_w = 123.5;
}

static int scripted_energy(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->energy_mj = 0.5;
    return script.energy_fails ? 5 : 0;
}

static gpubench *open_scripted(const double *samples, size_t count, const char *const *options)
{
    gpubench *bench = open_bench(options);
    memset(&script, 0, sizeof script);
    script.samples = samples;
    script.count = count;
    scripted = gpb_host_backend;
    scripted.open = scripted_open;
    scripted.allocate = scripted_allocate;
    scripted.release = scripted_release;
    scripted.begin = scripted_begin;
    scripted.sample = scripted_sample;
    scripted.read_state = scripted_read_state;
    scripted.measure_energy = scripted_energy;
    scripted.calibration_samples = 240; /* as a GPU's */
    scripted.most_batch = 256;
    scripted.is_patient = scripted.owns_memory = 1;
    scripted.runs_on_host = 0;
    bench->backend = &scripted;
    return bench;
}

#define OPEN_SCRIPTED(samples, ...)                              \
    open_scripted(samples, sizeof(samples) / sizeof(samples)[0], \
                  (const char *const[]){__VA_ARGS__, NULL})

static const double five[] = {5};
static const double eleven[] = {11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6};

static void queue_scripted(gpubench *bench, diarist *d, uint64_t bytes, uint64_t flops)
{
    gpubench_case one = diary_case("scripted", d);
    d->letter = 'x';
    one.bytes = bytes;
    one.flops = flops;
    gpubench_measure(bench, &one);
}

/* The samples of a group take turns, after all are set up and warm. */
static void groups_interleave(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--min-samples", "8", "--max-samples", "8",
                                    "--max-time", "9");
    diarist d[3] = {{.letter = 'A'}, {.letter = 'B'}, {.letter = 'C'}};
    gpubench_case cases[3];
    size_t i;
    (void)state;
    for (i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"};
        cases[i] = diary_case(names[i], &d[i]);
    }
    gpubench_measure_group(bench, cases, 3);
    gpubench_run(bench);
    assert_memory_equal(diary, "sss", 3);
    /* each runs once more before its verify, on outputs that are poisoned */
    assert_string_equal(diary + diary_length - 9 - 24, "ABCABCABCABCABCABCABCABCAvBvCvttt");
    assert_int_equal(gpubench_row_count(bench), 3);
    expect_double(bench, 2, "samples", 8);
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_row_describes_its_samples(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(eleven, "--max-samples", "11", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 6000, 12000000);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_double(bench, 0, "samples", 11);
    expect_double(bench, 0, "batch", 1);
    expect_double(bench, 0, "min_us", 1);
    expect_double(bench, 0, "p5_us", 1.5);
    expect_double(bench, 0, "p25_us", 3.5);
    expect_double(bench, 0, "median_us", 6);
    expect_double(bench, 0, "p75_us", 8.5);
    expect_double(bench, 0, "p95_us", 10.5);
    expect_double(bench, 0, "p99_us", 10.9);
    expect_double(bench, 0, "max_us", 11);
    expect_double(bench, 0, "mean_us", 6);
    expect_double(bench, 0, "stddev_us", 3.3166247903553998); /* sqrt(11) */
    expect_double(bench, 0, "ci95_low_us", 2);
    expect_double(bench, 0, "ci95_high_us", 10);
    expect_double(bench, 0, "overhead_us", 1);
    expect_double(bench, 0, "gb_per_s", 1);    /* 6000 bytes in 6 us */
    expect_double(bench, 0, "tflop_per_s", 2); /* 12e6 operations in 6 us */
    assert_int_equal(gpubench_close(bench), 0);
}

static void equal_samples_have_no_spread(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "40", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_cell(bench, 0, "min_us", "5");
    expect_cell(bench, 0, "max_us", "5");
    expect_cell(bench, 0, "mean_us", "5");
    expect_cell(bench, 0, "stddev_us", "0");
    assert_int_equal(gpubench_close(bench), 0);
}

static void the_machines_state_is_recorded(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_double(bench, 0, "sm_mhz", 1980);
    expect_double(bench, 0, "mem_mhz", 2619);
    expect_double(bench, 0, "temperature_c", 41);
    expect_double(bench, 0, "power_w", 123.5);
    expect_cell(bench, 0, "energy_mj", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- when a case has enough ---- */

static void it_stops_when_precise(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--min-samples", "6", "--max-time", "2");
    diarist d = {0};
    (void)state;
    script.pause_ns = 1000000;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "stop=precision");
    expect_no_flag(bench, 0, "imprecise");
    assert_true(value_of(bench, 0, "samples") >= 6);
    assert_int_equal(gpubench_close(bench), 0);
}

static void it_stops_at_max_samples(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(eleven, "--max-samples", "9", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_double(bench, 0, "samples", 9);
    expect_flag(bench, 0, "stop=max-samples imprecise");
    assert_int_equal(gpubench_close(bench), 0);
}

static void it_stops_at_max_time(void **state)
{
    double noisy[1000];
    gpubench *bench;
    diarist d = {0};
    size_t i;
    (void)state;
    for (i = 0; i < 1000; i++)
        noisy[i] = i % 2 ? 1 : 100;
    bench = OPEN_SCRIPTED(noisy, "--max-time", "0.05");
    script.pause_ns = 1000000; /* so that 100,000 samples cannot come first */
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "stop=max-time imprecise");
    assert_true(value_of(bench, 0, "samples") <= 60);
    assert_int_equal(gpubench_close(bench), 0);
}

static void fewer_than_six_samples_are_never_precise(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "5", "--max-time", "100");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "imprecise");
    assert_int_equal(gpubench_close(bench), 0);
}

/* More than the default maximum, asked for by name, is not cut in silence. */
static void min_samples_may_exceed_the_default_maximum(void **state)
{
    gpubench *bench = OPEN("--min-samples", "200000");
    (void)state;
    assert_int_equal(bench->settings.min_samples, 200000);
    assert_true(bench->settings.max_samples >= 200000);
    gpubench_close(bench);
    bench = OPEN("--max-samples", "4"); /* below the default minimum */
    assert_int_equal(bench->settings.max_samples, 4);
    assert_true(bench->settings.min_samples <= 4);
    gpubench_close(bench);
}

static void warm_up_that_never_settles_is_marked(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--max-time", "0.05");
    diarist d = {0};
    (void)state;
    script.drift = 1;
    script.pause_ns = 1000000; /* windows of ten samples: each median is 10 us above the last */
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_flag(bench, 0, "unsteady");
    assert_int_equal(gpubench_close(bench), 0);
}

static void warm_up_has_at_least_what_was_asked(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--warmup", "3000",
                                    "--max-time", "1");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    assert_true(value_of(bench, 0, "warmup") >= 3000);
    expect_no_flag(bench, 0, "unsteady");
    assert_int_equal(gpubench_close(bench), 0);
}

/* 1.5 ms of work between two looks at the clock. */
static void hot_batches_are_long_enough(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--mode", "hot", "--max-samples", "6");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    assert_true(value_of(bench, 0, "batch") * 5 >= 1000 || value_of(bench, 0, "batch") >= 256);
    expect_double(bench, 0, "median_us", 5); /* of one run */
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- warnings ---- */

static const char *flags_of(gpubench *bench, uint64_t bytes, double peak)
{
    static char flags[512];
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("scripted", &d);
    one.bytes = bytes;
    one.peak_gb_per_s = peak;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    snprintf(flags, sizeof flags, "%s", gpubench_value(bench, 0, "flags"));
    assert_int_equal(gpubench_close(bench), 0);
    return flags;
}

static void doubtful_rows_are_marked(void **state)
{
    static const double short_time[] = {1.5}; /* the overhead is 1 */
    const char *flags;
    (void)state;
    flags = flags_of(OPEN_SCRIPTED(short_time, "--max-samples", "6"), 0, 0);
    support_expect_text(flags, "near-overhead");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 1000, 0);
    support_expect_text(flags, "fits-l2"); /* of 1000 bytes */
    support_expect_no_text(flags, "near-overhead");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, 1);
    support_expect_text(flags, "above-peak"); /* 1.2 GB/s of 1 */
    support_expect_no_text(flags, "fits-l2");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, 1.3);
    support_expect_no_text(flags, "above-peak");
    flags = flags_of(OPEN_SCRIPTED(five, "--max-samples", "6"), 6000, -1);
    support_expect_no_text(flags, "above-peak");
}

/* A clock that steps by half a microsecond knows five of them to a quarter. */
static void a_coarse_clock_widens_the_interval(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "40", "--max-time", "100");
    diarist d = {0};
    (void)state;
    script.clock_step = 0.5;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_double(bench, 0, "median_us", 5);
    expect_double(bench, 0, "ci95_low_us", 4.75);
    expect_double(bench, 0, "ci95_high_us", 5.25);
    expect_flag(bench, 0, "coarse-clock");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- energy ---- */

static void energy_is_in_the_row(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--energy");
    diarist d = {0};
    (void)state;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_double(bench, 0, "energy_mj", 0.5);
    expect_cell(bench, 0, "mode", "cold");
    expect_double(bench, 0, "batch", 1);
    assert_int_equal(gpubench_close(bench), 0);
}

static void a_failure_while_measuring_energy_fails_the_case(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6", "--energy");
    diarist d = {0};
    (void)state;
    script.energy_fails = 1;
    queue_scripted(bench, &d, 0, 0);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "failed");
    expect_flag(bench, 0, "measuring_the_energy");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- memory ---- */

static void a_case_that_does_not_fit_beside_the_others_is_measured_alone(void **state)
{
    gpubench *bench = OPEN_SCRIPTED(five, "--max-samples", "6");
    diarist d[2] = {{.letter = 'A'}, {.letter = 'B'}};
    gpubench_case cases[2];
    (void)state;
    cases[0] = diary_case("big-1", &d[0]);
    cases[1] = diary_case("big-2", &d[1]);
    script.room = 1;
    gpubench_measure_group(bench, cases, 2);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 2);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 1, "status", "ok");
    expect_cell(bench, 1, "case", "big-2");
    assert_int_equal(script.taken, 0); /* all given back */
    assert_int_equal(gpubench_close(bench), 0);
}

static void *seen_memory[4];

static int allocate_setup(void *context, gpubench *bench)
{
    static const int kinds[] = {GPUBENCH_DEVICE, GPUBENCH_PINNED,
                                GPUBENCH_PAGEABLE | GPUBENCH_OUTPUT, GPUBENCH_DEVICE};
    static const size_t sizes[] = {1000, 1, 513, 0};
    static const char text[] = "copied";
    char back[sizeof text] = "";
    size_t i;
    (void)context;
    for (i = 0; i < 4; i++) {
        seen_memory[i] = gpubench_alloc(bench, sizes[i], kinds[i]);
        assert_non_null(seen_memory[i]);
        assert_int_equal((uintptr_t)seen_memory[i] % 512, 0);
        memset(seen_memory[i], 0, sizes[i]);
    }
    assert_int_equal(gpubench_copy(bench, seen_memory[0], text, sizeof text), 0);
    assert_int_equal(gpubench_copy(bench, back, seen_memory[0], sizeof text), 0);
    assert_string_equal(back, "copied");
    return GPUBENCH_OK;
}

/* Only what is an output is poisoned. */
static int allocate_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)bench;
    assert_int_equal(((unsigned char *)seen_memory[1])[0], 0);
    assert_int_equal(((unsigned char *)seen_memory[2])[0], 0xff);
    assert_int_equal(((unsigned char *)seen_memory[2])[512], 0xff);
    gpubench_flag(bench, "two words");
    return gpubench_check(bench, 0.1, 0.5) | gpubench_check(bench, 0.3, 0.5) |
           gpubench_check(bench, 0.2, 0.5);
}

static void memory_is_aligned_and_outputs_are_poisoned(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = gpubench_case_init("memory", diary_run, &d);
    (void)state;
    one.setup = allocate_setup;
    one.verify = allocate_verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "ok");
    expect_double(bench, 0, "device_bytes", 1000);
    expect_double(bench, 0, "max_error", 0.3); /* the largest of three */
    expect_double(bench, 0, "tolerance", 0.5);
    expect_flag(bench, 0, "two_words");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- codes and their explanation ---- */

static int return_context(void *context, gpubench_stream stream)
{
    (void)stream;
    return *(int *)context;
}

static const char *explain(int code)
{
    return code == 77 ? "seventy-seven" : NULL;
}

static void expect_code(int code, const char *status, const char *flag, int exit_status)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("code", return_context, &code);
    (void)status;
    one.error_string = explain;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_int_equal(gpubench_row_count(bench), 1);
    expect_cell(bench, 0, "status", status);
    expect_cell(bench, 0, "median_us", "");
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), exit_status);
}

static void codes_become_a_status(void **state)
{
    (void)state;
    expect_code(77, "failed", "seventy-seven", 1);
    expect_code(ENOSPC, "failed", "No_space_left", 1);
    expect_code(GPUBENCH_FAILED, "failed", "reason=", 1);
    expect_code(GPUBENCH_OOM, "oom", "not_enough_memory", 1);
    expect_code(GPUBENCH_MISMATCH, "mismatch", "reason=", 1);
    expect_code(GPUBENCH_UNSUPPORTED, "unsupported", "reason=", 0);
    expect_code(GPUBENCH_SKIPPED, "skipped", "reason=", 0);
    expect_code(-12345, "failed", "reason=", 1);
}

/* ---- other libraries' codes ---- */

enum library_status { LIBRARY_FINE, LIBRARY_ODD = 13, LIBRARY_SILENT = 14 };

static enum library_status call_library(enum library_status status)
{
    return status;
}

static const char *library_text(enum library_status status)
{
    return status == LIBRARY_ODD ? "it is odd" : NULL;
}

/* Which of a case's functions calls the library in vain. */
static const char *failing_stage;
static enum library_status failing_status;

static int call_in(const char *stage)
{
    GPUBENCH_TRY(call_library(LIBRARY_FINE), library_text);
    if (!strcmp(stage, failing_stage))
        GPUBENCH_TRY(call_library(failing_status), library_text);
    return GPUBENCH_OK;
}

static int set_up_library(void *context, gpubench *bench)
{
    (void)context, (void)bench;
    return call_in("setup");
}

static int reset_library(void *context, gpubench_stream stream)
{
    (void)context, (void)stream;
    return call_in("reset");
}

static int run_library(void *context, gpubench_stream stream)
{
    (void)context, (void)stream;
    return call_in("run");
}

static int verify_library(void *context, gpubench *bench)
{
    (void)context, (void)bench;
    return call_in("verify");
}

static void expect_library(const char *stage, enum library_status status, const char *flag)
{
    gpubench *bench = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("library", run_library, NULL);
    failing_stage = stage;
    failing_status = status;
    one.setup = set_up_library;
    one.reset = reset_library;
    one.verify = verify_library;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", *stage ? "failed" : "ok");
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), *stage != 0);
}

static void a_librarys_code_has_its_own_text(void **state)
{
    static const char *const stages[] = {"setup", "reset", "run", "verify"};
    size_t i;
    (void)state;
    for (i = 0; i < 4; i++) {
        expect_library(stages[i], LIBRARY_ODD, "reason=call_library:_it_is_odd_(13)");
        expect_library(stages[i], LIBRARY_SILENT, "reason=call_library:_unknown_error_(14)");
    }
    expect_library("", LIBRARY_ODD, "stop=");
}

static int skip_with_a_reason(void *context, gpubench_stream stream)
{
    (void)stream;
    return gpubench_fail(NULL, GPUBENCH_SKIPPED, "%s has %d", (const char *)context, 3);
}

static void run_can_say_why(void **state)
{
    gpubench *bench = OPEN(QUICK), *idle = OPEN(QUICK);
    gpubench_case one = gpubench_case_init("says", skip_with_a_reason, (void *)(uintptr_t)"it");
    (void)state;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "skipped");
    expect_flag(bench, 0, "reason=it_has_3");
    assert_int_equal(gpubench_close(bench), 0);
    assert_int_equal(gpubench_fail(NULL, GPUBENCH_OOM, "nobody"), GPUBENCH_OOM);
    assert_int_equal(gpubench_fail_call("f(x)", 1, NULL), GPUBENCH_FAILED);
    gpubench_usage_error(idle, "measures nothing");
    (void)gpubench_close(idle);
}

static void nan_and_infinity_never_pass_a_check(void **state)
{
    gpubench *bench = OPEN(QUICK);
    (void)state;
    assert_int_equal(gpubench_check(bench, NAN, 1), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, 0, NAN), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, INFINITY, 1), GPUBENCH_MISMATCH);
    assert_int_equal(gpubench_check(bench, 1, 1), GPUBENCH_OK);
    assert_int_equal(gpubench_check(bench, 0, 0), GPUBENCH_OK);
    assert_int_equal(gpubench_check(bench, 1.0000001, 1), GPUBENCH_MISMATCH);
    gpubench_close(bench);
}

static int forgetful_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)gpubench_check(bench, 0.1, 0.5);
    (void)gpubench_check(bench, 0.7, 0.5); /* fails */
    return gpubench_check(bench, 0.2, 0.5);
}

/* Verify may look at several outputs and return only the last answer. */
static void a_failed_check_stays_failed(void **state)
{
    gpubench *bench = OPEN(QUICK);
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("forgetful", &d);
    (void)state;
    one.verify = forgetful_verify;
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    expect_cell(bench, 0, "status", "mismatch");
    expect_flag(bench, 0, "0.7_exceeds");
    expect_cell(bench, 0, "median_us", "");
    assert_int_equal(gpubench_close(bench), 1);
}

/* ---- the handle's answers ---- */

static void the_handle_answers(void **state)
{
    gpubench *bench = OPEN(QUICK, "--seed", "42");
    diarist d = {.letter = 'x'};
    gpubench_case one = diary_case("asked", &d);
    (void)state;
    assert_int_equal(gpubench_is_cuda(bench), 0);
    assert_int_equal(gpubench_compute_capability(bench), 0);
    assert_int_equal(gpubench_seed(bench), 42);
    assert_null(gpubench_value(bench, 0, "case"));
    gpubench_measure(bench, &one);
    gpubench_run(bench);
    assert_null(gpubench_value(bench, 0, "no_such_column"));
    assert_null(gpubench_value(bench, 1, "case"));
    expect_cell(bench, 0, "uuid", "");
    assert_int_equal(gpubench_close(bench), 0);
}

/* ---- the whole program ---- */

static csv_table *run_set(const char *set, int status)
{
    const char *csv = support_path("engine.csv");
    outcome result = RUN("host", "--set", set, "--csv", csv, QUICK);
    csv_table *table = support_read_csv(csv);
    support_expect_status(&result, status);
    support_expect_no_text(result.err, "Sanitizer");
    support_free_outcome(&result);
    return table;
}

static void every_fault_gets_its_status(void **state)
{
    csv_table *table = run_set("failures", 1);
    (void)state;
    support_expect_failed(table, "setup-fails", "failed", "the_setup_says_no");
    support_expect_failed(table, "setup-errno", "failed", "No_such_file");
    support_expect_failed(table, "run-fails", "failed", "No_space_left");
    support_expect_failed(table, "run-fails-later", "failed", "reason=run:");
    support_expect_failed(table, "verify-fails", "mismatch", "0.5");
    support_expect_failed(table, "nan", "mismatch", "nan");
    support_expect_failed(table, "writes-nothing", "mismatch", "reason=");
    support_expect_failed(table, "writes-before", "mismatch", "in_front_of");
    support_expect_failed(table, "writes-behind", "mismatch", "behind");
    support_expect_failed(table, "tebibyte", "oom", "needed_bytes=1099511627776 free_bytes=");
    support_expect_failed(table, "size-max", "oom",
                          "needed_bytes=18446744073709551615 free_bytes=");
    support_free_csv(table);
}

static void healthy_cases_among_faulty_ones_are_measured(void **state)
{
    csv_table *table = run_set("failures", 1);
    char name[32];
    int i;
    (void)state;
    for (i = 1; i <= 11; i++) {
        snprintf(name, sizeof name, "healthy-%d", i);
        support_expect_measured(table, name);
    }
    support_free_csv(table);
}

static void every_setup_has_its_teardown(void **state)
{
    outcome result = RUN("host", "--set", "failures", "--quiet", QUICK);
    const char *at;
    int setups = 0, teardowns = 0;
    (void)state;
    for (at = result.err; (at = strstr(at, "setup ")) != NULL; at++)
        setups += at == result.err || at[-1] == '\n';
    for (at = result.err; (at = strstr(at, "teardown ")) != NULL; at++)
        teardowns++;
    assert_int_equal(setups, 22);
    assert_int_equal(teardowns, 22);
    support_free_outcome(&result);
}

static void what_does_not_fit_spares_the_rest_of_its_group(void **state)
{
    csv_table *table = run_set("starved", 1);
    (void)state;
    assert_int_equal(table->row_count, 4);
    support_expect_measured(table, "small-1");
    support_expect_measured(table, "small-2");
    support_expect_failed(table, "tebibyte", "oom", "needed_bytes=1099511627776");
    support_free_csv(table);
}

#define ENGINE_TEST(name) cmocka_unit_test_setup(name, clear_diary)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(a_life_is_setup_pairs_verify_teardown),
        ENGINE_TEST(a_case_may_have_nothing_but_run),
        ENGINE_TEST(teardown_follows_a_half_done_setup),
        ENGINE_TEST(hot_mode_resets_before_a_batch),
        ENGINE_TEST(groups_interleave),
        ENGINE_TEST(single_cases_do_not_interleave),
        ENGINE_TEST(a_failure_in_a_group_spares_the_others),
        ENGINE_TEST(strings_are_copied),
        ENGINE_TEST(what_is_queued_after_a_run_is_measured_too),
        ENGINE_TEST(a_run_function_is_needed),
        ENGINE_TEST(a_refused_handle_measures_nothing),
        ENGINE_TEST(a_program_may_refuse_its_command_line),
        ENGINE_TEST(a_mode_that_no_case_has_is_refused),
        ENGINE_TEST(each_mode_is_a_row),
        ENGINE_TEST(a_case_chooses_its_modes),
        ENGINE_TEST(a_row_describes_its_samples),
        ENGINE_TEST(equal_samples_have_no_spread),
        ENGINE_TEST(the_machines_state_is_recorded),
        ENGINE_TEST(it_stops_when_precise),
        ENGINE_TEST(it_stops_at_max_samples),
        ENGINE_TEST(it_stops_at_max_time),
        ENGINE_TEST(fewer_than_six_samples_are_never_precise),
        ENGINE_TEST(min_samples_may_exceed_the_default_maximum),
        ENGINE_TEST(warm_up_that_never_settles_is_marked),
        ENGINE_TEST(warm_up_has_at_least_what_was_asked),
        ENGINE_TEST(hot_batches_are_long_enough),
        ENGINE_TEST(doubtful_rows_are_marked),
        ENGINE_TEST(a_coarse_clock_widens_the_interval),
        ENGINE_TEST(energy_is_in_the_row),
        ENGINE_TEST(a_failure_while_measuring_energy_fails_the_case),
        ENGINE_TEST(a_case_that_does_not_fit_beside_the_others_is_measured_alone),
        ENGINE_TEST(memory_is_aligned_and_outputs_are_poisoned),
        ENGINE_TEST(codes_become_a_status),
        ENGINE_TEST(a_librarys_code_has_its_own_text),
        ENGINE_TEST(run_can_say_why),
        ENGINE_TEST(nan_and_infinity_never_pass_a_check),
        ENGINE_TEST(a_failed_check_stays_failed),
        ENGINE_TEST(the_handle_answers),
        ENGINE_TEST(every_fault_gets_its_status),
        ENGINE_TEST(healthy_cases_among_faulty_ones_are_measured),
        ENGINE_TEST(every_setup_has_its_teardown),
        ENGINE_TEST(what_does_not_fit_spares_the_rest_of_its_group),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("engine", tests, NULL, NULL));
}
