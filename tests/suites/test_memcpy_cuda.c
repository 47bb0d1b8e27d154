/* The memcpy suite's rows that need more than one stream or device, whole, on
 * the substitute runtime in fake_cuda/: what they take is given back on every
 * path, what they leave behind verifies, and rows that cannot be say why. */
#define _GNU_SOURCE
#define main memcpy_main
#include "../../suites/memcpy.c"
#undef main

#include "../../kernels/memcpy/memcpy.cuh"
#include "support.h"

#define QUICK "--quiet", "--max-time", "0.02", "--max-samples", "10", "--warmup", "1"

enum { BYTES = 4099, KERNEL_US = 10 };

/* ---- in place of what only nvcc compiles -------------------------------------------- */

const kernel_table memcpy_h2d_cuda, memcpy_h2d_basic_cuda, memcpy_d2h_cuda, memcpy_d2h_basic_cuda;
const kernel_table memcpy_d2d_cuda, memcpy_memset_cuda;

int random_normal_cuda(void *out, kernel_dtype dtype, int64_t count, float mean, float stddev,
                       uint64_t seed, kernel_stream stream)
{
    (void)stream;
    return random_normal_cpu(out, dtype, count, mean, stddev, seed);
}

static int launch_code, accesses_at_copy;

int memcpy_copy_by_kernel(const memcpy_args *args, kernel_stream stream)
{
    accesses_at_copy = fake_peer_accesses();
    return launch_code ? launch_code
                       : (int)cudaMemcpyAsync(args->dst, args->src, args->bytes, cudaMemcpyDefault,
                                              stream);
}

typedef struct chains {
    float *results;
    size_t count;
} chains;

static void compute(void *argument)
{
    static float period[MEMCPY_OVERLAP_STARTS]; /* all zero until it is known */
    const chains *job = argument;
    for (size_t i = 0; i < MEMCPY_OVERLAP_STARTS && period[MEMCPY_OVERLAP_STARTS - 1] == 0; i++)
        period[i] = memcpy_overlap_result(i);
    for (size_t i = 0; i < job->count; i++)
        job->results[i] = period[i % MEMCPY_OVERLAP_STARTS];
}

int memcpy_compute(float *results, size_t count, kernel_stream stream)
{
    static chains job;
    int code = launch_code ? launch_code : (int)fake_launch(stream, KERNEL_US, 0);
    job = (chains){results, count};
    return code ? code : (int)cudaLaunchHostFunc(stream, compute, &job);
}

/* ---- rows by themselves ---------------------------------------------------------------- */

static const kernel_variant *find_row(const kernel_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(table->rows[i].name, name))
            return &table->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void expect_nothing_left(void)
{
    assert_int_equal(fake_live_objects(), 0);
    assert_int_equal(fake_used_bytes(), 0);
    assert_int_equal(fake_peer_accesses(), 0);
    assert_int_equal(fake_current_device(), 0);
}

static const memcpy_peer_args to_next = {.copy = {.bytes = BYTES}, .hop = 1};

/* Fails each thing that prepare takes, in turn, until nothing is left to fail. */
static void expect_that_prepare_undoes(const kernel_variant *row, int takes)
{
    /* All rows' arguments begin with a memcpy_args, the peers' hop is behind it. */
    memcpy_peer_args args = to_next;
    int failed = 0;
    for (;; failed++) {
        void *row_state = NULL;
        fake_start();
        fake_cuda.failing_take = failed + 1;
        if (row->prepare(&args, &row_state) == 0) {
            row->release(row_state);
            break;
        }
        assert_null(row_state);
        expect_nothing_left();
    }
    expect_nothing_left();
    assert_int_equal(failed, takes);
}

static void test_what_prepare_takes_is_given_back(void **state)
{
    (void)state;
    expect_that_prepare_undoes(find_row(&memcpy_peer_cuda, "peer"), 4);
    expect_that_prepare_undoes(find_row(&memcpy_peer_cuda, "peer_kernel"), 4);
    expect_that_prepare_undoes(find_row(&memcpy_staged_cuda, "staged"), 2);
    expect_that_prepare_undoes(find_row(&memcpy_bidirectional_cuda, "overlapped"), 3);
    expect_that_prepare_undoes(find_row(&memcpy_overlap_cuda, "overlapped"), 3);
}

/* Rows of a group are prepared together and released in any order. */
static void test_peer_access_stays_until_the_last_row(void **state)
{
    const kernel_variant *row = find_row(&memcpy_peer_cuda, "peer");
    memcpy_peer_args args = to_next, far = to_next;
    void *first, *second, *third;
    (void)state;
    fake_start();
    fake_cuda.three_devices = 1;
    far.hop = 2;
    assert_int_equal(row->prepare(&args, &first), 0);
    assert_int_equal(row->prepare(&args, &second), 0);
    assert_int_equal(row->prepare(&far, &third), 0);
    assert_int_equal(fake_device_of(((memcpy_peer *)first)->dst), 1);
    assert_int_equal(fake_device_of(((memcpy_peer *)third)->dst), 2);
    assert_int_equal(fake_peer_accesses(), 4);
    row->release(first);
    assert_int_equal(fake_peer_accesses(), 4);
    row->release(third);
    assert_int_equal(fake_peer_accesses(), 2);
    row->release(second);
    expect_nothing_left();
}

static void test_reasons_for_no_peer(void **state)
{
    const kernel_variant *peer = find_row(&memcpy_peer_cuda, "peer");
    const kernel_variant *staged = find_row(&memcpy_staged_cuda, "staged");
    memcpy_peer_args far = {.copy = {.bytes = BYTES}, .hop = 2};
    (void)state;
    fake_start();
    assert_null(peer->unsupported(&to_next));
    assert_null(staged->unsupported(&to_next));
    assert_string_equal(staged->unsupported(&far), "needs more GPUs");
    fake_cuda.no_peer_access = 1;
    assert_string_equal(peer->unsupported(&to_next), "no peer access between these GPUs");
    assert_null(staged->unsupported(&to_next));
    fake_cuda.one_device = 1;
    assert_string_equal(peer->unsupported(&to_next), "needs two GPUs");
    assert_string_equal(staged->unsupported(&to_next), "needs two GPUs");
}

/* The device after the last one is the first. */
static void test_the_next_device_may_be_the_first(void **state)
{
    const kernel_variant *row = find_row(&memcpy_staged_cuda, "staged");
    memcpy_peer_args args = to_next;
    void *row_state;
    (void)state;
    fake_start();
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(row->prepare(&args, &row_state), 0);
    assert_int_equal(fake_device_of(((memcpy_peer *)row_state)->dst), 0);
    assert_int_equal(fake_current_device(), 1);
    row->release(row_state);
    assert_int_equal(fake_current_device(), 1);
}

/* A launch that is refused leaves no work behind that nobody waits for. */
static void test_streams_are_joined_after_an_error(void **state)
{
    const kernel_variant *row = find_row(&memcpy_overlap_cuda, "overlapped");
    unsigned char from[BYTES], to[BYTES] = {0};
    memcpy_overlap_args args = {.copy = {to, from, BYTES, 0}};
    cudaStream_t stream;
    void *row_state;
    (void)state;
    fake_start();
    memset(from, 7, sizeof from);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(row->prepare(&args, &row_state), 0);
    launch_code = cudaErrorInvalidConfiguration;
    assert_int_equal(row->run(&args, NULL, row_state, stream), cudaErrorInvalidConfiguration);
    launch_code = 0;
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_memory_equal(to, from, BYTES);
    row->release(row_state);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    expect_nothing_left();
}

/* ---- the suite ------------------------------------------------------------------------ */

static csv_table *measure_on(const char *device, int status, const char *mode)
{
    static char file[256];
    const char *argv[] = {"memcpy", "--shape", "bytes=1000003", "--mode", mode, "--device", device,
                          "--csv", file, QUICK};
    snprintf(file, sizeof file, "%s", support_path("memcpy.csv"));
    unlink(file);
    assert_int_equal(memcpy_main(sizeof argv / sizeof *argv, (char **)(uintptr_t)argv), status);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    expect_nothing_left();
    return support_read_csv(file);
}

static csv_table *measure(int status, const char *mode)
{
    return measure_on("0", status, mode);
}

static size_t row_of(const csv_table *table, const char *name, const char *variant)
{
    for (size_t row = 1; row < table->row_count; row++)
        if (!strcmp(support_cell(table, row, "case"), name) &&
            !strcmp(support_cell(table, row, "variant"), variant))
            return row;
    fail_msg("no row %s %s", name, variant);
    return 0;
}

static void expect_row(const csv_table *table, const char *name, const char *variant,
                       const char *status, const char *column, const char *wanted)
{
    size_t row = row_of(table, name, variant);
    assert_string_equal(support_cell(table, row, "status"), status);
    support_expect_text(support_cell(table, row, column), wanted);
}

static double median_us(const csv_table *table, const char *name, const char *variant)
{
    return atof(support_cell(table, row_of(table, name, variant), "median_us"));
}

static void expect_all_verified(const char *mode)
{
    csv_table *table = measure(0, mode);
    size_t kernel_row;
    expect_row(table, "memcpy.bidirectional", "serial", "ok", "bytes", "2000006");
    expect_row(table, "memcpy.bidirectional", "overlapped", "ok", "bytes", "2000006");
    expect_row(table, "memcpy.overlap", "copy_alone", "ok", "bytes", "1000003");
    kernel_row = row_of(table, "memcpy.overlap", "kernel_alone");
    assert_string_equal(support_cell(table, kernel_row, "status"), "ok");
    assert_string_equal(support_cell(table, kernel_row, "gb_per_s"), "");
    expect_row(table, "memcpy.overlap", "serial", "ok", "bytes", "1000003");
    expect_row(table, "memcpy.overlap", "overlapped", "ok", "bytes", "1000003");
    expect_row(table, "memcpy.peer", "peer", "ok", "bytes", "1000003");
    expect_row(table, "memcpy.peer", "peer_kernel", "ok", "bytes", "1000003");
    expect_row(table, "memcpy.peer", "staged", "ok", "bytes", "1000003");
    assert_int_equal(accesses_at_copy, 2);
    /* The copy, the longer of the two here, is on the second stream: it is timed. */
    assert_true(median_us(table, "memcpy.overlap", "overlapped") >=
                median_us(table, "memcpy.overlap", "copy_alone"));
    support_free_csv(table);
}

static void test_every_row_verifies(void **state)
{
    (void)state;
    fake_start();
    expect_all_verified("cold");
    expect_all_verified("hot");
}

static void test_one_device(void **state)
{
    csv_table *table;
    (void)state;
    fake_start();
    fake_cuda.one_device = 1;
    table = measure(0, "cold");
    expect_row(table, "memcpy.peer", "peer", "unsupported", "flags", "needs_two_GPUs");
    expect_row(table, "memcpy.peer", "peer_kernel", "unsupported", "flags", "needs_two_GPUs");
    expect_row(table, "memcpy.peer", "staged", "unsupported", "flags", "needs_two_GPUs");
    expect_row(table, "memcpy.overlap", "overlapped", "ok", "bytes", "1000003");
    support_free_csv(table);
}

static void test_devices_without_access(void **state)
{
    csv_table *table;
    (void)state;
    fake_start();
    fake_cuda.no_peer_access = 1;
    table = measure(0, "cold");
    expect_row(table, "memcpy.peer", "peer", "unsupported", "flags", "no_peer_access");
    expect_row(table, "memcpy.peer", "staged", "ok", "bytes", "1000003");
    support_free_csv(table);
}

/* Which pair a row of three devices is, or -1: from * 10 + to. */
static int pair_of(const csv_table *table, size_t row)
{
    int from = -1, to = -1;
    if (strcmp(support_cell(table, row, "case"), "memcpy.peer") ||
        strcmp(support_cell(table, row, "status"), "ok"))
        return -1;
    assert_int_equal(sscanf(support_cell(table, row, "counters"), "from=%d to=%d", &from, &to), 2);
    assert_int_equal(support_cell(table, row, "pci")[6] - '1', from);
    return from * 10 + to;
}

/* Each of three devices to each other one, three variants of each; but no access between
 * the first and the last, where the copy goes through the host only. */
static void test_all_pairs_make_a_matrix(void **state)
{
    int variants[30] = {0};
    csv_table *table;
    (void)state;
    fake_start();
    fake_cuda.three_devices = fake_cuda.no_access_of_ends = 1;
    for (int device = 0; device < 3; device++) {
        const char name[] = {(char)('0' + device), '\0'};
        table = measure_on(name, 0, "cold");
        for (size_t row = 1; row < table->row_count; row++)
            if (pair_of(table, row) >= 0)
                variants[pair_of(table, row)]++;
        support_free_csv(table);
    }
    for (int from = 0; from < 3; from++)
        for (int to = 0; to < 3; to++)
            assert_int_equal(variants[from * 10 + to], from == to ? 0 : from + to == 2 ? 1 : 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_prepare_takes_is_given_back),
        cmocka_unit_test(test_peer_access_stays_until_the_last_row),
        cmocka_unit_test(test_reasons_for_no_peer),
        cmocka_unit_test(test_the_next_device_may_be_the_first),
        cmocka_unit_test(test_streams_are_joined_after_an_error),
        cmocka_unit_test(test_every_row_verifies),
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_devices_without_access),
        cmocka_unit_test(test_all_pairs_make_a_matrix),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("memcpy on CUDA", tests, NULL, NULL));
}
