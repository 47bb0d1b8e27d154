/* What the history of a case is made of: its campaigns, their order, and what is left out.
 * The rule for changes is test_trend.c's. */
#define _XOPEN_SOURCE 700

#include "../../compare/history.h"

#include "one_side.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A side, and what its history is. */
struct told {
    struct one_side side;
    struct history history;
};

static struct told begin(void)
{
    return (struct told){.side = begin_side()};
}

static const struct history *find(struct told *told)
{
    assert_true(find_history(&told->history, &told->side.settings, &told->side.catalogue,
                             &told->side.results));
    return &told->history;
}

static const struct history *tell(struct told *told)
{
    load_side(&told->side);
    return find(told);
}

static void end(struct told *told)
{
    history_free(&told->history);
    end_side(&told->side);
}

static void add(struct told *told, const char *name, const char *campaign, const char *timestamp,
                unsigned run, const char *median_us)
{
    add_row(&told->side.text, (struct text_row){.name = name,
                                                .campaign = campaign,
                                                .timestamp = timestamp,
                                                .run = run,
                                                .median_us = median_us,
                                                .git = campaign});
}

static bool is_near(double value, double wanted)
{
    return fabs(value - wanted) < 1e-12;
}

static const char *campaign_of(const struct told *told, size_t point)
{
    return intern_text(&told->side.catalogue.campaigns, told->history.points[point].campaign);
}

/* Of 1, 4, 2 and 16 us the logarithms of base 2 are 0, 2, 1 and 4: their median is 1.5, their
 * mean 1.75, and the squares of their distances from it add up to 8.75. */
static void a_campaign_is_a_point(void **state)
{
    (void)state;
    struct told told = begin();
    static const char *const medians[] = {"1", "4", "2", "16"};
    for (unsigned i = 0; i < 4; i++) {
        add(&told, "a", "c1", NULL, i + 1, medians[i]);
        add(&told, "a", "c2", NULL, i + 1, i == 3 ? "32" : "8");
    }
    const struct history *history = tell(&told);
    assert_int_equal(history->case_count, 1);
    assert_int_equal(history->point_count, 2);
    assert_int_equal(history->cases[0].first, 0);
    assert_int_equal(history->cases[0].trend.count, 2);
    assert_int_equal(history->levels[0].runs, 4);
    assert_true(is_near(history->levels[0].level, 1.5 * M_LN2));
    assert_true(is_near(history->levels[0].squares, 8.75 * M_LN2 * M_LN2));
    assert_true(is_near(history->points[0].fastest, 0.0));
    assert_true(is_near(history->points[0].slowest, 4 * M_LN2));
    assert_true(is_near(history->levels[1].level, 3 * M_LN2));
    assert_true(is_near(history->points[1].fastest, 3 * M_LN2));
    assert_true(is_near(history->points[1].slowest, 5 * M_LN2));
    assert_ptr_equal(history->cases[0].trend.points, history->levels);
    assert_ptr_equal(history->cases[0].trend.starts, history->starts);
    assert_ptr_equal(history->cases[0].trend.lone, history->lone);
    end(&told);
}

/* A campaign's rows may stand among another's; its time and its revision are those of its
 * earliest row, wherever that stands. */
static void campaigns_stand_in_the_order_of_time(void **state)
{
    (void)state;
    struct told told = begin();
    static const struct {
        const char *campaign, *timestamp, *git;
    } rows[] = {
        {"late", "2026-03-01T00:00:02Z", "l2"},  {"early", "2026-03-01T00:00:01Z", "e1"},
        {"late", "2026-03-01T00:00:01Z", "l1"},  {"early", "2026-02-28T23:59:59Z", "e0"},
        {"early", "2026-03-01T00:00:05Z", "e5"}, {"first", "1970-01-01T00:00:01Z", "f"},
        {"late", "2026-03-01T00:00:03Z", "l3"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        add_row(&told.side.text, (struct text_row){.campaign = rows[i].campaign,
                                                   .timestamp = rows[i].timestamp,
                                                   .git = rows[i].git,
                                                   .run = i + 1});
    const struct history *history = tell(&told);
    static const char *const campaigns[] = {"first", "early", "late"};
    static const char *const revisions[] = {"f", "e0", "l1"};
    static const int64_t times[] = {1, 1772323199, 1772323201};
    static const size_t runs[] = {1, 3, 3};
    assert_int_equal(history->point_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(campaign_of(&told, i), campaigns[i]);
        assert_string_equal(intern_text(&told.side.results.revisions, history->points[i].revision),
                            revisions[i]);
        assert_int_equal(history->points[i].time_s, times[i]);
        assert_int_equal(history->levels[i].runs, runs[i]);
    }
    assert_int_equal(history->undated, 0);
    end(&told);
}

/* Equal times are no order: then it is the file's, in which campaigns were named first. */
static void equal_times_keep_the_order_of_the_file(void **state)
{
    (void)state;
    struct told told = begin();
    static const char *const campaigns[] = {"d", "c", "b", "a"};
    for (int i = 0; i < 4; i++)
        add(&told, "a", campaigns[i], i == 3 ? "2026-01-01T00:00:00Z" : "2026-01-01T00:00:01Z", 1,
            "100");
    tell(&told);
    static const char *const wanted[] = {"a", "d", "c", "b"};
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(campaign_of(&told, i), wanted[i]);
    end(&told);
}

/* One row without a time leaves the campaigns of its case as they are in the file, and only
 * that case's. */
static void without_a_time_the_file_says_the_order(void **state)
{
    (void)state;
    struct told told = begin();
    const char *late = "2026-03-01T00:00:00Z", *early = "2026-02-01T00:00:00Z";
    add(&told, "undated", "late", late, 1, "100");
    add(&told, "undated", "none", "", 1, "100");
    add(&told, "undated", "early", early, 1, "100");
    add(&told, "dated", "late", late, 1, "100");
    add(&told, "dated", "early", early, 1, "100");
    add(&told, "alone", "none", "", 1, "100");
    const struct history *history = tell(&told);
    static const char *const wanted[] = {"late", "none", "early", "early", "late"};
    assert_int_equal(history->point_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(campaign_of(&told, i), wanted[i]);
    assert_int_equal(history->case_count, 2);
    assert_int_equal(history->cases[1].first, 3);
    assert_ptr_equal(history->cases[1].trend.points, history->levels + 3);
    assert_ptr_equal(history->cases[1].trend.starts, history->starts + 3);
    assert_ptr_equal(history->cases[1].trend.lone, history->lone + 3);
    assert_int_equal(history->undated, 1); /* of "alone" there is no order */
    assert_int_equal(history->single, 1);
    end(&told);
}

/* From five campaigns on what one does is known. */
static void cases_are_counted_by_their_campaigns(void **state)
{
    (void)state;
    struct told told = begin();
    static const char *const names[] = {"n1", "n2", "n3", "n4", "n5", "n6"};
    static const char *const campaigns[] = {"c1", "c2", "c3", "c4", "c5", "c6"};
    for (size_t of_case = 1; of_case <= 6; of_case++)
        for (size_t i = 0; i < of_case; i++)
            add(&told, names[of_case - 1], campaigns[i], NULL, 1, "100");
    const struct history *history = tell(&told);
    assert_int_equal(history->single, 1);
    assert_int_equal(history->few, 3);
    assert_int_equal(history->case_count, 5);
    assert_int_equal(history->point_count, 2 + 3 + 4 + 5 + 6);
    assert_int_equal(history->undated, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(history->cases[i].trend.count, i + 2);
        assert_string_equal(case_name(&told.side, history->cases[i].case_id), names[i + 1]);
    }
    end(&told);
}

/* What is not ok, or was throttled, is no point; a throttled row is counted. */
static void rows_that_are_no_evidence(void **state)
{
    (void)state;
    struct told told = begin();
    for (unsigned i = 0; i < 3; i++) {
        const char *campaign = (const char *[]){"a", "b", "c"}[i];
        add(&told, "copy", campaign, NULL, 1, "100");
        add_row(&told.side.text,
                (struct text_row){.campaign = campaign, .run = 2, .flags = "throttle=hw-slowdown"});
        add_row(
            &told.side.text,
            (struct text_row){.campaign = campaign, .run = 3, .status = "failed", .median_us = ""});
        add_row(&told.side.text,
                (struct text_row){.campaign = campaign, .run = 4, .flags = "throttle=power-cap"});
    }
    add_row(&told.side.text,
            (struct text_row){.campaign = "d", .run = 1, .flags = "throttle=sw-thermal"});
    add_row(&told.side.text,
            (struct text_row){.name = "never", .campaign = "d", .run = 1, .status = "oom"});
    const struct history *history = tell(&told);
    assert_int_equal(history->point_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(history->levels[i].runs, 2);
    assert_int_equal(history->throttled, 4);
    assert_int_equal(history->single, 0);
    assert_null(history->invalid);
    assert_null(history->device_row);
    end(&told);
}

/* A case on several devices is told by the first row that is on another one than its first;
 * two cases on two devices are nothing to tell. */
static void other_devices(void **state)
{
    (void)state;
    struct told told = begin();
    for (unsigned i = 0; i < 2; i++) {
        const char *campaign = i ? "b" : "a";
        add_row(&told.side.text, (struct text_row){.name = "here", .campaign = campaign, .run = 1});
        add_row(&told.side.text,
                (struct text_row){.name = "there", .campaign = campaign, .run = 1, .device = "L4"});
    }
    assert_null(tell(&told)->device_row);
    history_free(&told.history);
    results_free(&told.side.results);
    add_row(&told.side.text,
            (struct text_row){.name = "there", .campaign = "b", .run = 2, .device = "A10"});
    add_row(&told.side.text,
            (struct text_row){.name = "here", .campaign = "c", .run = 1, .device = "L4"});
    const struct history *history = tell(&told);
    assert_non_null(history->device_row);
    assert_int_equal(history->device_row->line, 7); /* of the case that comes first */
    end(&told);
}

/* The first value that no measurement can have is named; the others make the history. */
static void invalid_values(void **state)
{
    (void)state;
    static const char *const bad[] = {"0", "-1", ""};
    for (size_t i = 0; i <= 3; i++) {
        struct told told = begin();
        for (unsigned run = 1; run <= 3; run++) {
            add(&told, "copy", "a", NULL, run, "100");
            add(&told, "copy", "b", NULL, run, run == 1 || i == 3 ? "100" : bad[i]);
        }
        load_side(&told.side);
        if (i == 3)
            told.side.results.rows[3].value = told.side.results.rows[5].value = INFINITY;
        const struct history *history = find(&told);
        assert_non_null(history->invalid);
        assert_int_equal(history->invalid->line, 5);
        assert_int_equal(history->point_count, 2);
        assert_int_equal(history->levels[0].runs, 3);
        assert_int_equal(history->levels[1].runs, 1);
        end(&told);
    }
}

/* A case may have no throughput; what has one is a cost by its inverse. */
static void throughputs_may_be_missing(void **state)
{
    (void)state;
    struct told told = begin();
    told.side.settings.metric = find_metric("gb_per_s");
    for (unsigned i = 0; i < 2; i++) {
        const char *campaign = i ? "b" : "a";
        add_row(&told.side.text,
                (struct text_row){
                    .name = "with", .campaign = campaign, .run = 1, .gb_per_s = i ? "400" : "100"});
        add_row(&told.side.text,
                (struct text_row){.name = "without", .campaign = campaign, .run = 1});
    }
    const struct history *history = tell(&told);
    assert_null(history->invalid);
    assert_int_equal(history->case_count, 1);
    assert_true(is_near(history->levels[1].level - history->levels[0].level, -2 * M_LN2));
    end(&told);
}

/* A time that is no longer than what its host's empty kernel takes more is none. */
static void times_are_without_the_constant(void **state)
{
    (void)state;
    struct told told = begin();
    for (unsigned i = 0; i < 4; i++)
        add(&told, "copy", i < 2 ? "a" : "b", NULL, i + 1, "4");
    load_side(&told.side);
    told.side.results.rows[0].shift_us = 2.0f;
    told.side.results.rows[1].shift_us = 4.0f;
    const struct history *history = find(&told);
    assert_null(history->invalid);
    assert_int_equal(history->levels[0].runs, 1);
    assert_true(is_near(history->levels[0].level, M_LN2));
    assert_int_equal(history->levels[1].runs, 2);
    assert_true(is_near(history->levels[1].level, 2 * M_LN2));
    end(&told);
}

static void filtered_cases_have_no_history(void **state)
{
    (void)state;
    struct told told = begin();
    for (unsigned i = 0; i < 2; i++) {
        add(&told, "wanted", i ? "b" : "a", NULL, 1, "100");
        add(&told, "other", i ? "b" : "a", NULL, 1, "100");
    }
    regex_t filter;
    assert_int_equal(regcomp(&filter, "other", REG_EXTENDED | REG_NOSUB), 0);
    told.side.settings.filter = &filter;
    const struct history *history = tell(&told);
    assert_int_equal(history->case_count, 1);
    assert_string_equal(case_name(&told.side, history->cases[0].case_id), "other");
    regfree(&filter);
    end(&told);
}

/* Three steady campaigns, then three of one and a half times the time. */
static void a_change_is_a_ratio(void **state)
{
    (void)state;
    struct told told = begin();
    char campaign[8];
    for (unsigned i = 0; i < 12; i++) {
        snprintf(campaign, sizeof campaign, "c%u", i / 2);
        add(&told, "steady", campaign, NULL, i + 1, i % 2 ? "99.9" : "100.1");
        add(&told, "slower", campaign, NULL, i + 1,
            i < 6   ? i % 2 ? "99.9" : "100.1"
            : i % 2 ? "149.85"
                    : "150.15");
    }
    const struct history *history = tell(&told);
    assert_int_equal(history->cases[0].trend.level_count, 1);
    assert_int_equal(history->cases[1].trend.level_count, 2);
    assert_int_equal(history->cases[1].trend.starts[1], 3);
    assert_true(is_near(change_of(&history->cases[1].trend, 1), 1.5));
    end(&told);
}

static void a_file_without_rows_has_no_history(void **state)
{
    (void)state;
    struct told told = begin();
    const struct history *history = tell(&told);
    assert_int_equal(history->case_count, 0);
    assert_int_equal(history->point_count, 0);
    end(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_campaign_is_a_point),
        cmocka_unit_test(campaigns_stand_in_the_order_of_time),
        cmocka_unit_test(equal_times_keep_the_order_of_the_file),
        cmocka_unit_test(without_a_time_the_file_says_the_order),
        cmocka_unit_test(cases_are_counted_by_their_campaigns),
        cmocka_unit_test(rows_that_are_no_evidence),
        cmocka_unit_test(other_devices),
        cmocka_unit_test(invalid_values),
        cmocka_unit_test(throughputs_may_be_missing),
        cmocka_unit_test(times_are_without_the_constant),
        cmocka_unit_test(filtered_cases_have_no_history),
        cmocka_unit_test(a_change_is_a_ratio),
        cmocka_unit_test(a_file_without_rows_has_no_history),
    };
    return cmocka_run_group_tests_name("compare: histories", tests, NULL, NULL);
}
