/* What the tests of the measuring engine share: cases that keep a diary, and a backend whose
 * samples are given. */
#ifndef GPUBENCH_TESTS_ENGINE_CASES_H
#define GPUBENCH_TESTS_ENGINE_CASES_H

#include "gpubench.h"
#include "support.h"

/* A few samples fit, of which each waits for a small sweep. */
#define QUICK "--max-time", "0.1", "--min-samples", "6", "--warmup", "1"

enum { DIARY_BYTES = 1 << 20 };
static char diary[DIARY_BYTES];
static size_t diary_length;

static inline void note(char what)
{
    if (diary_length + 1 < DIARY_BYTES)
        diary[diary_length++] = what;
    diary[diary_length] = '\0';
}

typedef struct diarist {
    char letter;     /* what run notes */
    int setup_code;  /* what setup returns */
    unsigned char *memory;
    long pause_ns;   /* how long run takes, awake: who sleeps wakes late on a busy host */
    uint64_t since_reset, most_since_reset;
} diarist;

static inline int diary_setup(void *context, gpubench *bench)
{
    diarist *d = (diarist *)context;
    note('s');
    d->memory = (unsigned char *)gpubench_alloc(bench, 64, GPUBENCH_DEVICE);
    if (d->setup_code != 0)
        return gpubench_fail(bench, d->setup_code, "as told");
    return d->memory ? GPUBENCH_OK : GPUBENCH_OOM;
}

static inline int diary_run(void *context, gpubench_stream stream)
{
    diarist *d = (diarist *)context;
    const double end_s = gpb_now_s() + 1e-9 * (double)d->pause_ns;
    (void)stream;
    note(d->letter);
    d->since_reset++;
    if (d->since_reset > d->most_since_reset)
        d->most_since_reset = d->since_reset;
    while (d->pause_ns > 0 && gpb_now_s() < end_s)
        continue;
    return 0;
}

static inline int diary_verify(void *context, gpubench *bench)
{
    (void)context;
    (void)bench;
    note('v');
    return 0;
}

static inline void diary_teardown(void *context)
{
    (void)context;
    note('t');
}

static inline gpubench_case diary_case(const char *name, diarist *d)
{
    gpubench_case one = gpubench_case_init(name, diary_run, d);
    one.setup = diary_setup;
    one.verify = diary_verify;
    one.teardown = diary_teardown;
    return one;
}

static inline int clear_diary(void **state)
{
    (void)state;
    diary_length = 0;
    diary[0] = '\0';
    return 0;
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

static inline int scripted_open(gpubench *bench)
{
    int code = gpb_host_backend.open(bench);
    bench->machine.l2_bytes = 1000;
    bench->clock_step_us = 0; /* the script's samples tell it */
    return code;
}

static inline int scripted_allocate(size_t bytes, int kind, void **memory)
{
    if (script.room > 0 && script.taken >= script.room)
        return GPUBENCH_OOM;
    script.taken++;
    return gpb_host_backend.allocate(bytes, kind, memory);
}

static inline void scripted_release(void *base, int kind)
{
    script.taken--;
    gpb_host_backend.release(base, kind);
}

static inline int scripted_sample(gpubench *bench, gpb_live *live, double *us)
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

static inline int scripted_begin(gpubench *bench, gpb_live *live)
{
    (void)bench;
    (void)live;
    return 0;
}

static inline void scripted_read_state(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->sm_mhz = 1980;
    live->mem_mhz = 2619;
    live->temperature_c = 41;
    live->power_w = 123.5;
}

static inline int scripted_energy(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->energy_mj = 0.5;
    return script.energy_fails ? 5 : 0;
}

static inline gpubench *open_scripted(const double *samples, size_t count, const char *const *options)
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

/* ---- the whole program ---- */

#define ENGINE_TEST(name) cmocka_unit_test_setup(name, clear_diary)

#endif
