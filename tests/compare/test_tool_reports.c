/* What the compare program says: warnings, histories, JSON. */
#define _XOPEN_SOURCE 700
#include "tool.h"

static void drivers_that_differ_are_warned_of(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "sed 's/,580$/,590/' '%s/same.csv' > '%s/driver.csv'", directory, directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(run("base.csv driver.csv"), 0);
    assert_says(output, "warning: driver differs: current has '590', the baseline '580'");
    assert_int_equal(run("--format csv base.csv driver.csv"), 0);
    assert_says(complaint, "warning: driver differs");
}

/* A copy of a file with a column that names the host's processor. */
static void add_processor(const char *from, const char *to, const char *processor)
{
    char command[600];
    snprintf(command, sizeof command, "sed -e '1s/$/,cpu/' -e '1!s/$/,%s/' '%s/%s' > '%s/%s'", processor, directory, from,
             directory, to);
    assert_int_equal(system(command), 0);
}

static void hosts_are_named(void **state)
{
    (void)state;
    add_processor("base.csv", "xeon.csv", "Xeon 9");
    add_processor("same.csv", "epyc.csv", "EPYC 7");
    assert_int_equal(run("xeon.csv epyc.csv"), 0);
    assert_says(output, "baseline: NVIDIA H100, 1 card, on Xeon 9, ");
    assert_says(output, "current: NVIDIA H100, 1 card, on EPYC 7, ");
    assert_says(output, "warning: host processor differs: current has 'EPYC 7', the baseline 'Xeon 9'");
    assert_int_equal(run("base.csv same.csv"), 0);
    assert_says(output, "baseline: NVIDIA H100, 1 card, 20 rows");
}

static void write_host(const char *name, const char *schema, const char *mode, double median_us, const char *overhead_us)
{
    struct text text = {0};
    add_header(&text);
    add_runs(&text, (struct text_row){.schema = schema, .mode = mode, .campaign = name, .overhead_us = overhead_us}, 5,
             median_us, 0.001);
    write_text(name, &text);
}

/* Old rows and new ones have no case in common; the message says what to do. */
static void other_flushes_are_named(void **state)
{
    (void)state;
    write_host("old.csv", "1", "cold", 11, "4.9");
    write_host("new.csv", "2", "cold", 10, "4.9");
    write_host("dirty.csv", "2", "dirty", 11, "4.9");
    assert_int_equal(run("old.csv new.csv"), 2);
    assert_says(complaint, "cannot judge: the two sides were measured behind different flushes, 1 case on each");
    assert_says(complaint, "so is cold in schema 1, as in old.csv");
    assert_says(complaint, "Measure the baseline again (make baseline-SUITE), or the current side with --mode dirty");
    assert_says(output, "the current results measured this case behind another flush of the caches only: mode cold");
    assert_says(output, "the baseline measured this case behind another flush of the caches only: mode dirty");
    assert_int_equal(run("old.csv dirty.csv"), 0);
    assert_int_equal(run("--baseline old.csv --current new.csv dirty.csv"), 0);
    assert_says(output, "2 cases: 1 same, 1 new in current");
}

static void the_constant_is_said(void **state)
{
    (void)state;
    write_host("here.csv", "2", "cold", 10, "3.02");
    write_host("there.csv", "2", "cold", 11.7, "4.72");
    assert_int_equal(run("here.csv there.csv"), 0);
    assert_says(output, "mode cold: an empty kernel takes 4.72 us in the current results, 3.02 us in the baseline: the "
                        "host's constant is taken out of every time; of 1 case 1 are beyond 2 % as measured, 0 without it");
    assert_int_equal(run("--keep-constant here.csv there.csv"), 1);
    assert_null(strstr(output, "constant"));
    write_host("tiny.csv", "2", "cold", 1.5, "4.72");
    assert_int_equal(run("--all here.csv tiny.csv"), 0);
    assert_says(output, "inconclusive");
    assert_says(output, "tiny.csv:2: of its 1.4985 us nothing is left without the 1.70 us that an empty kernel takes longer on its host");
    assert_int_equal(run("here.csv here.csv"), 0);
    assert_null(strstr(output, "constant"));
}

/* S14: twelve refreshes of 2 % each. */
static void a_baseline_that_drifts_is_said(void **state)
{
    (void)state;
    struct text text = {0};
    char campaign[8];
    double median_us = 100.0;
    add_header(&text);
    for (int i = 0; i <= 12; i++, median_us *= 1.02) {
        snprintf(campaign, sizeof campaign, "c%d", i);
        add_case(&text, "copy", campaign, 3, median_us);
    }
    write_text("drift.csv", &text);
    struct text now = {0};
    add_header(&now);
    add_case(&now, "copy", "now", 3, 100 * 1.268);
    write_text("now.csv", &now);
    assert_int_equal(run("drift.csv now.csv"), 0);
    assert_says(output, "warning: the baseline drifts: its newest campaign takes +26.8 % against its oldest (geometric "
                        "mean of 1 cases), 1 of them moved by more than 10 %");
    assert_int_equal(run("--oldest drift.csv now.csv"), 1);
    assert_null(strstr(output, "drifts"));
    assert_says(output, "note: the baseline holds 1 campaign:");
}

static void add_dated(struct text *text, const char *name, const char *month, const char *status, double median_us)
{
    char timestamp[32];
    snprintf(timestamp, sizeof timestamp, "2026-%s-01T00:00:00Z", month);
    struct text_row row = {.name = name, .campaign = month, .status = status, .timestamp = timestamp};
    if (strcmp(status, "ok") == 0)
        add_runs(text, row, 3, median_us, 0.001);
    else
        row.run = 1, row.median_us = "", add_row(text, row);
}

/* The oldest is the earliest that is ok, wherever it stands in the files. */
static void the_oldest_is_the_earliest(void **state)
{
    (void)state;
    struct text later = {0}, now = {0};
    add_header(&later);
    add_dated(&later, "copy", "02", "ok", 150);
    add_dated(&later, "copy", "01", "ok", 100);
    add_dated(&later, "grown", "01", "unsupported", 0);
    add_dated(&later, "grown", "02", "ok", 100);
    write_text("later.csv", &later);
    add_header(&now);
    add_dated(&now, "copy", "03", "ok", 150);
    add_dated(&now, "grown", "03", "ok", 150);
    write_text("dated.csv", &now);
    assert_int_equal(run("--filter copy later.csv dated.csv"), 0);
    assert_says(output, "its newest campaign takes +50.0 % against its oldest");
    assert_int_equal(run("--oldest --filter copy later.csv dated.csv"), 1);
    assert_int_equal(run("--oldest --filter grown later.csv dated.csv"), 1);
    assert_says(output, "1 case: 1 slower");
}

static void write_throttled(const char *name, unsigned runs)
{
    static const char *const flags[] = {"stop=precision throttle=sw-thermal", "throttle=power-cap fits-l2",
                                        "throttle=power-cap throttle=hw-slowdown"};
    struct text text = {0};
    add_header(&text);
    for (unsigned run = 0; run < runs; run++)
        add_row(&text, (struct text_row){.campaign = name, .run = run + 1, .flags = flags[run]});
    write_text(name, &text);
}

/* Large products run at the power cap on a good day too; heat is news. */
static void throttled_runs_are_counted(void **state)
{
    (void)state;
    write_throttled("hot.csv", 3);
    assert_int_equal(run("--all --subset base.csv hot.csv"), 0);
    assert_says(output, "10 runs against 1 run; left out, as the card was throttled: 0 of the baseline's runs, 2 of the current ones\n");
    write_throttled("one.csv", 1);
    assert_int_equal(run("--all one.csv hot.csv"), 2);
    assert_says(output, "one.csv:2: the card was throttled in every run of the baseline (by more than its power cap), so they tell nothing");
    assert_int_equal(run("base.csv same.csv"), 0);
    assert_null(strstr(output, "throttled"));
}

static void variants_and_self(void **state)
{
    (void)state;
    struct text text = {0};
    add_header(&text);
    add_runs(&text, (struct text_row){.variant = "naive"}, 6, 100, 0.002);
    add_runs(&text, (struct text_row){.variant = "tiled"}, 6, 50, 0.002);
    add_runs(&text, (struct text_row){.variant = "worse"}, 6, 150, 0.002);
    write_text("variants.csv", &text);
    assert_int_equal(run("--variants variants.csv"), 0);
    assert_says(output, "suite copy tiled cuda f32 n=1 cold (against naive)");
    assert_says(output, "2 cases: 1 slower, 1 faster\n");
    assert_int_equal(run("--self variants.csv"), 0);
    assert_says(output, "balanced splits, every one: 20; with a false alarm: 0 (0.00 %)");
    assert_says(output, "verdicts on single cases in them: 60; false alarms: 0 (0.000 %)");
    assert_int_equal(run("--self variants.csv --format csv"), 0);
    assert_says(output, "suite,copy,naive,cuda,f32,n=1,cold,6,20,0\n");
}

/* Six cards; the first is slower in the second case only, or in both. */
static void write_fleet(const char *name, double copy_us, double norm_us)
{
    static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5"};
    struct text text = {0};
    add_header(&text);
    for (int card = 0; card < 6; card++) {
        double factor = 1.0 + 0.001 * (card % 3);
        struct text_row row = {.name = "copy", .campaign = uuids[card], .uuid = uuids[card],
                               .node = card < 4 ? "rack 1" : ""};
        add_runs(&text, row, 3, card ? 100 * factor : copy_us, 0.002);
        row.name = "\"norm|<f,4>\"";
        add_runs(&text, row, 3, card ? 50 * factor : norm_us, 0.002);
    }
    add_runs(&text, (struct text_row){.device = "NVIDIA L4", .uuid = "GPU-9", .campaign = "l4"}, 3, 300, 0.002);
    write_text(name, &text);
}

/* Six hundred cards, of which so many are slower by a tenth. */
static void write_group(const char *name, int slower)
{
    struct text text = {0};
    char uuid[16];
    add_header(&text);
    for (int card = 0; card < 600; card++) {
        snprintf(uuid, sizeof uuid, "GPU-%03d", card);
        add_runs(&text, (struct text_row){.campaign = uuid, .uuid = uuid}, 1,
                 (card < slower ? 110 : 100) * (1.0 + 0.001 * (card % 7)), 0.0);
    }
    write_text(name, &text);
}

/* More than one in fifty, which would be thirteen, are another kind of host. */
static void a_group_is_not_accused(void **state)
{
    (void)state;
    write_group("five.csv", 5);
    assert_int_equal(run("--cards five.csv"), 1);
    assert_says(output, "600 cards, 5 odd;");
    assert_null(strstr(output, "stand apart"));
    write_group("thirty.csv", 30);
    assert_int_equal(run("--cards thirty.csv"), 0);
    assert_says(output, "600 cards, 0 odd;");
    assert_says(output, "30 cards stand apart, too many to be odd ones");
    assert_int_equal(run("--cards thirty.csv --format json"), 0);
    assert_says(output, "\"apart\":30");
}

static void odd_cards_are_named(void **state)
{
    (void)state;
    write_fleet("healthy.csv", 100, 50);
    assert_int_equal(run("--cards healthy.csv"), 0);
    assert_says(output, "NVIDIA H100: 6 cards, 0 odd; one that differed by ");
    assert_says(output, "NVIDIA L4: 1 card, cannot be judged");
    assert_null(strstr(output, "GPU-"));
    assert_int_equal(run("--all --cards healthy.csv"), 0);
    assert_says(output, "as the others      GPU-5 at 0000:01:00.0: cost +0.");

    /* The median card is 1.001 of the fastest: 1.1 / 1.001 and 1.2 / 1.001, as the
     * runs' medians stand 0.2 % above or below alike. */
    write_fleet("odd.csv", 110, 60);
    assert_int_equal(run("--cards odd.csv"), 1);
    assert_says(output, "1 odd;");
    assert_says(output, "odd                GPU-0 at 0000:01:00.0 of rack 1: cost +14.7");
    assert_says(output, "geometric mean of 2 cases in 6 runs\n");
    assert_says(output, "      +19.8");
    assert_says(output, "%  suite norm|<f,4> plain cuda f32 n=1 cold\n");
    assert_int_equal(run("--cards odd.csv --format csv"), 1);
    assert_says(output, "NVIDIA H100,GPU-0,0000:01:00.0,rack 1,odd,2,1.14");
    assert_says(output, ",suite,\"norm|<f,4>\",plain,cuda,f32,n=1,cold,3,1.19");
    assert_int_equal(run("--cards odd.csv --filter L4.nothing"), 2);
    assert_says(complaint, "no ok row");
    assert_int_equal(run("--cards base.csv"), 2);
    assert_says(complaint, "no model has three cards");
    assert_int_equal(run("--cards odd.csv --format github"), 2);
    assert_says(complaint, "--cards writes the formats text, csv and json");
}

/* Four campaigns, not in the order of time; the case is 10 % slower from the third on. */
static void write_history(const char *name, const char *device)
{
    struct text text = {0};
    add_header(&text);
    struct text_row row = {.campaign = "d", .git = "dddd", .timestamp = "2026-03-02T00:00:00Z"};
    add_runs(&text, row, 5, 110, 0.002);
    row = (struct text_row){.campaign = "b", .git = "bbbb", .timestamp = "2026-02-28T23:59:59Z"};
    add_runs(&text, row, 5, 100, 0.002);
    row = (struct text_row){.campaign = "a", .git = "aaaa", .timestamp = "2025-12-31T12:00:00Z"};
    add_runs(&text, row, 5, 100, 0.002);
    row = (struct text_row){.campaign = "c", .git = "cccc", .timestamp = "2026-03-01T00:00:00Z", .device = device};
    add_runs(&text, row, 5, 110, 0.002);
    row = (struct text_row){.campaign = "c", .name = "once"};
    add_runs(&text, row, 5, 110, 0.002);
    write_text(name, &text);
}

static void changes_have_dates_and_revisions(void **state)
{
    (void)state;
    write_history("history.csv", NULL);
    assert_int_equal(run("--history history.csv"), 0);
    assert_says(output, "cases of two campaigns or more: 1; changed: 1; changes in all: 1\n");
    assert_says(output, "suite copy plain cuda f32 n=1 cold\n");
    assert_says(output, "▁▁██  cost +10.00 % from first to last, 4 campaigns, runs from 99.80 to 110.2 us\n");
    assert_says(output, "cost +10.00 %, 99.80 -> 109.8 us\n"
                        "      at    2026-03-01T00:00:00Z, revision cccc, campaign 'c'\n"
                        "      after 2026-02-28T23:59:59Z, revision bbbb, campaign 'b'\n");
    assert_says(output, "note: cases with but one campaign: 1\n");
    assert_says(output, "note: cases with fewer than five campaigns");
    assert_int_equal(run("--history history.csv --format csv"), 0);
    assert_says(output, "cold,b,2026-02-28T23:59:59Z,bbbb,median_us,5,99.8,99.8,100.2,99.8,,0\n");
    assert_says(output, "cold,c,2026-03-01T00:00:00Z,cccc,median_us,5,");
    assert_int_equal(run("--history base.csv"), 2);
    assert_says(complaint, "is ok in two campaigns");
    assert_int_equal(run("--history base.csv slow.csv"), 0);
    assert_says(output, "cost +49.70 %");
    assert_says(output, "for lack of a timestamp: 2\n");
    write_history("mixed.csv", "NVIDIA L4");
    assert_int_equal(run("--history mixed.csv"), 2);
    assert_says(complaint, "mixed.csv:17: column 'device': 'NVIDIA L4'");
    assert_int_equal(run("--history mixed.csv --ignore-device"), 0);
    assert_int_equal(run("--history history.csv --format github"), 2);
    assert_says(complaint, "--history writes the formats text, csv and json");
}

/* Nine campaigns, of which the fourth is alone and the last may be. */
static void one_sitting_is_not_sure(void **state)
{
    (void)state;
    static const double times[] = {100, 100, 100, 150, 100, 100, 100, 100, 110};
    struct text text = {0};
    char name[2] = "a", day[] = "2026-03-01T00:00:00Z";
    add_header(&text);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        struct text_row row = {.campaign = name, .git = "abcd", .timestamp = day};
        add_runs(&text, row, 5, times[i], 0.002);
        name[0]++;
        day[9]++;
    }
    write_text("lone.csv", &text);
    assert_int_equal(run("--history lone.csv"), 0);
    assert_says(output, "changed: 1; changes in all: 1\n");
    assert_says(output, "revision abcd, campaign 'i'\n");
    assert_says(output, "campaign 'h'\n      not yet sure: 1 campaign since\n");
    assert_says(output, "alone: 149.7 us in 2026-03-04T00:00:00Z, revision abcd, campaign 'd', unlike");
}

static bool has_python(void)
{
    return system("command -v python3 >/dev/null") == 0;
}

/* Whether the expression holds of d, the object in out.txt, and a, b, ... its cases. */
static void assert_json(const char *expression)
{
    char command[1024];
    if (!has_python())
        return;
    snprintf(command, sizeof command,
             "cd '%s' && python3 -c 'import json; d = json.load(open(\"out.txt\", encoding=\"utf-8\"), "
             "parse_constant=lambda c: 1 / 0); assert %s'",
             directory, expression);
    if (system(command) != 0)
        fail_msg("'%s' does not hold of '%s'", expression, output);
}

static void json_reads_back(void **state)
{
    (void)state;
    assert_int_equal(run("base.csv slow.csv --format json"), 1);
    assert_says(output, "{\"format\":1,\n\"status\":1,\n\"totals\":{\"cases\":2,\"slower\":1,");
    assert_json("d[\"totals\"][\"same\"] == 1 and len(d[\"cases\"]) == 2");
    assert_json("d[\"settings\"][\"margin\"] == 0.02 and d[\"settings\"][\"metric\"] == \"median_us\"");
    assert_json("d[\"baseline\"][\"files\"] == [\"base.csv\"] and d[\"current\"][\"processes\"] == 6");
    assert_json("d[\"current\"][\"devices\"] == [\"NVIDIA H100\"] and d[\"current\"][\"uuid\"] == [\"GPU-1\"]");
    assert_json("abs(d[\"cases\"][1][\"ratio\"] - 1.499) < 0.001 and d[\"cases\"][1][\"baseline_runs\"] == 10");
    assert_json("d[\"cases\"][1][\"case\"] == \"norm|<f,4>\" and d[\"cases\"][1][\"verdict\"] == \"SLOWER\"");
    assert_json("d[\"cases\"][1][\"campaign_spread\"] is None and d[\"race\"] is None");
}

/* The other reports say in JSON what their CSV says. */
static void json_of_every_report(void **state)
{
    (void)state;
    assert_int_equal(run("--self base.csv --format json"), 0);
    assert_json("d[\"format\"] == 1 and d[\"status\"] == 0 and d[\"splits\"] == 252 and d[\"every_split\"]");
    assert_json("[c[\"runs\"] for c in d[\"cases\"]] == [10, 10] and d[\"cases\"][1][\"case\"] == \"norm|<f,4>\"");
    write_fleet("json-fleet.csv", 110, 60);
    assert_int_equal(run("--cards json-fleet.csv --format json"), 1);
    assert_json("d[\"status\"] == 1 and [len(m[\"cards\"]) for m in d[\"models\"]] == [6, 1]");
    assert_json("d[\"models\"][0][\"cards\"][0][\"verdict\"] == \"odd\" and d[\"models\"][1][\"findable\"] is None");
    assert_json("abs(d[\"models\"][0][\"cards\"][0][\"cases\"][0][\"cost_ratio\"] - 1.1 / 1.001) < 0.003");
    assert_json("d[\"models\"][1][\"cards\"][0][\"cost_ratio\"] is None");
    assert_json("[c[\"node\"] for c in d[\"models\"][0][\"cards\"]] == 4 * [\"rack 1\"] + 2 * [None]");
    assert_json("d[\"models\"][0][\"apart\"] == 0");
    write_history("json-history.csv", NULL);
    assert_int_equal(run("--history json-history.csv --format json"), 0);
    assert_json("[p[\"git\"] for p in d[\"cases\"][0][\"campaigns\"]] == [\"aaaa\", \"bbbb\", \"cccc\", \"dddd\"]");
    assert_json("d[\"cases\"][0][\"changes\"][0][\"at\"] == 2 and len(d[\"cases\"][0][\"changes\"]) == 1");
    assert_json("abs(d[\"cases\"][0][\"changes\"][0][\"cost_ratio\"] - 1.1) < 0.001");
    assert_json("d[\"cases\"][0][\"campaigns\"][2][\"timestamp\"] == \"2026-03-01T00:00:00Z\"");
    assert_int_equal(run("--history base.csv slow.csv --format json"), 0);
    assert_json("d[\"cases\"][0][\"campaigns\"][0][\"timestamp\"] is None");
    assert_int_equal(run("--self base.csv --format github"), 2);
    assert_says(complaint, "--self writes the formats text, markdown, csv and json");
}

/* Names with every kind of character, and bytes that are none; a case without numbers. */
static void odd_names_are_valid_json(void **state)
{
    (void)state;
    struct text text = {0};
    add_header(&text);
    add_case(&text, "\"q\"\"\\\t\033\177\303\251\360\237\230\200\"", "c1", 1, 100);
    add_case(&text, "bad\377\303\355\240\200\300\200\364\220\200\200end", "c1", 1, 100);
    write_text("names.csv", &text);
    assert_int_equal(run("base.csv names.csv --subset --format json"), 2);
    assert_int_equal(run("names.csv names.csv --format json"), 0);
    assert_says(output, "\"q\\\"\\\\\\u0009\\u001b\\u007f\303\251\360\237\230\200\"");
    assert_json("d[\"cases\"][0][\"case\"] == \"q\\\"\\\\\\t\\x1b\\x7f\\xe9\\U0001f600\"");
    assert_json("d[\"cases\"][1][\"case\"] == \"bad\" + 11 * \"\\ufffd\" + \"end\"");
    assert_json("d[\"cases\"][0][\"ratio_low\"] is None and d[\"cases\"][0][\"ratio\"] == 1");
    assert_int_equal(run("same.csv base.csv --filter norm --format json"), 0);
    write_side("half.csv", "new", 3, 100, 0);
    assert_int_equal(run("base.csv half.csv --format json"), 2);
    assert_json("d[\"status\"] == 2 and d[\"cases\"][1][\"verdict\"] == \"invalid\"");
    assert_json("d[\"cases\"][1][\"ratio\"] is None and d[\"cases\"][1][\"baseline_runs\"] is None");
    assert_json("\"cannot be 0\" in d[\"cases\"][1][\"reason\"]");
}

/* O10: the tool reads and writes points whatever the user's locale. */
static void the_locale_changes_nothing(void **state)
{
    (void)state;
    static char before[sizeof output];
    assert_int_equal(run("base.csv slow.csv"), 1);
    strcpy(before, output);
    assert_int_equal(run_with("LC_ALL=de_DE.UTF-8", "base.csv slow.csv"), 1);
    assert_string_equal(output, before);
}

/* Names from a file do not steer a terminal. */
static void control_characters_stay_out(void **state)
{
    (void)state;
    struct text text = {0};
    add_header(&text);
    add_case(&text, "\"red\033[31m\tline\"", "c1", 3, 100);
    write_text("control.csv", &text);
    assert_int_equal(run("--all control.csv control.csv"), 0);
    assert_null(strchr(output, '\033'));
    assert_says(output, "suite red?[31m?line plain");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        tool = argv[1];
    static char absolute[4096];
    if (!realpath(tool, absolute)) {
        fprintf(stderr, "%s: no such program\n", tool);
        return 2;
    }
    tool = absolute;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_that_differ_are_warned_of),
        cmocka_unit_test(hosts_are_named),
        cmocka_unit_test(other_flushes_are_named),
        cmocka_unit_test(the_constant_is_said),
        cmocka_unit_test(a_baseline_that_drifts_is_said),
        cmocka_unit_test(the_oldest_is_the_earliest),
        cmocka_unit_test(throttled_runs_are_counted),
        cmocka_unit_test(variants_and_self),
        cmocka_unit_test(odd_cards_are_named),
        cmocka_unit_test(a_group_is_not_accused),
        cmocka_unit_test(changes_have_dates_and_revisions),
        cmocka_unit_test(one_sitting_is_not_sure),
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(json_of_every_report),
        cmocka_unit_test(odd_names_are_valid_json),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(control_characters_stay_out),
    };
    return cmocka_run_group_tests_name("compare: the program", tests, write_files, remove_files);
}
