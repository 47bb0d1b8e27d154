/* Which rows tell that the work of a case changed: only those of one seed. Every verdict
 * here follows from the rule in work.h by hand. */
#define _POSIX_C_SOURCE 200809L

#include "../../compare/self.h"

#include "one_side.h"

#include <stdio.h>
#include <string.h>

/* Cuts the text in front of the mark, or at its end, and goes on behind it. */
static char *cut(char **rest, char mark)
{
    char *word = *rest;
    char *end = word ? strchr(word, mark) : NULL;
    *rest = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return word;
}

static void add_variant(struct text *text, const char *name, const char *variant, const char *rows)
{
    char words[200];
    char *rest = words;
    assert_true(strlen(rows) < sizeof words);
    strcpy(words, rows);
    for (unsigned run = 1; rest; run++) {
        char *row = cut(&rest, ' ');
        struct text_row one = {.name = name, .variant = variant, .run = run};
        one.seed = cut(&row, ':');
        one.bytes = cut(&row, ':');
        one.flops = cut(&row, ':');
        one.status = cut(&row, ':');
        add_row(text, one);
    }
}

static void add_rows(struct text *text, const char *name, const char *rows)
{
    add_variant(text, name, NULL, rows);
}

/* One case; rows as SEED:BYTES, SEED:BYTES:FLOPS or SEED:BYTES:FLOPS:STATUS each. */
static void compare_rows(struct compared *compared, const char *baseline, const char *current)
{
    struct text old = {0};
    struct text new = {0};
    add_header(&old);
    add_header(&new);
    add_rows(&old, "case", baseline);
    add_rows(&new, "case", current);
    compare_texts(compared, usual_settings(), &old, &new);
    if (!compared->loaded)
        fail_msg("%s", compared->error);
    assert_int_equal(compared->comparison.count, 1);
    free_text(&old);
    free_text(&new);
}

static void assert_judged(const char *baseline, const char *current)
{
    struct compared compared;
    compare_rows(&compared, baseline, current);
    assert_int_equal(compared.comparison.results[0].outcome, OUTCOME_JUDGED);
    assert_int_equal(comparison_status(&compared.comparison), EXIT_FINE);
    compared_free(&compared);
}

static void assert_place(const struct row *row, bool in_baseline, const char *place)
{
    char found[40];
    snprintf(found, sizeof found, "%s:%zu", in_baseline ? "BASE" : "CUR", row->line);
    assert_string_equal(found, place);
}

/* The places of the row that is named and of the one that it is held against; line 1
 * is the header. */
static void assert_changed(const char *baseline, const char *current, const char *row,
                           const char *than)
{
    struct compared compared;
    compare_rows(&compared, baseline, current);
    const struct case_result *result = &compared.comparison.results[0];
    assert_int_equal(result->outcome, OUTCOME_WORK_CHANGED);
    assert_int_equal(comparison_status(&compared.comparison), EXIT_CANNOT_JUDGE);
    assert_place(result->problem.row, result->problem.in_baseline, row);
    assert_place(result->problem.than, result->problem.than_in_baseline, than);
    compared_free(&compared);
}

static void rows_of_one_seed_are_compared(void **state)
{
    (void)state;
    assert_judged("1:100 2:110 3:90", "3:90 2:110 1:100");
    assert_changed("1:100 2:110 3:90", "1:100 2:110 3:100", "CUR:4", "BASE:4");
    assert_changed("1:100:7 2:100:8", "1:100:7 2:100:7", "CUR:3", "BASE:3");
}

static void a_seed_of_one_side_says_nothing_of_the_other(void **state)
{
    (void)state;
    assert_judged("8:110 1:100", "1:100 9:300");
    assert_changed("8:101 1:100", "9:100 1:101", "CUR:3", "BASE:3");
}

static void without_a_common_seed_nobody_can_tell(void **state)
{
    (void)state;
    assert_changed("1:100", "2:110 2:110", "CUR:2", "BASE:2");
    assert_changed("1:100 3:110", "2:100 4:100", "CUR:2", "BASE:3");
    assert_changed("1:100 3:100", "2:100 4:110", "CUR:3", "BASE:2");
    assert_judged("1:100 3:100", "2:100 4:100");
}

static void a_side_may_contradict_itself(void **state)
{
    (void)state;
    assert_changed("2:100 1:100 1:101", "2:100", "BASE:4", "BASE:3");
    assert_changed("1:100", "1:100 5:7 5:8", "CUR:4", "CUR:3");
}

/* Older files have no column seed; here it is empty. */
static void rows_without_a_seed_are_as_of_one(void **state)
{
    (void)state;
    assert_judged(":100", ":100");
    assert_changed(":100", ":101", "CUR:2", "BASE:2");
    assert_changed(":100 :101", ":101", "BASE:3", "BASE:2");
    assert_judged(":100", "1:100 2:100");
    assert_changed(":100", "1:100 2:110", "CUR:3", "BASE:2");
    assert_judged(":100 1:110", "1:110 2:90");
}

static void what_is_not_said_is_no_difference(void **state)
{
    (void)state;
    assert_judged("1:", "1:100");
    assert_judged("1:", "2:100:7");
    assert_changed("1:100 1:", "1:101", "CUR:2", "BASE:2");
    assert_changed("1: 1:100", "1:101", "CUR:2", "BASE:3");
    assert_changed("1:5: 1:5:7", "1:5: 1:5:8", "CUR:3", "BASE:3");
}

/* The baseline's rows that are not ok say nothing, nor is their seed on both sides. */
static void failed_rows_say_nothing(void **state)
{
    (void)state;
    assert_judged("1:100::failed 1:101", "1:101");
    assert_changed("1:100::failed 2:101", "1:102", "CUR:2", "BASE:3");
    assert_judged("1:100::failed 2:101", "3:101");
}

/* What one case says is not held against the next. */
static void cases_are_apart(void **state)
{
    (void)state;
    struct text baseline = {0};
    struct text current = {0};
    add_header(&baseline);
    add_header(&current);
    add_rows(&baseline, "first", "1:100 2:110");
    add_rows(&current, "first", "1:100 3:120");
    add_rows(&baseline, "second", "1:200 2:220");
    add_rows(&current, "second", "1:200 3:240");
    struct compared compared;
    compare_texts(&compared, usual_settings(), &baseline, &current);
    assert_int_equal(count_outcomes(&compared.comparison, OUTCOME_JUDGED), 2);
    compared_free(&compared);
    free_text(&baseline);
    free_text(&current);
}

static void variants_and_splits_go_by_seeds(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    struct comparison comparison;
    struct self_result self;
    add_variant(&side.text, "alike", "plain", "1:100 2:110 3:90 4:9");
    add_variant(&side.text, "alike", "tiled", "1:100 2:110 3:90 4:9");
    add_variant(&side.text, "other", "plain", "1:100 2:110 3:90 4:9");
    add_variant(&side.text, "other", "tiled", "1:100 2:110 3:90 4:8");
    load_side(&side);
    assert_true(compare_variants(&comparison, &side.settings, &side.catalogue, &side.results));
    assert_int_equal(comparison.count, 2);
    assert_int_equal(comparison.results[0].outcome, OUTCOME_JUDGED);
    assert_int_equal(comparison.results[1].outcome, OUTCOME_WORK_CHANGED);
    assert_true(self_compare(&self, &side.settings, &side.catalogue, &side.results));
    assert_int_equal(self.case_count, 4);
    assert_int_equal(self.unusable, 0);
    comparison_free(&comparison);
    self_free(&self);
    end_side(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_one_seed_are_compared),
        cmocka_unit_test(a_seed_of_one_side_says_nothing_of_the_other),
        cmocka_unit_test(without_a_common_seed_nobody_can_tell),
        cmocka_unit_test(a_side_may_contradict_itself),
        cmocka_unit_test(rows_without_a_seed_are_as_of_one),
        cmocka_unit_test(what_is_not_said_is_no_difference),
        cmocka_unit_test(failed_rows_say_nothing),
        cmocka_unit_test(cases_are_apart),
        cmocka_unit_test(variants_and_splits_go_by_seeds),
    };
    return cmocka_run_group_tests_name("compare: changed work", tests, NULL, NULL);
}
