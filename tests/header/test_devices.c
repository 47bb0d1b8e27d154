/* --device with several GPUs, on the substitute runtime, which shows two of them. */
#define _GNU_SOURCE
#include "support.h"

#define QUICK "--max-time", "0.02", "--min-samples", "3", "--warmup", "1"
#define FIRST "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
#define SECOND "GPU-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf"

/* One line per row: the case, its status, run and uuid. */
static void expect_rows(const char *path, const char *wanted)
{
    csv_table *table = support_read_csv(path);
    char rows[4096] = "";
    size_t row;
    for (row = 1; row < table->row_count; row++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%s %s %s %s\n",
                 support_cell(table, row, "case"), support_cell(table, row, "status"),
                 support_cell(table, row, "run"), support_cell(table, row, "uuid"));
    assert_string_equal(rows, wanted);
    support_free_csv(table);
    unlink(path);
}

static void expect_measured(const char *devices, const char *runs, const char *wanted)
{
    const char *csv = support_path("rows.csv");
    outcome result = RUN("cuda", "--device", devices, "--runs", runs, "--csv", csv, QUICK);
    support_expect_status(&result, 0);
    assert_string_equal(result.err, "");
    support_free_outcome(&result);
    expect_rows(csv, wanted);
}

static void each_has_a_row(void **state)
{
    (void)state;
    expect_measured("0,1", "1", "healthy-1 ok 1 " FIRST "\nhealthy-1 ok 2 " SECOND "\n");
    expect_measured("1,0", "1", "healthy-1 ok 1 " SECOND "\nhealthy-1 ok 2 " FIRST "\n");
    expect_measured("all", "1", "healthy-1 ok 1 " FIRST "\nhealthy-1 ok 2 " SECOND "\n");
    expect_measured("GPU-a0a1,0", "1", "healthy-1 ok 1 " SECOND "\nhealthy-1 ok 2 " FIRST "\n");
}

static void runs_take_turns(void **state)
{
    (void)state;
    expect_measured("all", "2", "healthy-1 ok 1 " FIRST "\nhealthy-1 ok 2 " SECOND "\n"
                                "healthy-1 ok 3 " FIRST "\nhealthy-1 ok 4 " SECOND "\n");
}

static void one_device_is_one_process(void **state)
{
    (void)state;
    expect_measured("1", "1", "healthy-1 ok 1 " SECOND "\n");
}

static void the_table_has_a_line_for_each(void **state)
{
    outcome result = RUN("cuda", "--device", "all", QUICK);
    (void)state;
    support_expect_status(&result, 0);
    support_expect_text(result.out, "\n0000:01:00.0  healthy-1 ");
    support_expect_text(result.out, "\n0000:02:00.0  healthy-1 ");
    support_free_outcome(&result);
}

/* What a case that destroys the context leaves is measured on the same device. */
static void a_lost_context_costs_a_row_on_each(void **state)
{
    const char *csv = support_path("rows.csv");
    outcome result = RUN("cuda", "--device", "0,1", "--set", "crash", "--filter", "faulty|-3",
                         "--csv", csv, QUICK);
    csv_table *table;
    size_t row, counts[2][2] = {{0, 0}, {0, 0}};
    (void)state;
    support_expect_status(&result, 1);
    support_free_outcome(&result);
    table = support_read_csv(csv);
    assert_int_equal(table->row_count, 1 + 4);
    for (row = 1; row < 5; row++)
        counts[!strcmp(support_cell(table, row, "uuid"), SECOND)]
              [!strcmp(support_cell(table, row, "status"), "ok")]++;
    for (row = 0; row < 2; row++)
        assert_true(counts[row][0] == 1 && counts[row][1] == 1);
    support_free_csv(table);
    unlink(csv);
}

/* Before anything is measured. */
static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *devices, *message;
    } bad[] = {{"0,7", "--device 7: no such GPU; 2 visible"},
               {"0,GPU-ff", "--device GPU-ff: no such GPU; 2 visible"},
               {"0,0", "--device: 0 is given twice"},
               {"1,GPU-a0a1", "--device: GPU-a0a1 is given twice"},
               {"0,", "--device '0,': wants GPUs' numbers or UUIDs between the commas"},
               {",0", "--device ',0': wants GPUs' numbers or UUIDs between the commas"},
               {"cpu,0", "--device 'cpu,0': wants GPUs' numbers or UUIDs between the commas"},
               {"0,all", "--device '0,all': wants GPUs' numbers or UUIDs between the commas"},
               {"ALL", "--device 'ALL': wants auto, cpu, all, or numbers or UUIDs of GPUs"}};
    const char *csv = support_path("refused.csv");
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        outcome result = RUN("cuda", "--device", bad[i].devices, "--csv", csv, QUICK);
        support_expect_status(&result, 2);
        support_expect_text(result.err, bad[i].message);
        assert_string_equal(result.out, "");
        assert_false(support_exists(csv));
        support_free_outcome(&result);
    }
}

static void a_profile_is_of_one(void **state)
{
    outcome result = RUN("cuda", "--device", "0,1", "--profile");
    (void)state;
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--device '0,1': --profile looks at one GPU");
    support_free_outcome(&result);
}

static void without_a_gpu_all_says_so(void **state)
{
    outcome result = RUN("cuda", "--device", "all", "--driver", "none", QUICK);
    (void)state;
    support_expect_status(&result, 2);
    support_expect_text(result.err, "no usable GPU");
    support_free_outcome(&result);
}

static void a_program_without_cuda_says_so(void **state)
{
    static const char *const devices[] = {"all", "0,1"};
    size_t i;
    (void)state;
    for (i = 0; i < 2; i++) {
        outcome result = RUN("host", "--device", devices[i], QUICK);
        support_expect_status(&result, 2);
        support_expect_text(result.err, "this program was built without CUDA");
        support_free_outcome(&result);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_row),
        cmocka_unit_test(runs_take_turns),
        cmocka_unit_test(one_device_is_one_process),
        cmocka_unit_test(the_table_has_a_line_for_each),
        cmocka_unit_test(a_lost_context_costs_a_row_on_each),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_profile_is_of_one),
        cmocka_unit_test(without_a_gpu_all_says_so),
        cmocka_unit_test(a_program_without_cuda_says_so),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("devices", tests, NULL, NULL));
}
