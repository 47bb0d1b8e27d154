/* Runs of the same code split against each other: which splits there are, and which count. */
#define _XOPEN_SOURCE 700

#include "../../compare/self.h"

#include "one_side.h"

#include <stdio.h>
#include <string.h>

/* So many runs of a case, in one campaign. */
static void add_case(struct one_side *side, const char *name, const char *campaign, unsigned runs,
                     double median_us)
{
    add_runs(&side->text, (struct text_row){.name = name, .campaign = campaign}, runs, median_us,
             0.001);
}

static struct self_result self_of(struct one_side *side)
{
    struct self_result result;
    load_side(side);
    assert_true(self_compare(&result, &side->settings, &side->catalogue, &side->results));
    return result;
}

/* n over n/2 of them while that is at most 4000: 14 over 7 is 3432, 15 over 7 is 6435. */
static void every_split_or_four_thousand(void **state)
{
    (void)state;
    static const struct {
        unsigned runs;
        size_t splits;
        bool every;
    } cases[] = {{4, 6, true},  {5, 10, true},    {7, 35, true},
                 {8, 70, true}, {14, 3432, true}, {15, 4000, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct one_side side = begin_side();
        add_case(&side, "a", "c", cases[i].runs, 100);
        struct self_result result = self_of(&side);
        assert_int_equal(result.runs, cases[i].runs);
        assert_int_equal(result.splits, cases[i].splits);
        assert_int_equal(result.every_split, cases[i].every);
        assert_int_equal(result.cases[0].splits, cases[i].splits);
        assert_int_equal(result.cases[0].runs, cases[i].runs);
        assert_int_equal(result.campaigns, 0);
        assert_null(result.refusal);
        self_free(&result);
        end_side(&side);
    }
}

/* A case of fewer runs takes part where it has one on each side. Of the 70 halves of eight runs
 * two leave its four together; of 4,000 draws of 7 among 15 those that leave four, five or six
 * together were counted by another implementation of splitmix64 and of Fisher and Yates's
 * shuffle, in Python. */
static void short_cases_take_part_where_they_can(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    add_case(&side, "long", "c", 8, 100);
    add_case(&side, "short", "c", 4, 100);
    struct self_result result = self_of(&side);
    assert_int_equal(result.cases[0].splits, 70);
    assert_int_equal(result.cases[1].splits, 68);
    assert_int_equal(result.cases[1].runs, 4);
    self_free(&result);
    end_side(&side);

    side = begin_side();
    static const unsigned runs[] = {15, 4, 5, 6};
    static const size_t splits[] = {4000, 3694, 3897, 3972};
    static const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        add_case(&side, names[i], "c", runs[i], 100);
    result = self_of(&side);
    assert_int_equal(result.case_count, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(result.cases[i].splits, splits[i]);
    self_free(&result);
    end_side(&side);
}

/* Four runs 10 % above four others: the one half that holds exactly the slow ones is slower,
 * and none else, as a mixed half spreads by as much. The alarm counts once for the split, and
 * for each case that raised it. */
static void alarms_are_counted(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    for (int c = 0; c < 2; c++) {
        add_case(&side, c ? "b" : "a", "fast", 4, 100);
        add_case(&side, c ? "b" : "a", "slow", 4, 110);
    }
    add_case(&side, "steady", "fast", 4, 100);
    add_case(&side, "steady", "slow", 4, 100);
    struct self_result result = self_of(&side);
    assert_int_equal(result.splits, 70);
    assert_int_equal(result.alarms, 1);
    assert_int_equal(result.cases[0].alarms, 1);
    assert_int_equal(result.cases[1].alarms, 1);
    assert_int_equal(result.cases[2].alarms, 0);
    assert_int_equal(result.campaigns, 2);
    assert_int_equal(result.campaign_alarms, 1);
    assert_int_equal(result.cases[0].splits, 70); /* campaigns count for none of the cases */
    self_free(&result);
    end_side(&side);
}

/* Of five campaigns the first is slow in one case; another has fewer runs in it, a third those of
 * one campaign in a campaign that was doubtful: all are still of the same five. */
static void campaigns_are_the_same_in_each_case(void **state)
{
    (void)state;
    static const char *const names[] = {"v", "w", "x", "y", "z"};
    struct one_side side = begin_side();
    for (size_t i = 0; i < 5; i++) {
        add_case(&side, "slow first", names[i], 3, i == 0 ? 120 : 100);
        add_case(&side, "few runs", names[i], i == 0 ? 1 : 3, 100);
        add_case(&side, "doubtful", i == 2 ? "x-doubtful" : names[i], 3, 100);
    }
    struct self_result result = self_of(&side);
    assert_int_equal(result.campaigns, 5);
    assert_int_equal(result.campaign_alarms, 1);
    self_free(&result);
    end_side(&side);
}

/* Each of two suites has its own. */
static void campaigns_of_several_suites(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    static const char *const of_a[] = {"x", "y", "x", "z"}, *const of_b[] = {"p", "q", "p", "r"};
    for (unsigned i = 0; i < 8; i++) {
        add_row(&side.text, (struct text_row){.name = "a", .campaign = of_a[i % 4], .run = i + 1});
        add_row(&side.text, (struct text_row){.name = "b", .campaign = of_b[i % 4], .run = i + 1});
    }
    struct self_result result = self_of(&side);
    assert_int_equal(result.campaigns, 6);
    assert_int_equal(result.campaign_alarms, 0);
    self_free(&result);
    end_side(&side);
}

static void what_is_left_out(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    add_case(&side, "enough", "c", 4, 100);
    add_case(&side, "few", "c", 3, 100);
    add_case(&side, "failed", "c", 4, 100);
    add_row(&side.text,
            (struct text_row){.name = "failed", .run = 5, .status = "failed", .median_us = ""});
    add_case(&side, "other", "c", 4, 100);
    regex_t filter;
    assert_int_equal(regcomp(&filter, "enough|few|failed", REG_EXTENDED | REG_NOSUB), 0);
    side.settings.filter = &filter;
    struct self_result result = self_of(&side);
    assert_int_equal(result.case_count, 1);
    assert_string_equal(case_name(&side, result.cases[0].case_id), "enough");
    assert_int_equal(result.unusable, 2);
    assert_null(result.invalid);
    self_free(&result);
    regfree(&filter);
    end_side(&side);
}

/* The first row without a value stops it, whatever stands behind. */
static void the_first_invalid_row_is_named(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    add_case(&side, "a", "c", 4, 100);
    add_row(&side.text, (struct text_row){.name = "b", .run = 1, .median_us = "0"});
    add_row(&side.text, (struct text_row){.name = "c", .run = 1, .median_us = ""});
    add_case(&side, "d", "c", 4, 100);
    struct self_result result = self_of(&side);
    assert_int_equal(result.invalid->line, 6);
    assert_string_equal(result.refusal,
                        "a row that is ok has no value that a measurement can have");
    assert_int_equal(result.splits, 0);
    assert_int_equal(self_status(&result), EXIT_CANNOT_JUDGE);
    self_free(&result);
    end_side(&side);

    side = begin_side();
    result = self_of(&side);
    assert_string_equal(result.refusal, "no case has four ok runs or more");
    self_free(&result);
    end_side(&side);
}

/* One split in a hundred may alarm, and no more. */
static void the_status_is_by_the_rate(void **state)
{
    (void)state;
    static const struct {
        size_t alarms, splits;
        int status;
    } cases[] = {{0, 6, EXIT_FINE},     {1, 6, EXIT_WORSE},    {1, 100, EXIT_FINE},
                 {1, 99, EXIT_WORSE},   {40, 4000, EXIT_FINE}, {41, 4000, EXIT_WORSE},
                 {34, 3432, EXIT_FINE}, {35, 3432, EXIT_WORSE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct self_result result = {.alarms = cases[i].alarms, .splits = cases[i].splits};
        assert_int_equal(self_status(&result), cases[i].status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_or_four_thousand),
        cmocka_unit_test(short_cases_take_part_where_they_can),
        cmocka_unit_test(alarms_are_counted),
        cmocka_unit_test(campaigns_are_the_same_in_each_case),
        cmocka_unit_test(campaigns_of_several_suites),
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(the_first_invalid_row_is_named),
        cmocka_unit_test(the_status_is_by_the_rate),
    };
    return cmocka_run_group_tests_name("compare: runs of the same code", tests, NULL, NULL);
}
