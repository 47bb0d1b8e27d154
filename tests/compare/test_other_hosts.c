/* What a host cannot measure for its number of GPUs, and what it only seems not to. */
#include "two_sides.h"

static struct settings on_hosts(const char *params)
{
    struct settings settings = usual_settings();
    settings.host_params = params;
    return settings;
}

static void finish_on_hosts(struct sides *sides, const char *params)
{
    finish_with(sides, on_hosts(params));
    if (!sides->compared.loaded)
        fail_msg("%s", sides->compared.error);
}

/* A host of one GPU has no case of two, and none that says it needs two. */
static void other_hosts_cases_are_not_missed(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct text_row one = {.suite = "scaling", .name = "step", .params = "gpus=1 b=8"};
    struct text_row two = {.suite = "scaling", .name = "step", .params = "gpus=2 b=8"};
    struct text_row twelve = {.suite = "scaling", .name = "other", .params = "b=8 gpus=12"};
    struct text_row peer = {.name = "peer", .run = 1, .status = "unsupported", .median_us = "",
                            .flags = "reason=needs_two_GPUs"};
    add_runs(&sides.baseline, one, 3, 100, 0.0);
    add_runs(&sides.baseline, two, 3, 100, 0.0);
    add_runs(&sides.baseline, twelve, 3, 100, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "peer"}, 3, 100, 0.0);
    two.name = "never", two.run = 1, two.status = "unsupported", two.median_us = "";
    add_row(&sides.baseline, two);
    add_runs(&sides.current, one, 3, 100, 0.0);
    add_row(&sides.current, peer);
    finish_on_hosts(&sides, "other:gpus,scaling:gpus");
    assert_outcome(&sides, "other", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "peer", OUTCOME_ELSEWHERE);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_ELSEWHERE), 3);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_MISSING), 0);
    assert_int_equal(status_of(&sides), EXIT_FINE);
    end(&sides);
}

/* Rows of another status tell the host's number too; of another suite, or where no row tells of a
 * number, it may be anything. */
static void this_hosts_cases_are_missed(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "kept", 100, 100);
    add_runs(&sides.baseline, (struct text_row){.suite = "scaling", .name = "ranks", .params = "b=8 ranks=2"}, 3, 100, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "rows", .params = "ranks=2"}, 3, 100, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "worked", .params = "x=3"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "rows", .params = "ranks=1"}, 3, 100, 0.0);
    finish_on_hosts(&sides, "scaling:ranks");
    assert_outcome(&sides, "ranks", OUTCOME_MISSING);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_MISSING), 3);
    compared_free(&sides.compared);
    struct text_row skipped = {.suite = "scaling", .name = "skipped", .params = "ranks=2", .run = 1,
                               .status = "skipped", .median_us = ""};
    add_row(&sides.current, skipped);
    add_runs(&sides.current, (struct text_row){.suite = "scaling", .name = "one", .params = "ranks=1"}, 3, 100, 0.0);
    add_row(&sides.current, (struct text_row){.name = "worked", .params = "x=3", .run = 1, .status = "unsupported",
                                              .median_us = "", .flags = "reason=needs_Hopper_GPUs"});
    finish_on_hosts(&sides, "scaling:ranks");
    assert_outcome(&sides, "ranks", OUTCOME_MISSING);
    assert_outcome(&sides, "worked", OUTCOME_NOT_OK);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    end(&sides);
}

/* As the suite scaling does: one kind of case with every number, one with the host's alone. So a
 * case of one GPU that hosts of one have is no fault of a host of two, whose own ones are missed;
 * not so of a case of one GPU that hosts of two have. */
static void what_like_hosts_have_is_missed(void **state)
{
    (void)state;
    static const char *const campaigns[] = {"one", "two"};
    struct sides sides = begin();
    for (size_t host = 0; host < 2; host++) {
        struct text_row row = {.suite = "scaling", .name = "every", .params = "gpus=1", .campaign = campaigns[host]};
        add_runs(&sides.baseline, row, 3, 100, 0.0);
        row.name = host == 0 ? "alone" : "lost";
        add_runs(&sides.baseline, row, 3, 100, 0.0);
        row.name = "oom", row.run = 3, row.status = host == 0 ? "ok" : "oom";
        row.median_us = host == 0 ? "100" : "";
        add_row(&sides.baseline, row);
    }
    struct text_row two = {.suite = "scaling", .name = "both", .params = "gpus=2", .campaign = "two"};
    add_runs(&sides.baseline, two, 4, 100, 0.0);
    two.campaign = "new";
    add_runs(&sides.current, two, 3, 100, 0.0);
    finish_on_hosts(&sides, "scaling:gpus");
    assert_outcome(&sides, "alone", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "oom", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "lost", OUTCOME_MISSING);
    assert_outcome(&sides, "every", OUTCOME_MISSING);
    assert_verdict(&sides, "both", VERDICT_SAME);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    end(&sides);
}

/* Of a host of two a case of one GPU was doubtful, and is of a campaign of its own: it is a case of
 * hosts of two for all that. */
static void doubtful_cases_are_their_hosts(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct text_row row = {.suite = "scaling", .name = "both", .params = "gpus=2", .campaign = "two"};
    add_runs(&sides.baseline, row, 1, 100, 0.0);
    row.name = "doubted", row.params = "gpus=1", row.campaign = "two-doubtful";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    row.name = "alone", row.campaign = "one";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    row.name = "more", row.campaign = "one-doubtful";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.suite = "scaling", .name = "both", .params = "gpus=2"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.suite = "scaling", .name = "one", .params = "gpus=1"}, 3, 100, 0.0);
    finish_on_hosts(&sides, "scaling:gpus");
    assert_outcome(&sides, "doubted", OUTCOME_MISSING);
    assert_outcome(&sides, "alone", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "more", OUTCOME_ELSEWHERE);
    end(&sides);
}

/* Where the baseline has no such host, a case that has other numbers is not expected of this one. */
static void without_like_hosts_the_case_tells(void **state)
{
    (void)state;
    static const char *const numbers[] = {"gpus=1", "gpus=2"};
    struct sides sides = begin();
    struct text_row row = {.suite = "scaling"};
    for (size_t i = 0; i < 2; i++) {
        row.params = numbers[i];
        row.name = "every", row.variant = "lost";
        add_runs(&sides.baseline, row, 3, 100, 0.0);
        row.variant = "kept";
        add_runs(&sides.baseline, row, 3, 100, 0.0);
        add_runs(&sides.current, row, 3, 100, 0.0);
        row.name = "hosts";
        add_runs(&sides.baseline, row, 3, 100, 0.0);
        row.name = "gone";
        add_runs(&sides.baseline, row, 3, 100, 0.0);
    }
    row.params = "gpus=4", row.name = "hosts";
    add_runs(&sides.current, row, 3, 100, 0.0);
    finish_on_hosts(&sides, "scaling:gpus");
    assert_outcome(&sides, "hosts", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "gone", OUTCOME_MISSING);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_ELSEWHERE), 2);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_MISSING), 4);
    end(&sides);
}

/* Ten is more than nine. What a filter takes no part of tells of its host all the same: by the
 * filtered rows alone this host would be one of nine. */
static void the_highest_number_is_the_hosts(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct settings settings = on_hosts("scaling:gpus");
    regex_t filter;
    assert_int_equal(regcomp(&filter, "gpus=9", REG_EXTENDED | REG_NOSUB), 0);
    struct text_row row = {.suite = "scaling", .name = "shared", .params = "gpus=9", .campaign = "nine"};
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    row.name = "alone";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    row.name = "shared", row.campaign = "ten";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    add_runs(&sides.current, row, 3, 100, 0.0);
    row.name = "lost";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    row.name = "wide", row.params = "gpus=10";
    add_runs(&sides.baseline, row, 3, 100, 0.0);
    add_runs(&sides.current, row, 3, 100, 0.0);
    settings.filter = &filter;
    finish_with(&sides, settings);
    assert_int_equal(sides.compared.comparison.count, 3);
    assert_outcome(&sides, "alone", OUTCOME_ELSEWHERE);
    assert_outcome(&sides, "lost", OUTCOME_MISSING);
    regfree(&filter);
    end(&sides);
}

/* Which params those are somebody must say, of which suite, and whole names. */
static void nothing_is_another_hosts_by_itself(void **state)
{
    (void)state;
    static const char *const others[] = {NULL, "mine:gpu", "mine:gpus2", "min:gpus", "other:gpus", "mine:b"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct sides sides = begin();
        add_runs(&sides.baseline, (struct text_row){.suite = "mine", .name = "two", .params = "b=8 gpus=2"}, 3, 100, 0.0);
        add_both(&sides, "kept", 100, 100);
        add_runs(&sides.current, (struct text_row){.suite = "mine", .name = "one", .params = "b=8 gpus=1"}, 3, 100, 0.0);
        finish_on_hosts(&sides, others[i]);
        assert_outcome(&sides, "two", OUTCOME_MISSING);
        compared_free(&sides.compared);
        finish_on_hosts(&sides, "mine:gpus");
        assert_outcome(&sides, "two", OUTCOME_ELSEWHERE);
        end(&sides);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_hosts_cases_are_not_missed),
        cmocka_unit_test(this_hosts_cases_are_missed),
        cmocka_unit_test(what_like_hosts_have_is_missed),
        cmocka_unit_test(doubtful_cases_are_their_hosts),
        cmocka_unit_test(without_like_hosts_the_case_tells),
        cmocka_unit_test(the_highest_number_is_the_hosts),
        cmocka_unit_test(nothing_is_another_hosts_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
