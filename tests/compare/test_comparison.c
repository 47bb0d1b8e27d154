/* What becomes of cases: the field cases O01 to O13, as files in memory. */
#define _POSIX_C_SOURCE 200809L

#include "../../compare/self.h"

#include "cmocka_all.h"
#include "two_sides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_load_error(struct sides *sides, const char *message)
{
    finish_with(sides, usual_settings());
    assert_false(sides->compared.loaded);
    if (!strstr(sides->compared.error, message))
        fail_msg("'%s' does not say '%s'", sides->compared.error, message);
    end(sides);
}

/* O01 */
static void missing_and_new_cases(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "kept", 100, 100);
    add_runs(&sides.baseline, (struct text_row){.name = "gone"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "fresh"}, 3, 100, 0.0);
    finish(&sides);
    assert_verdict(&sides, "kept", VERDICT_SAME);
    assert_outcome(&sides, "gone", OUTCOME_MISSING);
    assert_outcome(&sides, "fresh", OUTCOME_NEW);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    compared_free(&sides.compared);

    struct settings settings = usual_settings();
    settings.subset = true;
    finish_with(&sides, settings);
    assert_int_equal(status_of(&sides), EXIT_FINE);
    end(&sides);
}

static void new_cases_do_not_fail(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "kept", 100, 100);
    add_runs(&sides.current, (struct text_row){.name = "fresh"}, 3, 100, 0.0);
    finish(&sides);
    assert_int_equal(status_of(&sides), EXIT_FINE);
    end(&sides);
}

static void no_common_case(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_runs(&sides.baseline, (struct text_row){.name = "old"}, 3, 100, 0.0);
    struct settings settings = usual_settings();
    settings.subset = true;
    finish_with(&sides, settings); /* current has its header only */
    assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
    compared_free(&sides.compared);
    add_runs(&sides.current, (struct text_row){.name = "old_v2"}, 3, 100, 0.0);
    finish_with(&sides, settings);
    assert_outcome(&sides, "old", OUTCOME_MISSING);
    assert_outcome(&sides, "old_v2", OUTCOME_NEW);
    assert_int_equal(sides.compared.comparison.common, 0);
    assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
    end(&sides);
}

/* O02 */
static void a_run_twice_is_refused(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    add_row(&sides.current, (struct text_row){.campaign = "new", .run = 2, .median_us = "0.1"});
    assert_load_error(&sides, "CUR.csv:5: column 'run': run 2 of campaign 'new' has a second row for the case "
                              "'suite copy plain cuda f32 n=1 cold'; the first is at CUR.csv:3");
    sides = begin();
    add_row(&sides.baseline, (struct text_row){.run = 1});
    add_row(&sides.baseline, (struct text_row){.run = 1, .median_us = "0.1"});
    assert_load_error(&sides, "BASE.csv:3");
}

/* Processes that began on three cards in the same second are runs of three campaigns. */
static void a_campaign_is_of_one_card(void **state)
{
    (void)state;
    static const char *const cards[] = {"GPU-a", "GPU-b", "GPU-c"};
    struct sides sides = begin();
    for (size_t i = 0; i < 3; i++)
        add_runs(&sides.baseline, (struct text_row){.campaign = "now", .uuid = cards[i]}, 2, 100, 0.001);
    add_runs(&sides.current, (struct text_row){.campaign = "now", .uuid = "GPU-a"}, 3, 100, 0.001);
    finish(&sides);
    const struct evidence *evidence = &result_of(&sides, "copy")->evidence;
    assert_int_equal(evidence->baseline_runs, 6);
    assert_int_equal(evidence->baseline_campaigns, 3);
    assert_true(evidence->campaigns_counted);
    const struct process_run *runs = sides.compared.baseline.runs;
    assert_int_equal(runs[0].campaign, sides.compared.current.runs[0].campaign);
    assert_int_not_equal(runs[0].campaign, runs[2].campaign);
    assert_string_equal(intern_text(&sides.compared.catalogue.campaigns, runs[2].campaign), "now");
    end(&sides);
    sides = begin();
    add_row(&sides.baseline, (struct text_row){.campaign = "now", .run = 1, .uuid = "GPU-a"});
    add_row(&sides.baseline, (struct text_row){.campaign = "now", .run = 1, .uuid = "GPU-b"});
    add_row(&sides.baseline, (struct text_row){.campaign = " now ", .run = 1, .uuid = " GPU-b "});
    assert_load_error(&sides, "BASE.csv:4: column 'run': run 1 of campaign 'now' has a second row");
}

/* O03 */
static void times_of_zero_and_less(void **state)
{
    (void)state;
    const char *bad[] = {"0", "0.000", "-0", "-3.2", ""};
    for (size_t i = 0; i < 5; i++) {
        struct sides sides = begin();
        add_both(&sides, "honest", 100, 120);
        add_row(&sides.baseline, (struct text_row){.name = "zero", .run = 1, .median_us = bad[i]});
        add_row(&sides.current, (struct text_row){.name = "zero", .run = 1, .median_us = i % 2 ? "5" : bad[i]});
        finish(&sides);
        assert_outcome(&sides, "zero", OUTCOME_INVALID);
        assert_true(result_of(&sides, "zero")->problem.in_baseline);
        assert_int_equal(result_of(&sides, "zero")->problem.row->line, 12);
        assert_verdict(&sides, "honest", VERDICT_SLOWER);
        assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
        end(&sides);
    }
}

/* C1 and C2: nor where the case is on one side only. */
static void invalid_on_one_side(void **state)
{
    (void)state;
    const char *bad[] = {"0", "-5", ""};
    for (size_t i = 0; i < 6; i++) {
        struct sides sides = begin();
        struct settings settings = usual_settings();
        settings.subset = true;
        add_both(&sides, "honest", 100, 100);
        add_row(i % 2 ? &sides.baseline : &sides.current,
                (struct text_row){.name = "alone", .run = 1, .median_us = bad[i / 2]});
        finish_with(&sides, settings);
        assert_outcome(&sides, "alone", OUTCOME_INVALID);
        assert_int_equal(result_of(&sides, "alone")->problem.in_baseline, i % 2);
        assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
        end(&sides);
    }
}

/* O05 */
static void other_devices(void **state)
{
    (void)state;
    const char *devices[] = {"NVIDIA L4", "", " NVIDIA H100  "};
    const size_t refused[] = {1, 1, 0};
    for (size_t i = 0; i < 3; i++) {
        struct sides sides = begin();
        add_both(&sides, "copy", 100, 100);
        add_row(&sides.current, (struct text_row){.campaign = "new", .run = 9, .device = devices[i]});
        finish(&sides);
        assert_int_equal(sides.compared.comparison.device_cases, refused[i]);
        if (refused[i])
            assert_int_equal(sides.compared.comparison.device_row->line, 5);
        end(&sides);
    }
}

/* O06: the unit is part of the name, so another unit is another column. */
static void other_units(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    memcpy(strstr(sides.current.bytes, "median_us"), "median_ms", 9);
    assert_load_error(&sides, "CUR.csv:1: column 'median_us' is missing");
}

/* O08 and O09: names with commas, and CRLF in one file. */
static void names_and_line_ends(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "\"copy<float,4>\"", 100, 100);
    add_both(&sides, "\"say \"\"hi\"\"\"", 100, 100);
    add_both(&sides, " lead and trail ", 100, 100);
    struct text crlf = {0};
    for (size_t i = 0; i < sides.current.size; i++)
        add_text(&crlf, sides.current.bytes[i] == '\n' ? "\r\n" : "%c", sides.current.bytes[i]);
    add_text(&crlf, "\r\n");
    free_text(&sides.current);
    sides.current = crlf;
    finish(&sides);
    assert_int_equal(sides.compared.comparison.count, 3);
    assert_verdict(&sides, "copy<float,4>", VERDICT_SAME);
    assert_verdict(&sides, "say \"hi\"", VERDICT_SAME);
    assert_verdict(&sides, " lead and trail ", VERDICT_SAME);
    assert_int_equal(sides.compared.comparison.device_cases, 0);
    end(&sides);
    sides = begin();
    add_row(&sides.baseline, (struct text_row){.name = "", .run = 1});
    assert_load_error(&sides, "BASE.csv:2: column 'case': '' a case without a name");
}

/* O10 and others: fields that are not what their column holds. */
static void fields_that_do_not_read(void **state)
{
    (void)state;
    const struct {
        struct text_row row;
        const char *message;
    } cases[] = {
        {{.median_us = "\"0,125\""}, "BASE.csv:2: column 'median_us': '0,125' is not a decimal number with a point"},
        {{.median_us = "nan"}, "'nan' is not a decimal number"},
        {{.bytes = "1k"}, "BASE.csv:2: column 'bytes': '1k'"},
        {{.status = "fine"}, "BASE.csv:2: column 'status': 'fine' is no status"},
        {{.gb_per_s = "inf"}, "BASE.csv:2: column 'gb_per_s': 'inf' is not a decimal number"},
        {{.gb_per_s = "-5"}, "BASE.csv:2: column 'gb_per_s': '-5' cannot be negative"},
        {{.overhead_us = "4e38"}, "BASE.csv:2: column 'overhead_us': '4e38' is more than any time"},
        {{.overhead_us = "-nan"}, "BASE.csv:2: column 'overhead_us': '-nan' is not a decimal number"},
        {{.median_us = "1e999"}, "BASE.csv:2: column 'median_us': '1e999' is not a decimal number"},
        {{.params = "\"n=1\nn=2\""}, "BASE.csv:2: column 'params' holds a line end"},
        {{.campaign = "\"a\nb\""}, "BASE.csv:2: column 'campaign' or 'device' holds a line end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sides sides = begin();
        add_row(&sides.baseline, cases[i].row);
        assert_load_error(&sides, cases[i].message);
    }
    struct sides sides = begin();
    add_row(&sides.baseline, (struct text_row){.run = 1});
    strstr(sides.baseline.bytes, "\n2,")[1] = '3';
    assert_load_error(&sides, "BASE.csv:2: column 'schema': '3' is a schema this program does not know");
}

/* C4: a number that the end of the file cuts is another number. */
static void a_last_line_without_its_end(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    sides.current.size -= 3; /* ",580\n" to ",5" */
    assert_load_error(&sides, "CUR.csv:4: the last line has no line end: was the file cut?");
}

/* C5 */
static void runs_that_lack_rows(void **state)
{
    (void)state;
    struct sides sides = begin();
    const char *names[] = {"a", "b", "c"};
    for (unsigned run = 1; run <= 4; run++)
        for (size_t i = 0; i < (run == 4 ? 1 : 3); i++)
            add_row(&sides.current, (struct text_row){.name = names[i], .campaign = "new", .run = run});
    add_both(&sides, "d", 100, 100);
    add_runs(&sides.baseline, (struct text_row){.name = "a", .campaign = "c2"}, 5, 100, 0.0);
    finish(&sides);
    const struct results *current = &sides.compared.current;
    assert_int_equal(current->run_count, 7);
    assert_int_equal(current->runs[3].rows, 1);
    assert_int_equal(current->runs[3].most_rows, 3);
    assert_int_equal(current->runs[3].line, 11);
    for (size_t i = 0; i < sides.compared.baseline.run_count; i++)
        assert_int_equal(sides.compared.baseline.runs[i].rows, sides.compared.baseline.runs[i].most_rows);
    end(&sides);
}

/* O11: columns are found by name. */
static void columns_in_any_order(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    free_text(&sides.current);
    add_text(&sides.current, "note,median_us,device,status,run,campaign,mode,params,dtype,backend,variant,case,suite,"
                             "schema\n,100,NVIDIA H100,ok,1,new,cold,n=1,f32,cuda,plain,copy,suite,2\n");
    finish(&sides);
    assert_int_equal(sides.compared.comparison.count, 1);
    assert_verdict(&sides, "copy", VERDICT_SAME);
    end(&sides);
}

/* O12 and O13 from files. */
static void single_and_equal_runs(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_runs(&sides.baseline, (struct text_row){.name = "one"}, 1, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "one"}, 1, 101, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "jump"}, 1, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "jump"}, 1, 150, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "gain"}, 5, 115, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "gain"}, 5, 78.8, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "still"}, 5, 115, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "still"}, 5, 115.1, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "loss"}, 5, 115, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "loss"}, 5, 150, 0.0);
    finish(&sides);
    assert_verdict(&sides, "one", VERDICT_SAME);
    assert_int_equal(result_of(&sides, "one")->judgement.reason, REASON_WITHIN_THRESHOLD);
    assert_verdict(&sides, "jump", VERDICT_SLOWER);
    assert_verdict(&sides, "gain", VERDICT_FASTER);
    assert_verdict(&sides, "still", VERDICT_SAME);
    assert_verdict(&sides, "loss", VERDICT_SLOWER);
    struct ratio ratio = metric_ratio(result_of(&sides, "gain"), find_metric("median_us"));
    assert_true(fabs(ratio.value - 78.8 / 115.0) < 1e-12);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    end(&sides);
}

static void a_file_against_itself(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_runs(&sides.baseline, (struct text_row){.run = 0}, 10, 100, 0.01);
    add_runs(&sides.current, (struct text_row){.run = 0}, 10, 100, 0.01);
    finish(&sides);
    assert_verdict(&sides, "copy", VERDICT_SAME);
    assert_true(result_of(&sides, "copy")->judgement.log_ratio == 0.0);
    assert_int_equal(status_of(&sides), EXIT_FINE);
    end(&sides);
}

static void cases_that_fail(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "kept", 100, 100);
    add_both(&sides, "broken", 100, 100);
    add_row(&sides.current,
            (struct text_row){.name = "broken", .campaign = "new", .run = 7, .status = "mismatch", .median_us = ""});
    add_row(&sides.baseline, (struct text_row){.name = "never", .run = 1, .status = "oom", .median_us = ""});
    add_row(&sides.current, (struct text_row){.name = "never", .run = 1, .status = "oom", .median_us = ""});
    add_row(&sides.baseline, (struct text_row){.name = "mended", .run = 1, .status = "failed", .median_us = ""});
    add_row(&sides.current, (struct text_row){.name = "mended", .run = 1});
    add_row(&sides.baseline, (struct text_row){.name = "skipped", .run = 1});
    add_row(&sides.current, (struct text_row){.name = "skipped", .run = 1, .status = "skipped", .median_us = ""});
    finish(&sides);
    assert_outcome(&sides, "broken", OUTCOME_NOT_OK);
    assert_int_equal(result_of(&sides, "broken")->problem.row->status, STATUS_MISMATCH);
    assert_outcome(&sides, "never", OUTCOME_NEVER_OK);
    assert_outcome(&sides, "mended", OUTCOME_NEW);
    assert_outcome(&sides, "skipped", OUTCOME_MISSING);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    end(&sides);
}

static void other_work_has_no_verdict(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "kept", 100, 100);
    add_runs(&sides.baseline, (struct text_row){.name = "grown"}, 5, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "grown", .bytes = "2048"}, 3, 200, 0.0);
    add_runs(&sides.baseline, (struct text_row){.name = "unsaid", .bytes = ""}, 5, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "unsaid"}, 3, 100, 0.0);
    finish(&sides);
    assert_outcome(&sides, "grown", OUTCOME_WORK_CHANGED);
    assert_verdict(&sides, "unsaid", VERDICT_SAME);
    assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
    end(&sides);
}

static void modes_are_cases_of_their_own(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_runs(&sides.baseline, (struct text_row){.mode = "cold"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.mode = "hot"}, 3, 50, 0.0);
    finish(&sides);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_MISSING), 1);
    assert_int_equal(count_outcomes(&sides.compared.comparison, OUTCOME_NEW), 1);
    assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
    end(&sides);
}

/* Schema 1's cold is schema 2's dirty: never compared with its cold. */
static void flushes_are_not_compared(void **state)
{
    (void)state;
    struct sides sides = begin();
    const char *modes[] = {"cold", "graph", "hot"};
    for (int i = 0; i < 2; i++) {
        add_runs(&sides.baseline, (struct text_row){.schema = "1", .name = modes[i], .mode = modes[i]}, 3, 100, 0.0);
        add_runs(&sides.current, (struct text_row){.name = modes[i], .mode = modes[i]}, 3, 50, 0.0);
    }
    finish(&sides);
    assert_int_equal(sides.compared.comparison.common, 0);
    assert_int_equal(sides.compared.comparison.other_flushes, 4);
    assert_int_equal(status_of(&sides), EXIT_CANNOT_JUDGE);
    assert_string_equal(sides.compared.comparison.results[0].other_flush, "cold");
    assert_string_equal(sides.compared.comparison.results[1].other_flush, "graph");
    assert_string_equal(sides.compared.comparison.results[2].other_flush, "dirty");
    assert_string_equal(sides.compared.comparison.results[3].other_flush, "dirty-graph");
    compared_free(&sides.compared);

    add_runs(&sides.baseline, (struct text_row){.schema = "1", .name = "hot", .mode = "hot"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "hot", .mode = "hot"}, 3, 100, 0.0);
    add_runs(&sides.current, (struct text_row){.name = "cold", .mode = "dirty", .campaign = "d"}, 3, 100, 0.0);
    finish(&sides);
    assert_verdict(&sides, "hot", VERDICT_SAME);
    assert_verdict(&sides, "cold", VERDICT_SAME);
    assert_int_equal(sides.compared.comparison.common, 2);
    end(&sides);
}

/* More is better for a throughput, and a case without one is no fault. */
static void throughputs(void **state)
{
    (void)state;
    struct sides sides = begin();
    for (unsigned run = 0; run < 5; run++) {
        add_row(&sides.baseline, (struct text_row){.name = "less", .run = run, .gb_per_s = "100"});
        add_row(&sides.current, (struct text_row){.name = "less", .run = run, .gb_per_s = "80"});
        add_row(&sides.baseline, (struct text_row){.name = "more", .run = run, .gb_per_s = "100"});
        add_row(&sides.current, (struct text_row){.name = "more", .run = run, .gb_per_s = "125"});
        add_row(&sides.baseline, (struct text_row){.name = "none", .run = run});
        add_row(&sides.current, (struct text_row){.name = "none", .run = run});
    }
    struct settings settings = usual_settings();
    settings.metric = find_metric("gb_per_s");
    finish_with(&sides, settings);
    assert_verdict(&sides, "less", VERDICT_SLOWER);
    assert_verdict(&sides, "more", VERDICT_FASTER);
    assert_outcome(&sides, "none", OUTCOME_NOT_APPLICABLE);
    assert_int_equal(sides.compared.comparison.suites, 1);
    assert_int_equal(result_of(&sides, "more")->judgement.family, 2);
    struct ratio ratio = metric_ratio(result_of(&sides, "less"), settings.metric);
    assert_true(fabs(ratio.value - 0.8) < 1e-12 && ratio.low <= ratio.value && ratio.value <= ratio.high);
    assert_int_equal(status_of(&sides), EXIT_WORSE);
    end(&sides);
}

/* A case's own number: more of a rate is better, less of a count. */
static void counters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *old, *new, *metric;
        enum verdict verdict;
    } cases[] = {
        {"rate-less", "steps=5 tokens/s=100", "tokens/s=80", "tokens/s", VERDICT_SLOWER},
        {"rate-more", "tokens/s=1e2 steps=5", "tokens/s=125", "tokens/s", VERDICT_FASTER},
        {"count-less", "steps=100 my-steps=1", "my-steps=9 steps=80", "steps", VERDICT_FASTER},
        {"count-more", "steps=100", "steps=125", "steps", VERDICT_SLOWER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sides sides = begin();
        for (unsigned run = 0; run < 5; run++) {
            add_row(&sides.baseline, (struct text_row){.name = cases[i].name, .run = run, .counters = cases[i].old});
            add_row(&sides.current, (struct text_row){.name = cases[i].name, .run = run, .counters = cases[i].new});
            add_row(&sides.baseline, (struct text_row){.name = "none", .run = run, .counters = "kernels=3"});
            add_row(&sides.current, (struct text_row){.name = "none", .run = run});
        }
        struct metric metric = counter_metric(cases[i].metric);
        struct settings settings = usual_settings();
        settings.metric = &metric;
        finish_with(&sides, settings);
        assert_verdict(&sides, cases[i].name, cases[i].verdict);
        assert_outcome(&sides, "none", OUTCOME_NOT_APPLICABLE);
        end(&sides);
    }
}

/* A suite's verdicts are the same whatever stands beside it. */
static void suites_are_families_of_their_own(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "a", 100, 100);
    add_both(&sides, "b", 100, 100);
    char *suite = strstr(sides.current.bytes, "suite,b");
    for (char *at = sides.baseline.bytes; (at = strstr(at, "suite,b")); at++)
        memcpy(at, "other", 5);
    for (; (suite = strstr(suite, "suite,b")); suite++)
        memcpy(suite, "other", 5);
    finish(&sides);
    assert_int_equal(sides.compared.comparison.suites, 2);
    assert_int_equal(result_of(&sides, "a")->judgement.family, 1);
    assert_int_equal(result_of(&sides, "b")->judgement.family, 1);
    end(&sides);
}

static void filters(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "wanted", 100, 100);
    add_both(&sides, "other", 100, 200);
    regex_t filter;
    assert_int_equal(regcomp(&filter, "^suite want.* cold$", REG_EXTENDED | REG_NOSUB), 0);
    struct settings settings = usual_settings();
    settings.filter = &filter;
    finish_with(&sides, settings);
    assert_int_equal(sides.compared.comparison.count, 1);
    assert_verdict(&sides, "wanted", VERDICT_SAME);
    regfree(&filter);
    end(&sides);
}

/* Ten runs against three that spread by 3 %: the interval is wider than the margin. */
static void add_noisy(struct sides *sides, const char *name, double change)
{
    static const double noise[] = {0.97, 1.03, 1.0};
    for (unsigned run = 0; run < 12; run++) {
        char text[32];
        snprintf(text, sizeof text, "%.6g", 100 * noise[run % 3] * (run < 9 ? 1.0 : change));
        add_row(run < 9 ? &sides->baseline : &sides->current,
                (struct text_row){.name = name,
                                  .campaign = run < 9 ? "old" : "new",
                                  .run = run + 1,
                                  .median_us = text});
    }
}

/* A screen lets pass what is neither slower nor surely the same, up to its limit;
 * what is worse by more stays open, for a race. */
static void a_screen(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_noisy(&sides, "better", 0.985);
    add_noisy(&sides, "equal", 1.0);
    add_noisy(&sides, "at-most", 1.019);
    add_noisy(&sides, "beyond", 1.021);
    add_both(&sides, "steady", 100, 100);
    add_both(&sides, "slow", 100, 120);
    struct settings settings = usual_settings();
    settings.screen = 0.02;
    finish_with(&sides, settings);
    assert_verdict(&sides, "better", VERDICT_PASSED);
    assert_verdict(&sides, "equal", VERDICT_PASSED);
    assert_verdict(&sides, "at-most", VERDICT_PASSED);
    assert_verdict(&sides, "beyond", VERDICT_INCONCLUSIVE);
    assert_verdict(&sides, "steady", VERDICT_SAME);
    assert_verdict(&sides, "slow", VERDICT_SLOWER);
    end(&sides);
}

static void far_runs_are_named(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    add_row(&sides.baseline, (struct text_row){.run = 50, .median_us = "1000"});
    add_row(&sides.current, (struct text_row){.campaign = "new", .run = 50, .median_us = "1000"});
    finish(&sides);
    const struct comparison *comparison = &sides.compared.comparison;
    assert_int_equal(comparison->far_count, 2);
    assert_true(comparison->far_runs[0].in_baseline);
    assert_int_equal(comparison->far_runs[0].row->line, 12);
    assert_false(comparison->far_runs[1].in_baseline);
    assert_int_equal(comparison->far_runs[1].row->line, 5);
    assert_int_equal(result_of(&sides, "copy")->evidence.current_runs, 4);
    assert_int_equal(result_of(&sides, "copy")->evidence.baseline_runs, 10);
    assert_verdict(&sides, "copy", VERDICT_INCONCLUSIVE);
    end(&sides);
}

static void provenance_differences(void **state)
{
    (void)state;
    struct sides sides = begin();
    add_both(&sides, "copy", 100, 100);
    char *driver = strstr(sides.current.bytes, ",580\n");
    memcpy(driver, ",590\n", 5);
    finish(&sides);
    assert_string_equal(provenance_only_in(&sides.compared.current, &sides.compared.baseline, PROVENANCE_DRIVER), "590");
    assert_null(provenance_only_in(&sides.compared.current, &sides.compared.baseline, PROVENANCE_UUID));
    assert_null(provenance_only_in(&sides.compared.current, &sides.compared.baseline, PROVENANCE_CUDA_RUNTIME));
    end(&sides);
}

/* Three campaigns that differ by 2 %; the variants share them. */
static void variants_against_the_first(void **state)
{
    (void)state;
    struct sides sides = begin();
    const char *campaigns[] = {"a", "b", "c"};
    const double level[] = {98, 100, 102};
    for (int i = 0; i < 3; i++) {
        struct text_row row = {.name = "attention", .campaign = campaigns[i]};
        row.variant = "naive";
        add_runs(&sides.baseline, row, 4, level[i], 0.001);
        row.variant = "tiled";
        add_runs(&sides.baseline, row, 4, level[i] * 0.9, 0.001);
        row.variant = "slow";
        add_runs(&sides.baseline, row, 4, level[i] * 1.05, 0.001);
        row.params = "n=2";
        add_runs(&sides.baseline, row, 4, level[i], 0.001);
    }
    finish(&sides);
    struct comparison variants;
    assert_true(compare_variants(&variants, &sides.compared.settings, &sides.compared.catalogue,
                                 &sides.compared.baseline));
    assert_int_equal(variants.count, 2);
    assert_int_equal(variants.results[0].judgement.verdict, VERDICT_FASTER);
    assert_int_equal(variants.results[1].judgement.verdict, VERDICT_SLOWER);
    assert_int_equal(comparison_status(&variants), EXIT_FINE);
    comparison_free(&variants);
    end(&sides);
}

static void self_of(struct sides *sides, struct self_result *result)
{
    finish(sides);
    assert_true(self_compare(result, &sides->compared.settings, &sides->compared.catalogue, &sides->compared.baseline));
}

/* 6 runs have 20 halves. Without any change none raises an alarm. */
static void self_of_steady_runs(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.name = "a"}, 6, 100, 0.001);
    add_runs(&sides.baseline, (struct text_row){.name = "b"}, 6, 3, 0.005);
    add_runs(&sides.baseline, (struct text_row){.name = "few"}, 3, 3, 0.01);
    self_of(&sides, &result);
    assert_int_equal(result.runs, 6);
    assert_int_equal(result.splits, 20);
    assert_true(result.every_split);
    assert_int_equal(result.case_count, 2);
    assert_int_equal(result.unusable, 1);
    assert_int_equal(result.cases[0].splits, 20);
    assert_int_equal(result.alarms, 0);
    assert_int_equal(result.campaigns, 0);
    assert_int_equal(self_status(&result), EXIT_FINE);
    self_free(&result);
    end(&sides);
}

/* Two kinds of runs 10 % apart: the two splits that part them are alarms in one
 * direction. A campaign that is slower than the others is found, too. */
static void self_of_two_kinds_of_runs(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.campaign = "fast"}, 4, 100, 0.0005);
    add_runs(&sides.baseline, (struct text_row){.campaign = "slow"}, 4, 110, 0.0005);
    self_of(&sides, &result);
    assert_int_equal(result.splits, 70);
    assert_true(result.alarms >= 1);
    assert_int_equal(result.cases[0].alarms, result.alarms);
    assert_int_equal(result.campaigns, 2);
    assert_int_equal(result.campaign_alarms, 1);
    assert_int_equal(self_status(&result), EXIT_WORSE);
    self_free(&result);
    end(&sides);
}

/* Cases of two suites come from other processes each: 4 runs have 6 halves, and
 * in none of them is one suite whole on one side. */
static void self_of_two_suites(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.name = "a", .campaign = "monday"}, 4, 100, 0.001);
    add_runs(&sides.baseline, (struct text_row){.name = "b", .campaign = "tuesday"}, 4, 3, 0.001);
    self_of(&sides, &result);
    assert_int_equal(result.runs, 4);
    assert_int_equal(result.splits, 6);
    assert_int_equal(result.cases[0].splits, 6);
    assert_int_equal(result.cases[1].splits, 6);
    assert_int_equal(result.campaigns, 0);
    self_free(&result);
    end(&sides);
}

static void self_of_many_runs_draws_splits(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.name = "a"}, 30, 100, 0.003);
    self_of(&sides, &result);
    assert_false(result.every_split);
    assert_int_equal(result.splits, 4000);
    assert_int_equal(result.alarms, 0);
    self_free(&result);
    end(&sides);
}

/* C2 */
static void self_of_an_invalid_row(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.name = "a"}, 6, 100, 0.001);
    add_row(&sides.baseline, (struct text_row){.name = "b", .run = 1, .median_us = ""});
    self_of(&sides, &result);
    assert_int_equal(result.invalid->line, 8);
    assert_int_equal(self_status(&result), EXIT_CANNOT_JUDGE);
    self_free(&result);
    end(&sides);
}

static void self_of_too_few_runs(void **state)
{
    (void)state;
    struct sides sides = begin();
    struct self_result result;
    add_runs(&sides.baseline, (struct text_row){.name = "a"}, 3, 100, 0.001);
    self_of(&sides, &result);
    assert_non_null(result.refusal);
    assert_int_equal(self_status(&result), EXIT_CANNOT_JUDGE);
    self_free(&result);
    end(&sides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_and_new_cases),
        cmocka_unit_test(new_cases_do_not_fail),
        cmocka_unit_test(no_common_case),
        cmocka_unit_test(a_run_twice_is_refused),
        cmocka_unit_test(a_campaign_is_of_one_card),
        cmocka_unit_test(times_of_zero_and_less),
        cmocka_unit_test(invalid_on_one_side),
        cmocka_unit_test(other_devices),
        cmocka_unit_test(other_units),
        cmocka_unit_test(names_and_line_ends),
        cmocka_unit_test(fields_that_do_not_read),
        cmocka_unit_test(a_last_line_without_its_end),
        cmocka_unit_test(runs_that_lack_rows),
        cmocka_unit_test(columns_in_any_order),
        cmocka_unit_test(single_and_equal_runs),
        cmocka_unit_test(a_file_against_itself),
        cmocka_unit_test(cases_that_fail),
        cmocka_unit_test(other_work_has_no_verdict),
        cmocka_unit_test(modes_are_cases_of_their_own),
        cmocka_unit_test(flushes_are_not_compared),
        cmocka_unit_test(throughputs),
        cmocka_unit_test(counters),
        cmocka_unit_test(suites_are_families_of_their_own),
        cmocka_unit_test(filters),
        cmocka_unit_test(a_screen),
        cmocka_unit_test(far_runs_are_named),
        cmocka_unit_test(provenance_differences),
        cmocka_unit_test(variants_against_the_first),
        cmocka_unit_test(self_of_steady_runs),
        cmocka_unit_test(self_of_two_kinds_of_runs),
        cmocka_unit_test(self_of_two_suites),
        cmocka_unit_test(self_of_many_runs_draws_splits),
        cmocka_unit_test(self_of_an_invalid_row),
        cmocka_unit_test(self_of_too_few_runs),
    };
    return cmocka_run_group_tests_name("compare: comparison", tests, NULL, NULL);
}
