/* The writer of the CSV, read back by the independent parser in support.h. */
#define _GNU_SOURCE
#include "support.h"

#include <locale.h>
#include <sys/sysmacros.h>

/* Short runs, by their number: these tests look at the file, not at the times. */
#define QUICK "--max-time", "60", "--min-samples", "3", "--max-samples", "3", "--warmup", "1"

/* Schema 2. */
static const char *const schema[] = {
    "schema", "suite", "case", "variant", "backend", "dtype", "params", "mode", "campaign", "run",
    "order", "status", "flags", "samples", "batch", "warmup", "min_us", "p5_us", "p25_us",
    "median_us", "p75_us", "p95_us", "p99_us", "max_us", "mean_us", "stddev_us", "ci95_low_us",
    "ci95_high_us", "overhead_us", "events_us", "host_us",
    "bytes", "flops", "gb_per_s", "tflop_per_s", "max_error",
    "tolerance", "device_bytes", "sm_mhz", "mem_mhz", "temperature_c", "power_w", "energy_mj",
    "device", "uuid", "pci", "compute_capability", "sm_count", "l2_bytes", "memory_bytes",
    "power_limit_w", "driver", "cuda_runtime", "cpu", "gpubench_version", "compiler", "git",
    "seed", "settings", "timestamp", "counters", "runs_on"};
enum { SCHEMA_COLUMNS = sizeof schema / sizeof schema[0] };

static csv_table *measure(const char *set, const char *option, const char *value, int status)
{
    const char *csv = support_path("out.csv");
    outcome result = RUN("host", "--set", set, "--csv", csv, QUICK, option, value);
    csv_table *table;
    support_expect_status(&result, status);
    support_free_outcome(&result);
    table = support_read_csv(csv);
    unlink(csv);
    return table;
}

static void header_is_schema_2(void **state)
{
    csv_table *table = measure("healthy", NULL, NULL, 0);
    size_t i;
    (void)state;
    assert_int_equal(table->lengths[0], SCHEMA_COLUMNS);
    for (i = 0; i < SCHEMA_COLUMNS; i++)
        assert_string_equal(table->fields[0][i], schema[i]);
    assert_int_equal(table->row_count, 2);
    support_free_csv(table);
}

static void rows_are_as_long_as_the_header(void **state)
{
    csv_table *table = measure("names", NULL, NULL, 1);
    size_t row;
    (void)state;
    assert_int_equal(table->row_count, 1 + 9);
    for (row = 0; row < table->row_count; row++)
        assert_int_equal(table->lengths[row], SCHEMA_COLUMNS);
    support_free_csv(table);
}

static void odd_names_come_back(void **state)
{
    static const char *const names[] = {
        "copy<float,4>", "say \"hi\"", " lead and trail ", "two\nlines", "carriage\rreturn",
        "=1+1", "\"", "Größe", "fails, \"oddly\""};
    csv_table *table = measure("names", NULL, NULL, 1);
    size_t i;
    (void)state;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (support_find_case(table, names[i]) == 0)
            fail_msg("'%s' did not come back", names[i]);
    i = support_find_case(table, " lead and trail ");
    assert_string_equal(support_cell(table, i, "variant"), " v ");
    i = support_find_case(table, "\"");
    assert_string_equal(support_cell(table, i, "variant"), ",");
    assert_string_equal(support_cell(table, i, "params"), "\n");
    support_free_csv(table);
}

/* The very bytes, so that parser and writer cannot share a mistake. */
static void odd_names_are_quoted_by_the_book(void **state)
{
    const char *csv = support_path("quoted.csv");
    outcome result = RUN("host", "--set", "names", "--csv", csv, QUICK);
    char *text = support_read(csv);
    (void)state;
    support_expect_status(&result, 1);
    support_expect_text(text, "2,fixture,\"copy<float,4>\",,cpu,u8,,cold,");
    support_expect_text(text, "2,fixture,\"say \"\"hi\"\"\",,cpu,u8,,cold,");
    support_expect_text(text, "2,fixture, lead and trail , v ,cpu,u8,,cold,");
    support_expect_text(text, "2,fixture,\"two\nlines\",,cpu,u8,a=1 b=2,cold,");
    support_expect_text(text, "2,fixture,=1+1,,cpu,u8,,cold,");
    support_expect_text(text, "2,fixture,\"\"\"\",\",\",cpu,u8,\"\n\",cold,");
    support_expect_text(text, "2,fixture,\"fails, \"\"oddly\"\"\",,cpu,u8,,cold,");
    support_expect_no_text(text, "\r\n");
    support_expect_no_text(text, "nan");
    support_expect_no_text(text, "inf");
    free(text);
    support_free_outcome(&result);
}

static double number(const csv_table *table, size_t row, const char *column)
{
    const char *text = support_cell(table, row, column);
    char *end;
    double value = strtod(text, &end);
    if (!*text || *end)
        fail_msg("%s is '%s'", column, text);
    return value;
}

/* Ascending by construction: minimum, quantiles, maximum. */
static void expect_ordered(const csv_table *table, size_t row, double samples)
{
    static const char *const ascending[] = {"min_us", "p5_us", "p25_us", "median_us", "p75_us",
                                            "p95_us", "p99_us", "max_us"};
    size_t i;
    for (i = 1; i < sizeof ascending / sizeof ascending[0]; i++)
        assert_true(number(table, row, ascending[i - 1]) <= number(table, row, ascending[i]));
    assert_true(number(table, row, "ci95_low_us") <= number(table, row, "median_us"));
    assert_true(number(table, row, "ci95_high_us") >= number(table, row, "median_us"));
    assert_true(number(table, row, "min_us") > 0);
    assert_true(number(table, row, "samples") == samples);
}

static void cells_are_empty_where_they_do_not_apply(void **state)
{
    static const char *const never_on_a_cpu[] = {"uuid", "compute_capability", "sm_count", "driver",
                                                 "cuda_runtime", "power_limit_w", "energy_mj",
                                                 "sm_mhz", "mem_mhz", "temperature_c", "power_w"};
    csv_table *table = measure("names", NULL, NULL, 1);
    size_t by_bytes = support_find_case(table, "copy<float,4>");
    size_t by_flops = support_find_case(table, "say \"hi\"");
    size_t i;
    (void)state;
    assert_string_equal(support_cell(table, by_bytes, "bytes"), "4096");
    assert_string_equal(support_cell(table, by_bytes, "flops"), "");
    assert_string_equal(support_cell(table, by_bytes, "tflop_per_s"), "");
    assert_string_equal(support_cell(table, by_flops, "bytes"), "");
    assert_string_equal(support_cell(table, by_flops, "gb_per_s"), "");
    assert_string_equal(support_cell(table, by_flops, "flops"), "1000");
    for (i = 0; i < sizeof never_on_a_cpu / sizeof never_on_a_cpu[0]; i++)
        assert_string_equal(support_cell(table, by_bytes, never_on_a_cpu[i]), "");
    expect_ordered(table, by_bytes, 3);
    expect_ordered(table, by_flops, 3);
    support_free_csv(table);
}

static void relative_error(double value, double wanted)
{
    double error = value / wanted - 1;
    if (!(error < 1e-12 && error > -1e-12))
        fail_msg("%.17g instead of %.17g", value, wanted);
}

/* 1e9 bytes and 1e12 operations per second, from the median. */
static void rates_follow_from_the_median(void **state)
{
    csv_table *table = measure("names", NULL, NULL, 1);
    size_t row = support_find_case(table, "=1+1");
    double seconds = number(table, row, "median_us") * 1e-6;
    (void)state;
    relative_error(number(table, row, "gb_per_s"), 4096 / seconds / 1e9);
    relative_error(number(table, row, "tflop_per_s"), 1000 / seconds / 1e12);
    support_free_csv(table);
}

static void identity_and_machine_are_filled(void **state)
{
    csv_table *table = measure("healthy", "--campaign", "monday, early", 0);
    (void)state;
    assert_string_equal(support_cell(table, 1, "schema"), "2");
    assert_string_equal(support_cell(table, 1, "suite"), "fixture");
    assert_string_equal(support_cell(table, 1, "case"), "fast");
    assert_string_equal(support_cell(table, 1, "variant"), "");
    assert_string_equal(support_cell(table, 1, "backend"), "cpu");
    assert_string_equal(support_cell(table, 1, "dtype"), "u8");
    assert_string_equal(support_cell(table, 1, "mode"), "cold");
    assert_string_equal(support_cell(table, 1, "campaign"), "monday, early");
    assert_string_equal(support_cell(table, 1, "run"), "1");
    assert_string_equal(support_cell(table, 1, "order"), "1");
    assert_string_equal(support_cell(table, 1, "status"), "ok");
    assert_string_equal(support_cell(table, 1, "seed"), "1");
    assert_string_equal(support_cell(table, 1, "max_error"), "0");
    assert_string_equal(support_cell(table, 1, "tolerance"), "0.25");
    assert_string_equal(support_cell(table, 1, "device_bytes"), "4096");
    assert_string_equal(support_cell(table, 1, "device"), support_cell(table, 1, "cpu"));
    assert_true(*support_cell(table, 1, "device") && *support_cell(table, 1, "compiler"));
    assert_int_equal(strlen(support_cell(table, 1, "timestamp")), strlen("2024-06-01T00:00:00Z"));
    support_free_csv(table);
}

/* People commit these files. */
static void no_host_or_user_name_goes_out(void **state)
{
    char host[256] = "";
    csv_table *table = measure("healthy", NULL, NULL, 0);
    size_t i;
    (void)state;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    for (i = 0; i < table->lengths[1] && strlen(host) > 3; i++)
        support_expect_no_text(table->fields[1][i], host);
    support_free_csv(table);
}

static void failed_cases_have_no_numbers(void **state)
{
    csv_table *table = measure("failures", NULL, NULL, 1);
    size_t row, failed = 0;
    (void)state;
    for (row = 1; row < table->row_count; row++)
        if (strcmp(support_cell(table, row, "status"), "ok") != 0) {
            support_expect_no_numbers(table, row);
            assert_true(*support_cell(table, row, "device") && *support_cell(table, row, "order"));
            failed++;
        }
    assert_int_equal(failed, 11);
    assert_int_equal(table->row_count, 1 + 22);
    support_free_csv(table);
}

static void one_sample_has_no_spread(void **state)
{
    static const char *const same[] = {"min_us", "p5_us", "p25_us", "p75_us",
                                       "p95_us", "p99_us", "max_us", "mean_us"};
    const char *csv = support_path("one.csv");
    outcome result = RUN("host", "--csv", csv, "--max-samples", "1");
    csv_table *table = support_read_csv(csv);
    size_t i;
    (void)state;
    support_expect_status(&result, 0);
    assert_string_equal(support_cell(table, 1, "samples"), "1");
    assert_string_equal(support_cell(table, 1, "stddev_us"), "0");
    for (i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_string_equal(support_cell(table, 1, same[i]), support_cell(table, 1, "median_us"));
    expect_ordered(table, 1, 1);
    support_expect_text(support_cell(table, 1, "flags"), "imprecise");
    support_free_csv(table);
    support_free_outcome(&result);
}

/* ---- a locale whose decimal point is a comma ---- */

static void numbers_have_a_point_in_german(void **state)
{
    char command[256];
    csv_table *table;
    (void)state;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s' 2>'%s'",
             support_path("de_DE.UTF-8"), support_path("localedef.txt"));
    if (system(command) != 0) {
        print_message("# skipped: localedef made no de_DE.UTF-8\n");
        skip();
    }
    setenv("LOCPATH", support_folder, 1);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    assert_non_null(setlocale(LC_ALL, ""));
    assert_string_equal(localeconv()->decimal_point, ",");
    setlocale(LC_ALL, "C");
    table = measure("healthy", "--runs=2", NULL, 0); /* the fixture calls setlocale(LC_ALL, "") */
    unsetenv("LOCPATH");
    unsetenv("LC_ALL");
    expect_ordered(table, 1, 3);
    expect_ordered(table, 2, 3);
    assert_string_equal(support_cell(table, 1, "tolerance"), "0.25");
    support_free_csv(table);
}

/* ---- several processes ---- */

/* The cases of a run in the order of their rows. */
static void order_of_run(const csv_table *table, const char *run, char *order, size_t capacity)
{
    size_t row, length = 0;
    order[0] = '\0';
    for (row = 1; row < table->row_count; row++)
        if (!strcmp(support_cell(table, row, "run"), run)) {
            char wanted[24];
            length += (size_t)snprintf(order + length, capacity - length, "%s ",
                                       support_cell(table, row, "case"));
            snprintf(wanted, sizeof wanted, "%zu", length / 2); /* names of one letter */
            assert_string_equal(support_cell(table, row, "order"), wanted);
        }
    assert_int_equal(length, strlen("a b c d e f "));
}

static void runs_are_one_campaign_in_other_orders(void **state)
{
    csv_table *table = measure("several", "--runs", "3", 0);
    char first[64], second[64], third[64];
    size_t row;
    (void)state;
    assert_int_equal(table->row_count, 1 + 3 * 6);
    for (row = 1; row < table->row_count; row++) {
        char run[] = {(char)('1' + (row - 1) / 6), '\0'};
        assert_string_equal(support_cell(table, row, "run"), run);
        assert_string_equal(support_cell(table, row, "campaign"),
                            support_cell(table, 1, "campaign"));
        assert_string_equal(support_cell(table, row, "seed"), "1");
        support_expect_measured(table, support_cell(table, row, "case"));
    }
    order_of_run(table, "1", first, sizeof first);
    order_of_run(table, "2", second, sizeof second);
    order_of_run(table, "3", third, sizeof third);
    assert_true(strcmp(first, second) != 0 || strcmp(first, third) != 0);
    assert_true(*support_cell(table, 1, "campaign"));
    support_free_csv(table);
}

static void the_seed_decides_the_order(void **state)
{
    csv_table *once = measure("several", "--seed", "7", 0);
    csv_table *again = measure("several", "--seed", "7", 0);
    csv_table *other = measure("several", "--seed", "18446744073709551615", 0);
    char orders[3][64];
    (void)state;
    order_of_run(once, "1", orders[0], sizeof orders[0]);
    order_of_run(again, "1", orders[1], sizeof orders[1]);
    order_of_run(other, "1", orders[2], sizeof orders[2]);
    assert_string_equal(orders[0], orders[1]);
    assert_string_not_equal(orders[0], orders[2]);
    assert_string_equal(support_cell(other, 1, "seed"), "18446744073709551615");
    support_free_csv(once);
    support_free_csv(again);
    support_free_csv(other);
}

/* Rows go from process to process through a file; nothing of it may change or stay. */
static void odd_names_survive_several_processes(void **state)
{
    csv_table *table;
    char folder[128], command[256];
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_path("rows"));
    assert_int_equal(mkdir(folder, 0700), 0);
    setenv("TMPDIR", folder, 1);
    table = measure("names", "--runs", "2", 1);
    unsetenv("TMPDIR");
    assert_int_equal(table->row_count, 1 + 2 * 9);
    assert_int_not_equal(support_find_case(table, "two\nlines"), 0);
    assert_int_not_equal(support_find_case(table, "\""), 0);
    support_free_csv(table);
    snprintf(command, sizeof command, "rmdir '%s'", folder); /* empty again */
    assert_int_equal(system(command), 0);
}

static void a_failure_in_any_process_counts(void **state)
{
    csv_table *table = measure("failures", "--runs", "2", 1);
    (void)state;
    assert_int_equal(table->row_count, 1 + 2 * 22);
    support_free_csv(table);
}

/* Not measured on purpose is no failure, in one process or in several. */
static void skipped_is_no_failure_in_any_process(void **state)
{
    (void)state;
    support_free_csv(measure("skipped", NULL, NULL, 0));
    support_free_csv(measure("unsupported", NULL, NULL, 0));
    support_free_csv(measure("unsupported", "--runs", "2", 0));
    support_free_csv(measure("skipped", "--runs", "2", 0));
}

/* Each run loses its guilty case, here its only one, and the file tells. */
static void a_crashed_process_is_told(void **state)
{
    const char *csv = support_path("crashed.csv");
    outcome result = RUN("host", "--set", "crash", "--runs", "2", "--csv", csv, QUICK);
    csv_table *table;
    (void)state;
    support_expect_status(&result, 1);
    support_expect_text(result.err, "signal 6 (Aborted)");
    table = support_read_csv(csv);
    assert_int_equal(table->row_count, 1 + 2);
    support_expect_failed(table, "crash", "failed", "reason=run:_ended_by_signal_6_(Aborted)");
    support_free_csv(table);
    support_free_outcome(&result);
}

/* ---- where the file goes ---- */

static void expect_untouched(const char *const *arguments, const char *csv)
{
    struct stat before, after;
    outcome result;
    char *text;
    support_write(csv, "precious\n");
    assert_int_equal(stat(csv, &before), 0);
    result = support_run(arguments);
    support_expect_status(&result, 2);
    support_free_outcome(&result);
    assert_int_equal(stat(csv, &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_mtime == after.st_mtime);
    text = support_read(csv);
    assert_string_equal(text, "precious\n");
    free(text);
    unlink(csv);
    result = support_run(arguments);
    support_expect_status(&result, 2);
    support_free_outcome(&result);
    assert_false(support_exists(csv));
}

#define EXPECT_UNTOUCHED(csv, ...) \
    expect_untouched((const char *const[]){"host", "--csv", csv, __VA_ARGS__, NULL}, csv)

static void a_refused_run_leaves_the_file_alone(void **state)
{
    const char *csv = support_path("kept.csv");
    (void)state;
    EXPECT_UNTOUCHED(csv, "--warmup", "abc");
    EXPECT_UNTOUCHED(csv, "--no-such-option");
    EXPECT_UNTOUCHED(csv, "--filter", "no case is called so");
    EXPECT_UNTOUCHED(csv, "--filter", "no case is called so", "--runs", "2");
    EXPECT_UNTOUCHED(csv, "--filter", "(");
    EXPECT_UNTOUCHED(csv, "--scale", "abc");
    EXPECT_UNTOUCHED(csv, "--set", "none");
    EXPECT_UNTOUCHED(csv, "--set", "twice");
    EXPECT_UNTOUCHED(csv, "--set", "nameless");
    EXPECT_UNTOUCHED(csv, "--profile");
}

static void an_old_file_is_replaced_whole(void **state)
{
    const char *csv = support_path("out.csv");
    csv_table *table;
    (void)state;
    support_write(csv, "schema,case\n1,old\n\n\n\n\n\n\n\n");
    table = measure("healthy", NULL, NULL, 0);
    assert_int_equal(table->row_count, 2);
    assert_int_equal(table->lengths[0], SCHEMA_COLUMNS);
    support_free_csv(table);
}

static void expect_path_refused(const char *path)
{
    outcome result = RUN("host", "--csv", path, QUICK);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv");
    support_expect_text(result.err, path);
    support_expect_no_text(result.err, "setup"); /* found out before measuring */
    support_free_outcome(&result);
}

static void a_path_that_cannot_be_written_is_refused(void **state)
{
    (void)state;
    expect_path_refused(support_folder);
    expect_path_refused("/no/such/folder/out.csv");
    expect_path_refused(support_path("nothing-there/"));
    expect_path_refused("");
    support_write(support_path("file"), "");
    expect_path_refused(support_path("file/out.csv"));
    expect_path_refused("/proc/out.csv");
}

static void no_temporary_file_stays(void **state)
{
    char command[256];
    outcome result;
    (void)state;
    assert_int_equal(mkdir(support_path("clean"), 0700), 0);
    result = RUN("host", "--csv", support_path("clean/out.csv"), QUICK);
    support_expect_status(&result, 0);
    support_free_outcome(&result);
    snprintf(command, sizeof command, "test \"$(ls -A '%s')\" = out.csv", support_path("clean"));
    assert_int_equal(system(command), 0);
}

static void minus_is_standard_output(void **state)
{
    outcome result = RUN("host", "--csv", "-", QUICK);
    csv_table *table;
    (void)state;
    support_expect_status(&result, 0);
    support_expect_text(result.err, " median "); /* the table must not stand between the rows */
    table = support_parse_csv(result.out);
    result.out = NULL;
    assert_int_equal(table->row_count, 2);
    assert_int_equal(table->lengths[1], SCHEMA_COLUMNS);
    assert_false(support_exists("-"));
    support_free_csv(table);
    support_free_outcome(&result);
}

static void minus_works_with_several_processes(void **state)
{
    outcome result = RUN("host", "--csv=-", "--runs=2", "--quiet", QUICK);
    csv_table *table;
    (void)state;
    support_expect_status(&result, 0);
    table = support_parse_csv(result.out);
    result.out = NULL;
    assert_int_equal(table->row_count, 3);
    support_free_csv(table);
    support_free_outcome(&result);
}

static void a_full_disk_is_told(void **state)
{
    const char *const arguments[] = {"host", "--csv", "-", QUICK, NULL};
    outcome result = support_run_into(arguments, "/dev/full");
    (void)state;
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv");
    support_expect_text(result.err, "No space left on device");
    support_free_outcome(&result);
}

/* /dev/stdout is a link: replacing it would break the machine. */
static void a_link_stays_a_link(void **state)
{
    const char *target = support_path("target.csv"), *link = support_path("link.csv");
    struct stat about;
    outcome result;
    csv_table *table;
    (void)state;
    support_write(target, "old\n");
    assert_int_equal(symlink(target, link), 0);
    result = RUN("host", "--csv", link, QUICK);
    support_expect_status(&result, 0);
    support_free_outcome(&result);
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    table = support_read_csv(target);
    assert_int_equal(table->row_count, 2);
    support_free_csv(table);
}

/* As with /dev/null: written to, or refused, but never replaced. A private
 * copy of it, so that a mistake costs nothing. */
static void a_device_is_never_replaced(void **state)
{
    const char *device = support_path("null");
    struct stat about;
    outcome result;
    (void)state;
    if (mknod(device, S_IFCHR | 0600, makedev(1, 3)) != 0) {
        print_message("# skipped: no right to make a device file\n");
        skip();
    }
    result = RUN("host", "--csv", device, QUICK);
    assert_true(result.status == 0 || result.status == 2);
    support_free_outcome(&result);
    assert_int_equal(stat(device, &about), 0);
    assert_true(S_ISCHR(about.st_mode));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_schema_2),
        cmocka_unit_test(rows_are_as_long_as_the_header),
        cmocka_unit_test(odd_names_come_back),
        cmocka_unit_test(odd_names_are_quoted_by_the_book),
        cmocka_unit_test(cells_are_empty_where_they_do_not_apply),
        cmocka_unit_test(rates_follow_from_the_median),
        cmocka_unit_test(identity_and_machine_are_filled),
        cmocka_unit_test(no_host_or_user_name_goes_out),
        cmocka_unit_test(failed_cases_have_no_numbers),
        cmocka_unit_test(one_sample_has_no_spread),
        cmocka_unit_test(numbers_have_a_point_in_german),
        cmocka_unit_test(runs_are_one_campaign_in_other_orders),
        cmocka_unit_test(the_seed_decides_the_order),
        cmocka_unit_test(odd_names_survive_several_processes),
        cmocka_unit_test(a_failure_in_any_process_counts),
        cmocka_unit_test(skipped_is_no_failure_in_any_process),
        cmocka_unit_test(a_crashed_process_is_told),
        cmocka_unit_test(a_refused_run_leaves_the_file_alone),
        cmocka_unit_test(an_old_file_is_replaced_whole),
        cmocka_unit_test(a_path_that_cannot_be_written_is_refused),
        cmocka_unit_test(no_temporary_file_stays),
        cmocka_unit_test(minus_is_standard_output),
        cmocka_unit_test(minus_works_with_several_processes),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_link_stays_a_link),
        cmocka_unit_test(a_device_is_never_replaced),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("csv", tests, NULL, NULL));
}
