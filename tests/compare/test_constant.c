/* The host's constant: on hand-made rows, and on a committed baseline to whose
 * times 1.7 us are added, as another kind of host would. */
#include "../../compare/csv.h"
#include "../../compare/number.h"

#include "cmocka_all.h"
#include "schema_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *data_path = "baselines/nvidia-h100-80gb-hbm3/attention.csv";

enum { planted_step = 17 };

static const struct case_result *only_result(const struct compared *compared)
{
    if (!compared->loaded)
        fail_msg("%s", compared->error);
    assert_int_equal(compared->comparison.count, 1);
    return &compared->comparison.results[0];
}

/* One case on two hosts, ten runs against three. */
static void compare_hosts(struct compared *compared, struct text_row row, double baseline_us, const char *baseline_host,
                          double current_us, const char *current_host, const char *metric)
{
    struct text baseline = {0};
    struct text current = {0};
    struct settings settings = usual_settings();
    settings.metric = find_metric(metric);
    add_header(&baseline);
    add_header(&current);
    row.overhead_us = baseline_host;
    row.gb_per_s = row.gb_per_s ? "100" : NULL;
    add_runs(&baseline, row, 10, baseline_us, 0.001);
    row.overhead_us = current_host;
    row.gb_per_s = row.gb_per_s ? "80" : NULL;
    row.campaign = "new";
    add_runs(&current, row, 3, current_us, 0.001);
    compare_texts(compared, settings, &baseline, &current);
    free_text(&baseline);
    free_text(&current);
}

/* 10 us and 11.7 us, of which 1.7 us are the host's. */
static void another_host_is_no_change(void **state)
{
    (void)state;
    struct compared compared;
    compare_hosts(&compared, (struct text_row){0}, 10.0, "3.2", 11.7, "4.9", "median_us");
    const struct case_result *result = only_result(&compared);
    assert_int_equal(result->judgement.verdict, VERDICT_SAME);
    assert_true(fabs(result->current_median - 10.0) < 0.02);
    assert_true(fabs(result->measured_log_ratio - log(1.17)) < 0.002);
    assert_int_equal(compared.constants.count, 1);
    assert_true(fabs(compared.constants.of_mode[0].baseline_us - 3.2) < 1e-6);
    assert_true(fabs(compared.constants.of_mode[0].current_us - 4.9) < 1e-6);
    assert_int_equal(compared.constants.of_mode[0].moved_rows, 3);
    compared_free(&compared);
}

/* 1 / (100 GB/s) is 10 us; 80 GB/s are 12.5 us, of which 2.5 us are the host's. */
static void throughputs_move_too(void **state)
{
    (void)state;
    struct compared compared;
    compare_hosts(&compared, (struct text_row){.gb_per_s = "100"}, 10.0, "3", 12.5, "5.5", "gb_per_s");
    assert_int_equal(only_result(&compared)->judgement.verdict, VERDICT_SAME);
    assert_true(fabs(only_result(&compared)->current_median - 100.0) < 0.1);
    compared_free(&compared);
}

static void assert_left_alone(struct text_row row, const char *baseline_host, const char *current_host)
{
    struct compared compared;
    compare_hosts(&compared, row, 10.0, baseline_host, 11.7, current_host, "median_us");
    assert_int_equal(only_result(&compared)->judgement.verdict, VERDICT_SLOWER);
    assert_true(fabs(only_result(&compared)->current_median - 11.7) < 0.02);
    assert_int_equal(compared.constants.count, 0);
    compared_free(&compared);
}

static void what_is_left_alone(void **state)
{
    (void)state;
    assert_left_alone((struct text_row){.backend = "cpu"}, "0.04", "1.6");
    assert_left_alone((struct text_row){.mode = "hot"}, "2.2", "2.6");
    assert_left_alone((struct text_row){0}, "", "4.9");
    assert_left_alone((struct text_row){0}, "4.9", "");
    assert_left_alone((struct text_row){0}, "4.9", "4.99");
}

/* A row of 1.5 us, of which 1.7 us would be the host's: no time is left. */
static void never_a_time_of_zero(void **state)
{
    (void)state;
    struct compared compared;
    compare_hosts(&compared, (struct text_row){0}, 10.0, "3.2", 1.5, "4.9", "median_us");
    assert_int_equal(only_result(&compared)->outcome, OUTCOME_BELOW_CONSTANT);
    assert_false(only_result(&compared)->problem.in_baseline);
    compared_free(&compared);
}

/* A baseline with campaigns from hosts of both kinds is moved to most of it. */
static void a_baseline_of_two_kinds_of_hosts(void **state)
{
    (void)state;
    struct text baseline = {0};
    struct text current = {0};
    struct compared compared;
    add_header(&baseline);
    add_header(&current);
    add_runs(&baseline, (struct text_row){.campaign = "four", .overhead_us = "4.9"}, 6, 11.7, 0.001);
    add_runs(&baseline, (struct text_row){.campaign = "four b", .overhead_us = "4.95"}, 5, 11.7, 0.001);
    add_runs(&baseline, (struct text_row){.campaign = "one", .overhead_us = "3.2"}, 5, 10.0, 0.001);
    add_runs(&current, (struct text_row){.campaign = "new", .overhead_us = "3.2"}, 3, 10.0, 0.001);
    compare_texts(&compared, usual_settings(), &baseline, &current);
    assert_int_equal(only_result(&compared)->judgement.verdict, VERDICT_SAME);
    assert_int_equal(compared.constants.of_mode[0].moved_rows, 8);
    assert_true(fabs(only_result(&compared)->baseline_median - 11.72) < 0.05);
    compared_free(&compared);
    free_text(&baseline);
    free_text(&current);
}

static bool is_time(const char *name)
{
    size_t size = strlen(name);
    return size > 3 && strcmp(name + size - 3, "_us") == 0 && strcmp(name, "stddev_us") != 0 &&
           strcmp(name, "events_us") != 0 && strcmp(name, "host_us") != 0;
}

static void write_field(struct text *out, const char *name, const char *field, double factor, double added_us)
{
    double value = 0.0;
    if (*field && is_time(name)) {
        assert_true(parse_decimal(field, &value));
        bool is_case = strcmp(name, "overhead_us") != 0;
        add_text(out, "%.17g", value * (is_case ? factor : 1.0) + added_us);
    } else {
        add_text(out, "\"%s\"", field);
    }
}

/* The baseline with so much added to every time, and every seventeenth of its
 * lines' cases slower by the factor. */
static struct text changed_baseline(double added_us, double factor)
{
    struct text out = {0};
    struct csv_reader reader;
    if (!csv_open(&reader, data_path))
        fail_msg("%s", reader.error);
    int params = csv_column(&reader, "params");
    int variant = csv_column(&reader, "variant");
    for (size_t i = 0; i < reader.column_count; i++)
        add_text(&out, "%s%s", i ? "," : "", reader.names[i]);
    add_text(&out, "\n");
    while (csv_next(&reader) == CSV_RECORD) {
        size_t sum = 0;
        for (const char *c = reader.fields[params]; *c; c++)
            sum = 31 * sum + (unsigned char)*c;
        for (const char *c = reader.fields[variant]; *c; c++)
            sum = 31 * sum + (unsigned char)*c;
        for (size_t i = 0; i < reader.column_count; i++) {
            add_text(&out, "%s", i ? "," : "");
            write_field(&out, reader.names[i], reader.fields[i], sum % planted_step ? 1.0 : factor, added_us);
        }
        add_text(&out, "\n");
    }
    csv_close(&reader);
    return out;
}

struct verdicts {
    size_t slower, faster;
};

static struct verdicts verdicts_of(const struct text *baseline, const struct text *current)
{
    struct compared compared;
    compare_texts(&compared, usual_settings(), baseline, current);
    if (!compared.loaded)
        fail_msg("%s", compared.error);
    struct verdicts verdicts = {count_verdicts(&compared.comparison, VERDICT_SLOWER),
                                count_verdicts(&compared.comparison, VERDICT_FASTER)};
    compared_free(&compared);
    return verdicts;
}

static void assert_same_verdicts(struct verdicts left, struct verdicts right)
{
    assert_int_equal(left.slower, right.slower);
    assert_int_equal(left.faster, right.faster);
}

static void a_committed_baseline_on_another_host(void **state)
{
    (void)state;
    struct text here = changed_baseline(0.0, 1.0);
    struct text there = changed_baseline(1.7, 1.0);
    struct text slower = changed_baseline(0.0, 1.05);
    struct text slower_there = changed_baseline(1.7, 1.05);
    assert_same_verdicts(verdicts_of(&here, &there), (struct verdicts){0, 0});
    assert_same_verdicts(verdicts_of(&there, &here), (struct verdicts){0, 0});
    struct verdicts planted = verdicts_of(&here, &slower);
    assert_true(planted.slower >= 5 && planted.faster == 0);
    assert_same_verdicts(verdicts_of(&here, &slower_there), planted);
    assert_same_verdicts(verdicts_of(&slower_there, &here), verdicts_of(&slower, &here));
    free_text(&here);
    free_text(&there);
    free_text(&slower);
    free_text(&slower_there);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        data_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_host_is_no_change),
        cmocka_unit_test(throughputs_move_too),
        cmocka_unit_test(what_is_left_alone),
        cmocka_unit_test(never_a_time_of_zero),
        cmocka_unit_test(a_baseline_of_two_kinds_of_hosts),
        cmocka_unit_test(a_committed_baseline_on_another_host),
    };
    return cmocka_run_group_tests_name("compare: the host's constant", tests, NULL, NULL);
}
