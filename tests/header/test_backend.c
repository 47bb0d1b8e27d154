/* A backend that the header knows nothing of: one table, and what it points to. Its
 * device is a thread that takes work from a queue, with a memory and a clock of its
 * own, so that each time is known beforehand. */
#define _GNU_SOURCE
struct gpb_backend;
extern const struct gpb_backend queue_backend;
#define GPB_MORE_BACKENDS &queue_backend,
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

#include <pthread.h>

/* ---- the device and its interface, as a vendor's library would have them ---- */

enum { QUEUE_LENGTH = 20, QUEUE_FULL = 7, QUEUE_NO_MEMORY = 8, DEVICE_BYTES = 1 << 20 };

typedef struct task {
    void (*work)(void *argument); /* NULL: only time passes */
    void *argument;
    double us;     /* that it takes by the device's clock */
    double *stamp; /* where the clock's time goes when it is done, or NULL */
} task;

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    task tasks[QUEUE_LENGTH];
    size_t first, count; /* the first is at work until it is taken off */
    int stop, runs;
    double clock_us;
    size_t free_bytes;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void *queue_main(void *unused)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.stop || queue.count > 0) {
        const task *one = &queue.tasks[queue.first];
        if (queue.count == 0) {
            pthread_cond_wait(&queue.change, &queue.lock);
            continue;
        }
        pthread_mutex_unlock(&queue.lock);
        if (one->work)
            one->work(one->argument);
        pthread_mutex_lock(&queue.lock);
        queue.clock_us += one->us;
        if (one->stamp)
            *one->stamp = queue.clock_us;
        queue.first = (queue.first + 1) % QUEUE_LENGTH;
        queue.count--;
        pthread_cond_broadcast(&queue.change);
    }
    pthread_mutex_unlock(&queue.lock);
    return unused;
}

static int queue_push(task one)
{
    int code = QUEUE_FULL;
    pthread_mutex_lock(&queue.lock);
    if (queue.count < QUEUE_LENGTH) {
        queue.tasks[(queue.first + queue.count++) % QUEUE_LENGTH] = one;
        code = 0;
    }
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
    return code;
}

static void queue_wait(void)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count > 0)
        pthread_cond_wait(&queue.change, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}

/* In front of what is handed out stands how much it is. */
static int queue_take(size_t bytes, void **memory)
{
    unsigned char *taken;
    if (bytes > queue.free_bytes)
        return QUEUE_NO_MEMORY;
    taken = aligned_alloc(512, 512 + (bytes + 511) / 512 * 512);
    assert_non_null(taken);
    memcpy(taken, &bytes, sizeof bytes);
    queue.free_bytes -= bytes;
    *memory = taken + 512;
    return 0;
}

static void queue_give_back(void *memory)
{
    unsigned char *taken = (unsigned char *)memory - 512;
    size_t bytes;
    memcpy(&bytes, taken, sizeof bytes);
    queue.free_bytes += bytes;
    free(taken);
}

/* ---- the backend ---- */

static void queue_stop(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.stop = 1;
    pthread_cond_broadcast(&queue.change);
    pthread_mutex_unlock(&queue.lock);
    pthread_join(queue.thread, NULL);
    queue.runs = 0;
}

/* One that is still at work is of a test that failed. */
static int backend_open(gpubench *bench)
{
    if (queue.runs)
        queue_stop();
    queue.stop = 0;
    queue.clock_us = 0;
    queue.free_bytes = DEVICE_BYTES;
    snprintf(bench->machine.device, sizeof bench->machine.device, "a queue");
    bench->machine.memory_bytes = DEVICE_BYTES;
    queue.runs = pthread_create(&queue.thread, NULL, queue_main, NULL) == 0;
    return queue.runs ? 0 : 2;
}

static void backend_close(gpubench *bench)
{
    (void)bench;
    queue_stop();
}

static int backend_allocate(size_t bytes, int kind, void **memory)
{
    (void)kind;
    return queue_take(bytes, memory) == 0 ? 0 : GPUBENCH_OOM;
}

static void backend_release(void *base, int kind)
{
    (void)kind;
    queue_give_back(base);
}

static int backend_copy(void *destination, const void *source, size_t bytes)
{
    queue_wait();
    memcpy(destination, source, bytes);
    return 0;
}

static int backend_fill(void *destination, int byte, size_t bytes, int kind)
{
    (void)kind;
    queue_wait();
    memset(destination, byte, bytes);
    return 0;
}

static uint64_t backend_free_bytes(void)
{
    return queue.free_bytes;
}

/* Reset, then as many runs as the batch between two stamps of the device's clock. */
static int backend_sample(gpubench *bench, gpb_live *live, double *us)
{
    const gpubench_case *one = &live->item->one;
    double start = 0, stop = 0;
    int code = one->reset ? one->reset(one->context, NULL) : 0;
    (void)bench;
    queue_wait();
    if (code == 0)
        code = queue_push((task){NULL, NULL, 0, &start});
    for (uint64_t i = 0; i < live->batch && code == 0; i++)
        code = one->run(one->context, NULL);
    if (code == 0)
        code = queue_push((task){NULL, NULL, 0, &stop});
    queue_wait();
    *us = stop - start;
    return code;
}

static int backend_begin(gpubench *bench, gpb_live *live)
{
    double us;
    if (live->mode == GPUBENCH_GRAPH)
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "a queue has no graphs");
    return backend_sample(bench, live, &us);
}

static int backend_hold(gpubench *bench, gpubench_stream stream)
{
    (void)bench;
    (void)stream;
    return 0;
}

static int backend_finish(gpubench *bench)
{
    (void)bench;
    queue_wait();
    return 0;
}

static void backend_end(gpb_live *live)
{
    (void)live;
    queue_wait();
}

static int backend_fine(gpubench *bench)
{
    (void)bench;
    return 0;
}

static void backend_nothing(gpubench *bench)
{
    (void)bench;
}

static int backend_alive(gpubench *bench)
{
    (void)bench;
    return 1;
}

static const char *backend_error_name(int code)
{
    return code == QUEUE_FULL ? "QUEUE_FULL" : "QUEUE_NO_MEMORY";
}

static const char *backend_error_string(int code)
{
    return code == QUEUE_FULL ? "too much at a time" : "no memory";
}

static void backend_read_state(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->temperature_c = 21;
}

static int backend_measure_energy(gpubench *bench, gpb_live *live)
{
    (void)bench;
    live->energy_mj = 5;
    return 0;
}

static int backend_takes(const char *device)
{
    return !strcmp(device, "queue");
}

static int backend_is_oom(int code)
{
    return code == QUEUE_NO_MEMORY;
}

static int run_2_us(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return queue_push((task){NULL, NULL, 2, NULL});
}

static int backend_calibrate(gpubench *bench, unsigned mode)
{
    return mode == GPUBENCH_GRAPH ? 0
                                  : gpb_calibrate(bench, mode, run_2_us, &bench->overhead_us[mode]);
}

enum { MOST_BATCH = 16 };

const struct gpb_backend queue_backend = {
    .name = "queue",
    .choose = backend_fine,
    .open = backend_open,
    .close = backend_close,
    .make_current = backend_fine,
    .allocate = backend_allocate,
    .release = backend_release,
    .copy = backend_copy,
    .fill = backend_fill,
    .free_bytes = backend_free_bytes,
    .begin = backend_begin,
    .sample = backend_sample,
    .hold = backend_hold,
    .let_go = backend_nothing,
    .finish = backend_finish,
    .end = backend_end,
    .alive = backend_alive,
    .error_name = backend_error_name,
    .error_string = backend_error_string,
    .read_state = backend_read_state,
    .measure_energy = backend_measure_energy,
    .takes = backend_takes,
    .is_oom = backend_is_oom,
    .calibrate = backend_calibrate,
    .calibration_samples = 12,
    .max_time_s = 0.125,
    .warmup = 3,
    .most_batch = MOST_BATCH,
    .is_patient = 1,
    .owns_memory = 1,
};

/* ---- cases on it ---- */

enum { COUNT = 1000, RUN_US = 10 };

typedef struct tripling {
    float *in, *out;
    void *own;        /* taken from the device directly */
    size_t own_bytes;
    size_t written;   /* how many elements */
    int code;         /* of run, instead of working */
} tripling;

static void triple(void *argument)
{
    const tripling *t = argument;
    for (size_t i = 0; i < t->written; i++)
        t->out[i] = 3 * t->in[i];
}

static int triple_setup(void *context, gpubench *bench)
{
    tripling *t = context;
    int code = t->own_bytes > 0 ? queue_take(t->own_bytes, &t->own) : 0;
    if (code != 0)
        return code;
    t->in = gpubench_random(bench, "f32", COUNT + 16);
    t->out = gpubench_alloc(bench, COUNT * sizeof *t->out, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return gpubench_allocated(bench);
}

static int triple_run(void *context, gpubench_stream stream)
{
    tripling *t = context;
    (void)stream;
    return t->code ? t->code : queue_push((task){triple, t, RUN_US, NULL});
}

static int triple_verify(void *context, gpubench *bench)
{
    const tripling *t = context;
    float expected[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        expected[i] = 3 * t->in[i];
    return gpubench_compare(bench, t->out, "f32", expected, "f32", COUNT, GPUBENCH_OF_DTYPE);
}

static void triple_teardown(void *context)
{
    tripling *t = context;
    if (t->own)
        queue_give_back(t->own);
    t->own = NULL;
}

#define ON_QUEUE "--device", "queue", "--min-samples", "8", "--max-samples", "8"

static void queue_tripling(gpubench *bench, tripling *t)
{
    gpubench_case one = gpubench_case_init("triple", triple_run, t);
    one.setup = triple_setup;
    one.verify = triple_verify;
    one.teardown = triple_teardown;
    one.bytes = 2 * COUNT * sizeof(float);
    gpubench_measure(bench, &one);
    gpubench_run(bench);
}

static void its_rows_are_as_anybodys(void **state)
{
    gpubench *bench = OPEN(ON_QUEUE, "--energy");
    tripling t = {.written = COUNT, .own_bytes = 100000};
    (void)state;
    queue_tripling(bench, &t);
    assert_int_equal(gpubench_is_cuda(bench), 0);
    expect_cell(bench, 0, "status", "ok");
    expect_cell(bench, 0, "backend", "queue");
    expect_cell(bench, 0, "device", "a queue");
    expect_cell(bench, 0, "max_error", "0");
    expect_number(bench, 0, "median_us", RUN_US);
    expect_number(bench, 0, "overhead_us", 2);
    expect_number(bench, 0, "gb_per_s", 0.8); /* 8000 bytes in 10 us */
    expect_number(bench, 0, "temperature_c", 21);
    expect_number(bench, 0, "energy_mj", 5);
    /* What the case took past the framework is counted, and each guard zone. */
    expect_number(bench, 0, "device_bytes", 100000 + 4 * (2 * COUNT + 16) + 4 * GPB_GUARD_BYTES);
    expect_cell(bench, 0, "settings",
                "precision=0.5 max-time=0.125 min-samples=8 max-samples=8 warmup=3");
    assert_int_equal(gpubench_close(bench), 0);
}

/* A batch is what the queue holds, though 1500 us would be 150 runs. */
static void its_modes(void **state)
{
    gpubench *bench = OPEN(ON_QUEUE, "--mode", "cold,hot,graph");
    tripling t = {.written = COUNT};
    const struct {
        const char *mode, *status, *batch;
    } expected[] = {{"cold", "ok", "1"}, {"hot", "ok", "16"}, {"graph", "unsupported", ""}};
    (void)state;
    queue_tripling(bench, &t);
    assert_int_equal(gpubench_row_count(bench), 3);
    for (size_t row = 0; row < 3; row++) {
        expect_cell(bench, row, "mode", expected[row].mode);
        expect_cell(bench, row, "status", expected[row].status);
        expect_cell(bench, row, "batch", expected[row].batch);
    }
    expect_number(bench, 1, "median_us", RUN_US);
    expect_flag(bench, 2, "a_queue_has_no_graphs");
    assert_int_equal(gpubench_close(bench), 0);
}

static void expect_failure(tripling t, const char *status, const char *flag)
{
    gpubench *bench = OPEN(ON_QUEUE);
    queue_tripling(bench, &t);
    expect_cell(bench, 0, "status", status);
    expect_flag(bench, 0, flag);
    assert_int_equal(gpubench_close(bench), 1);
}

static void its_failures_are_told(void **state)
{
    (void)state;
    expect_failure((tripling){.code = QUEUE_FULL}, "failed", "QUEUE_FULL:_too_much_at_a_time");
    expect_failure((tripling){.code = QUEUE_NO_MEMORY}, "oom", "not_enough_memory");
    expect_failure((tripling){.own_bytes = 2 * DEVICE_BYTES}, "oom", "not_enough_memory");
    expect_failure((tripling){.own_bytes = DEVICE_BYTES - 2000}, "oom", "free_bytes=2000");
    expect_failure((tripling){.written = COUNT - 1}, "mismatch", "element_999");
    expect_failure((tripling){.written = COUNT + 1}, "mismatch", "wrote_out_of_bounds");
}

static void the_option_decides(void **state)
{
    const char *const devices[] = {"cpu", "auto"};
    gpubench *bench;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        bench = OPEN("--device", devices[i]);
        assert_string_equal(bench->backend->name, "cpu");
        gpubench_usage_error(bench, "nothing is to be measured");
        assert_int_equal(gpubench_close(bench), 2);
    }
    bench = OPEN("--device", "queues");
    assert_int_equal(gpubench_close(bench), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_rows_are_as_anybodys),
        cmocka_unit_test(its_modes),
        cmocka_unit_test(its_failures_are_told),
        cmocka_unit_test(the_option_decides),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("backend", tests, NULL, NULL));
}
