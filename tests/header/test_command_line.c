/* The command line of every program that includes gpubench.h: what is wrong is
 * refused with a message that names it, before anything is touched. */
#define _GNU_SOURCE
#include "support.h"

#define QUICK "--max-time", "0.01", "--min-samples", "3", "--warmup", "1"

/* Refused: status 2, a message, no file, no case set up. */
static void expect_refused(const char *const *arguments, const char *option, const char *value)
{
    const char *csv = support_path("refused.csv");
    outcome result;
    unlink(csv);
    result = support_run(arguments);
    support_expect_status(&result, 2);
    support_expect_text(result.err, option);
    support_expect_text(result.err, value);
    support_expect_text(result.err, "fixture: ");
    support_expect_no_text(result.err, "setup");
    assert_string_equal(result.out, "");
    assert_false(support_exists(csv));
    support_free_outcome(&result);
}

#define EXPECT_REFUSED(option, value, ...)                                                    \
    expect_refused((const char *const[]){"host", "--csv", support_path("refused.csv"),        \
                                         __VA_ARGS__, NULL},                                  \
                   option, value)

/* In both spellings: --option value and --option=value. */
static void expect_values_refused(const char *option, const char *const *values)
{
    char joined[128];
    for (; *values; values++) {
        EXPECT_REFUSED(option, *values, option, *values);
        snprintf(joined, sizeof joined, "%s=%s", option, *values);
        EXPECT_REFUSED(option, *values, joined);
    }
}

static const char *const no_counts[] = {"abc", "10x", "", "-5", "1e3", "99999999999", " 7", "7 ",
                                        "0x10", "1.5", "+3", "nan", "\xd9\xa3", NULL};
static const char *const no_numbers[] = {"nan", "NaN", "inf", "-5", "5%", "1e400", "0", "0.0", "",
                                         "abc", " 1", "1 ", "0,5", "0x1p3", "-0", "1e", NULL};
static const char *const zero[] = {"0", NULL};

static void sample_counts_are_checked(void **state)
{
    (void)state;
    expect_values_refused("--min-samples", no_counts);
    expect_values_refused("--min-samples", zero);
    expect_values_refused("--max-samples", no_counts);
    expect_values_refused("--max-samples", zero);
}

static void warmup_is_checked(void **state)
{
    outcome result = RUN("host", "--warmup", "0", "--max-time", "0.01", "--quiet");
    (void)state;
    expect_values_refused("--warmup", no_counts);
    support_expect_status(&result, 0); /* no warm-up is allowed */
    support_free_outcome(&result);
}

static void streams_are_checked(void **state)
{
    static const char *const too_many[] = {"29", NULL};
    outcome result = RUN("host", "--streams", "1", "--max-time", "0.01", "--quiet");
    (void)state;
    expect_values_refused("--streams", no_counts);
    expect_values_refused("--streams", zero);
    expect_values_refused("--streams", too_many);
    support_expect_status(&result, 0); /* the CPU has none */
    support_free_outcome(&result);
}

static void runs_are_checked(void **state)
{
    static const char *const too_many[] = {"1001", NULL};
    (void)state;
    expect_values_refused("--runs", no_counts);
    expect_values_refused("--runs", zero);
    expect_values_refused("--runs", too_many);
}

static void the_seed_is_checked(void **state)
{
    static const char *const bad[] = {"abc", "", "-1", "1e3", " 7", "0x10", "18446744073709551616",
                                      NULL};
    (void)state;
    expect_values_refused("--seed", bad);
}

static void numbers_are_checked(void **state)
{
    static const char *const above_100[] = {"100.5", NULL};
    static const char *const above_a_day[] = {"86401", NULL};
    (void)state;
    expect_values_refused("--precision", no_numbers);
    expect_values_refused("--precision", above_100);
    expect_values_refused("--max-time", no_numbers);
    expect_values_refused("--max-time", above_a_day);
    expect_values_refused("--timeout", no_numbers);
    expect_values_refused("--timeout", above_a_day);
}

static void the_device_is_checked(void **state)
{
    static const char *const bad[] = {"-1", "99", "0", "zero", "", "GPU", "CPU", "cpu ",
                                      "GPU-00000000-0000", "1e0", NULL};
    (void)state;
    expect_values_refused("--device", bad); /* the fixture was built without CUDA */
}

static void modes_are_checked(void **state)
{
    static const char *const bad[] = {"", "warm", "cold,", ",cold", "cold,cold", "cold,,hot",
                                      "COLD",
                                      "cold hot", "all,hot", "col", "coldhot", "cold;hot", NULL};
    (void)state;
    expect_values_refused("--mode", bad);
}

static void filters_are_checked(void **state)
{
    static const char *const bad[] = {"(", "[", "a{2,1}", "*(", NULL};
    static const char *const matchless[] = {"nothing", "^ast", "fast$", NULL};
    (void)state;
    expect_values_refused("--filter", bad);
    expect_values_refused("--filter", matchless); /* the line is "fast u8" */
    EXPECT_REFUSED("--filter", "nothing", "--filter", "nothing", "--list");
    EXPECT_REFUSED("--filter", "nothing", "--filter", "nothing", "--runs", "3");
    EXPECT_REFUSED("--filter", "nothing", "--set", "several", "--filter", "nothing");
}

static void options_without_their_value_are_refused(void **state)
{
    static const char *const takers[] = {
        "--filter", "--device", "--mode", "--precision", "--min-samples", "--max-samples",
        "--max-time", "--warmup", "--streams", "--runs", "--seed", "--campaign", "--timeout",
        "--set", "--scale"};
    outcome result = RUN("host", "--csv");
    size_t i;
    (void)state;
    for (i = 0; i < sizeof takers / sizeof takers[0]; i++)
        EXPECT_REFUSED(takers[i], "value", takers[i]);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv");
    support_free_outcome(&result);
}

static void flags_take_no_value(void **state)
{
    (void)state;
    EXPECT_REFUSED("--quiet", "yes", "--quiet=yes");
    EXPECT_REFUSED("--energy", "1", "--energy=1");
    EXPECT_REFUSED("--list", "all", "--list=all");
    EXPECT_REFUSED("--help", "me", "--help=me");
    EXPECT_REFUSED("--profile", "now", "--profile=now");
    EXPECT_REFUSED("--quiet", "", "--quiet=");
}

static void the_same_option_twice_is_refused(void **state)
{
    (void)state;
    EXPECT_REFUSED("--warmup", "twice", "--warmup", "3", "--warmup", "3");
    EXPECT_REFUSED("--warmup", "twice", "--warmup=3", "--warmup", "4");
    EXPECT_REFUSED("--csv", "twice", "--csv", support_path("refused.csv"));
    EXPECT_REFUSED("--quiet", "twice", "--quiet", "--quiet");
    EXPECT_REFUSED("--set", "twice", "--set", "healthy", "--set", "healthy");
}

static void unknown_options_are_refused(void **state)
{
    static const char *const unknown[] = {"--frobnicate", "--frobnicate=3", "-h", "-",
                                          "extra", "--warm", "--warmups", "--Quiet", "", "="};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        EXPECT_REFUSED(unknown[i], "unknown", unknown[i]);
    EXPECT_REFUSED("--frobnicate", "unknown", "--help", "--frobnicate");
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    EXPECT_REFUSED("--max-samples 5", "--min-samples 9", "--min-samples", "9", "--max-samples",
                   "5");
    EXPECT_REFUSED("--profile", "--csv", "--profile");
}

static void bad_queues_are_refused(void **state)
{
    (void)state;
    EXPECT_REFUSED("same u8", "twice", "--set", "twice");
    EXPECT_REFUSED("name", "case", "--set", "nameless");
    EXPECT_REFUSED("no case", "measure", "--set", "none");
    EXPECT_REFUSED("no case", "measure", "--set", "no-such-set");
}

/* ---- what is right is taken ---- */

/* Ends with status 0, having set up nothing. */
static outcome look_only(const char *const *arguments)
{
    outcome result = support_run(arguments);
    support_expect_status(&result, 0);
    assert_string_equal(result.err, "");
    return result;
}

#define LOOK_ONLY(...) look_only((const char *const[]){"host", __VA_ARGS__, NULL})

static void help_lists_every_option(void **state)
{
    static const char *const options[] = {
        "--help", "--list", "--filter REGEX", "--device", "--mode", "--precision", "--min-samples",
        "--max-samples", "--max-time", "--warmup", "--streams N", "--runs", "--seed",
        "--csv FILE|-", "--energy", "--quiet", "--profile", "--set NAME", "--scale N",
        "a number of this program's own"};
    outcome result = LOOK_ONLY("--help");
    size_t i;
    (void)state;
    for (i = 0; i < sizeof options / sizeof options[0]; i++)
        support_expect_text(result.out, options[i]);
    support_free_outcome(&result);
}

static void list_names_the_cases(void **state)
{
    outcome result = LOOK_ONLY("--list", "--set", "several");
    (void)state;
    assert_string_equal(result.out, "a u8\nb u8\nc u8\nd u8\ne u8\nf u8\n");
    support_free_outcome(&result);
    result = LOOK_ONLY("--list", "--set", "several", "--filter", "^[bd] ", "--runs", "3");
    assert_string_equal(result.out, "b u8\nd u8\n");
    support_free_outcome(&result);
}

static void list_writes_no_file(void **state)
{
    const char *csv = support_path("list.csv");
    outcome result = LOOK_ONLY("--list", "--csv", csv);
    (void)state;
    assert_false(support_exists(csv));
    support_free_outcome(&result);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (text = strstr(text, part); text; text = strstr(text + strlen(part), part))
        count++;
    return count;
}

static void list_as_json_tells_what_is_known_of_each_case(void **state)
{
    const char *json = support_path("list.json");
    const char *begin = "[\n{\"schema\": 2, \"suite\": \"fixture\", ";
    outcome result = LOOK_ONLY("--list", "--json", "-", "--set", "names", "--seed", "7");
    (void)state;
    assert_memory_equal(result.out, begin, strlen(begin));
    assert_int_equal(occurrences(result.out, "\"case\": \"=1+1\""), 1);
    assert_int_equal(occurrences(result.out, "\"bytes\": 4096, \"flops\": null"), 1);
    assert_int_equal(occurrences(result.out, "\"bytes\": null, \"flops\": 1000"), 1);
    assert_int_equal(occurrences(result.out, "\"bytes\": 4096, \"flops\": 1000"), 1);
    assert_int_equal(occurrences(result.out, "\"seed\": 7, "), 9);
    assert_int_equal(occurrences(result.out, "\"status\": null"), 9);
    support_free_outcome(&result);
    result = LOOK_ONLY("--list", "--json", json, "--set", "several", "--filter", "^[bd] ");
    assert_string_equal(result.out, "b u8\nd u8\n");
    support_free_outcome(&result);
    result.out = support_read(json);
    assert_int_equal(occurrences(result.out, "\"case\": "), 2);
    free(result.out);
}

static void both_spellings_are_taken(void **state)
{
    const char *csv = support_path("spelled.csv");
    char joined[300];
    outcome result;
    csv_table *table;
    (void)state;
    snprintf(joined, sizeof joined, "--csv=%s", csv);
    result = RUN("host", joined, "--max-time=0.01", "--warmup", "1", "--seed=5", "--mode=hot",
                 "--max-samples=7", "--campaign=a=b", "--quiet");
    support_expect_status(&result, 0);
    table = support_read_csv(csv);
    assert_string_equal(support_cell(table, 1, "seed"), "5");
    assert_string_equal(support_cell(table, 1, "mode"), "hot");
    assert_string_equal(support_cell(table, 1, "campaign"), "a=b");
    assert_true(strtoul(support_cell(table, 1, "samples"), NULL, 10) <= 7);
    support_free_csv(table);
    support_free_outcome(&result);
}

static void the_filter_chooses_cases(void **state)
{
    const char *csv = support_path("filtered.csv");
    outcome result = RUN("host", "--set", "several", "--filter", "^(a|f) u8$", "--csv", csv, QUICK);
    csv_table *table = support_read_csv(csv);
    (void)state;
    support_expect_status(&result, 0);
    assert_int_equal(table->row_count, 3);
    support_expect_measured(table, "a");
    support_expect_measured(table, "f");
    support_expect_no_text(result.err, "setup b");
    support_free_csv(table);
    support_free_outcome(&result);
}

static void quiet_is_quiet(void **state)
{
    outcome result = RUN("host", "--quiet", QUICK);
    (void)state;
    support_expect_status(&result, 0);
    assert_string_equal(result.out, "");
    assert_string_equal(result.err, "setup fast\nteardown fast\n"); /* the fixture's own */
    support_free_outcome(&result);
}

static void the_table_has_no_colours(void **state)
{
    outcome result = RUN("host", QUICK);
    (void)state;
    support_expect_status(&result, 0);
    support_expect_text(result.out, " median ");
    support_expect_text(result.out, "fast");
    support_expect_no_text(result.out, "\033");
    support_expect_no_text(result.err, "\033");
    support_free_outcome(&result);
}

/* A value comes from anywhere: of two lines none is a command, and the longest is shown whole. */
static void messages_show_values_as_text(void **state)
{
    char value[2000] = "(\033[2J\n ::error::x";
    outcome result;
    (void)state;
    memset(value + strlen(value), 'y', 1500);
    strcpy(value + 1500, "\aend");
    result = RUN("host", "--filter", value);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "fixture: --filter '(?[2J\n ?:error::xy");
    support_expect_text(result.err, "yyy?end'");
    support_free_outcome(&result);
}

static void profile_executes_each_case_once(void **state)
{
    outcome result = RUN("host", "--profile", "--set", "several", "--filter", "^c");
    (void)state;
    support_expect_status(&result, 0);
    assert_string_equal(result.err, "setup c\nteardown c\n");
    support_free_outcome(&result);
    result = RUN("host", "--profile", "--set", "failures", "--filter", "run-fails u8");
    support_expect_status(&result, 1);
    support_expect_text(result.err, "No space left on device");
    support_free_outcome(&result);
}

/* ---- options of the program's own ---- */

static void own_options_are_taken(void **state)
{
    outcome result = RUN("host", "--scale=3", "--quiet", QUICK);
    (void)state;
    support_expect_status(&result, 0);
    support_free_outcome(&result);
}

static void own_options_are_checked(void **state)
{
    static const char *const bad[] = {"abc", "-1", "1e3", NULL};
    (void)state;
    expect_values_refused("--scale", bad);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_counts_are_checked),
        cmocka_unit_test(warmup_is_checked),
        cmocka_unit_test(streams_are_checked),
        cmocka_unit_test(runs_are_checked),
        cmocka_unit_test(the_seed_is_checked),
        cmocka_unit_test(numbers_are_checked),
        cmocka_unit_test(the_device_is_checked),
        cmocka_unit_test(modes_are_checked),
        cmocka_unit_test(filters_are_checked),
        cmocka_unit_test(options_without_their_value_are_refused),
        cmocka_unit_test(flags_take_no_value),
        cmocka_unit_test(the_same_option_twice_is_refused),
        cmocka_unit_test(unknown_options_are_refused),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(bad_queues_are_refused),
        cmocka_unit_test(help_lists_every_option),
        cmocka_unit_test(list_names_the_cases),
        cmocka_unit_test(list_writes_no_file),
        cmocka_unit_test(list_as_json_tells_what_is_known_of_each_case),
        cmocka_unit_test(both_spellings_are_taken),
        cmocka_unit_test(the_filter_chooses_cases),
        cmocka_unit_test(quiet_is_quiet),
        cmocka_unit_test(the_table_has_no_colours),
        cmocka_unit_test(messages_show_values_as_text),
        cmocka_unit_test(profile_executes_each_case_once),
        cmocka_unit_test(own_options_are_taken),
        cmocka_unit_test(own_options_are_checked),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("command line", tests, NULL, NULL));
}
