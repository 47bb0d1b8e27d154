/* The compare tool's command line: what each option sets, up to which values, and what is
 * said where one cannot be. */
#define _POSIX_C_SOURCE 200809L

#include "../../compare/options.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* One command line, and what came of it; the words stay while the options are looked at. */
struct parsed {
    char text[1024];
    const char *words[MOST_WORDS];
    int count;
    struct options options;
    char error[options_error_capacity];
    bool complete;
};

/* The words are separated by blanks; '' stands for an empty one. */
static struct parsed *parse(const char *line)
{
    static struct parsed parsed;
    memset(&parsed, 0, sizeof parsed);
    assert_true(strlen(line) < sizeof parsed.text);
    strcpy(parsed.text, line);
    parsed.words[parsed.count++] = "gpubench-compare";
    char *rest = NULL;
    for (char *word = strtok_r(parsed.text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(parsed.count < MOST_WORDS);
        parsed.words[parsed.count++] = strcmp(word, "''") ? word : "";
    }
    parsed.complete = parse_options(&parsed.options, parsed.count, parsed.words, parsed.error);
    return &parsed;
}

static const struct options *taken(const char *line)
{
    struct parsed *parsed = parse(line);
    if (!parsed->complete)
        fail_msg("[%s] says '%s'", line, parsed->error);
    return &parsed->options;
}

static void assert_refused(const char *line, const char *error)
{
    struct parsed *parsed = parse(line);
    if (parsed->complete)
        fail_msg("[%s] is taken", line);
    if (strcmp(parsed->error, error) != 0)
        fail_msg("[%s] says '%s', not '%s'", line, parsed->error, error);
}

static void what_holds_without_options(void **state)
{
    (void)state;
    const struct options *options = taken("a.csv b.csv");
    assert_int_equal(options->mode, MODE_COMPARE);
    assert_int_equal(options->baseline.count, 1);
    assert_string_equal(options->baseline.items[0], "a.csv");
    assert_int_equal(options->current.count, 1);
    assert_string_equal(options->current.items[0], "b.csv");
    assert_true(options->settings.rule.margin == 0.02);
    assert_true(options->settings.rule.confidence == 0.95);
    assert_true(options->settings.rule.false_alarms == 0.01);
    assert_true(options->settings.rule.threshold == 0.05);
    assert_true(options->settings.screen == 0.0);
    assert_ptr_equal(options->settings.metric, find_metric("median_us"));
    assert_false(options->settings.subset || options->settings.ignore_device ||
                 options->settings.keep_constant);
    assert_false(options->oldest || options->listing.all);
    assert_int_equal(options->format, FORMAT_TEXT);
    assert_int_equal(options->listing.sort, SORT_CHANGE);
    assert_int_equal(options->listing.limit, 15);
    assert_true(options->listing.screen);
    assert_true(options->timeout_s == 3600.0);
    assert_null(options->filter);
    assert_null(options->output);
    assert_null(options->only);
    assert_null(options->arguments.items);
}

/* The bounds themselves are taken, and what is beyond them is not. */
static void percentages_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset; /* of what is set in the options */
        const char *lowest, *highest, *below, *above;
        double low, high;
        const char *from, *to;
    } cases[] = {
        {"--margin", offsetof(struct options, settings.rule.margin), "0", "1000", "-0.001",
         "1000.001", 0.0, 10.0, "0", "1000"},
        {"--confidence", offsetof(struct options, settings.rule.confidence), "50.1", "99.9999",
         "50.09", "99.99991", 0.501, 0.999999, "50.1", "99.9999"},
        {"--false-alarms", offsetof(struct options, settings.rule.false_alarms), "0.0001", "49",
         "0.00009", "49.001", 0.000001, 0.49, "0.0001", "49"},
        {"--screen", offsetof(struct options, settings.screen), "0", "1000", "-1", "1001", 0.0,
         10.0, "0", "1000"},
        {"--threshold", offsetof(struct options, settings.rule.threshold), "0", "1000", "-1",
         "1001", 0.0, 10.0, "0", "1000"},
    };
    char line[200], error[300];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *given[] = {cases[i].lowest, cases[i].highest};
        const double wanted[] = {cases[i].low, cases[i].high};
        for (int k = 0; k < 2; k++) {
            snprintf(line, sizeof line, "%s %s a b", cases[i].name, given[k]);
            double value = *(const double *)((const char *)taken(line) + cases[i].offset);
            assert_true(value > wanted[k] - 1e-15 && value < wanted[k] + 1e-15);
        }
        const char *refused[] = {cases[i].below, cases[i].above, "1,5", "''"};
        for (int k = 0; k < 4; k++) {
            snprintf(line, sizeof line, "%s %s a b", cases[i].name, refused[k]);
            snprintf(error, sizeof error, "%s: '%s' is not a number of percent from %s to %s",
                     cases[i].name, strcmp(refused[k], "''") ? refused[k] : "", cases[i].from,
                     cases[i].to);
            assert_refused(line, error);
        }
    }
}

static void seconds_have_bounds(void **state)
{
    (void)state;
    assert_true(taken("--timeout 1e6 --race a b")->timeout_s == 1e6);
    assert_true(taken("--race a b --timeout=0.25")->timeout_s == 0.25);
    assert_true(taken("--race a b --race-seconds 90")->race_s == 90);
    assert_true(isinf(taken("--race a b")->race_s));
    static const char *const refused[] = {"0", "-1", "1000001", "soon"};
    char line[100], error[200];
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(line, sizeof line, "--timeout %s --race a b", refused[i]);
        snprintf(error, sizeof error,
                 "--timeout: '%s' is not a number of seconds above 0 and up to 1e6", refused[i]);
        assert_refused(line, error);
    }
}

static void words_of_a_list(void **state)
{
    (void)state;
    static const char *const formats[] = {"text", "markdown", "csv", "github", "json"};
    static const enum format known_formats[] = {FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_CSV,
                                                FORMAT_GITHUB, FORMAT_JSON};
    static const char *const sorts[] = {"change", "name", "file"};
    static const enum sort known_sorts[] = {SORT_CHANGE, SORT_NAME, SORT_FILE};
    char line[100];
    for (int i = 0; i < 5; i++) {
        snprintf(line, sizeof line, "--format %s a b", formats[i]);
        assert_int_equal(taken(line)->format, known_formats[i]);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "--sort=%s a b", sorts[i]);
        assert_int_equal(taken(line)->listing.sort, known_sorts[i]);
    }
    assert_refused("--format html a b",
                   "--format: 'html' is none of text, markdown, csv, github, json");
    assert_refused("--sort size a b", "--sort: 'size' is none of change, name, file");
    assert_ptr_equal(taken("--metric gb_per_s a b")->settings.metric, find_metric("gb_per_s"));
    const struct options *options = taken("--metric tokens/s a b");
    assert_ptr_equal(options->settings.metric, &options->counter);
    assert_string_equal(options->counter.column, "tokens/s");
    assert_true(options->counter.is_counter && options->counter.bigger_is_better);
    assert_false(taken("--metric steps a b")->counter.bigger_is_better);
}

/* How much is listed: a screen, a comment, what was asked for, or all. */
static void limits_of_a_list(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t limit;
        bool screen;
    } cases[] = {
        {"--limit 7 a b", 7, false},
        {"--limit 0 a b", 0, false},
        {"--limit 1000000000 a b", 1000000000, false},
        {"--all a b", 0, true},
        {"--all --limit 3 a b", 3, false},
        {"--format markdown a b", 60, true},
        {"--format markdown --all a b", 0, true},
        {"--format markdown --limit 61 a b", 61, false},
        {"--format csv a b", 15, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct options *options = taken(cases[i].line);
        assert_int_equal(options->listing.limit, cases[i].limit);
        assert_int_equal(options->listing.screen, cases[i].screen);
    }
    assert_true(taken("--all a b")->listing.all);
    static const char *const refused[] = {"1000000001", "-1", "1.5", "many"};
    char line[100], error[200];
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(line, sizeof line, "--limit %s a b", refused[i]);
        snprintf(error, sizeof error, "--limit: '%s' is not a number of cases", refused[i]);
        assert_refused(line, error);
    }
}

static void switches_and_texts(void **state)
{
    (void)state;
    assert_true(taken("--subset a b")->settings.subset);
    assert_true(taken("--oldest a b")->oldest);
    assert_true(taken("--ignore-device a b")->settings.ignore_device);
    assert_true(taken("--keep-constant a b")->settings.keep_constant);
    assert_string_equal(taken("--filter x=y a b")->filter, "x=y");
    assert_string_equal(taken("a --filter=--margin=3 b")->filter, "--margin=3");
    assert_string_equal(taken("--output=o a b")->output, "o");
    assert_string_equal(taken("--only o --race a b")->only, "o");
    assert_string_equal(taken("--verdicts v --race a b")->verdicts, "v");
    assert_null(taken("--variants a")->verdicts);
    assert_refused("--verdicts v --self a",
                   "--verdicts is for what has verdicts: two sides, --variants and --race");
    assert_refused("--filter '' a b", "--filter: an empty value");
    assert_refused("--only= --race a b", "--only: an empty value");
    assert_refused("--output= a b", "--output: an empty value");
    assert_refused("a b --output", "--output needs a value");
    assert_refused("--all=1 a b", "--all: takes no value after '=': '1'");
    assert_refused("--self= a", "--self: takes no value after '=': ''");
    assert_refused("--all --all a b", "--all is given twice");
    assert_refused("--marginal 3 a b", "unknown option '--marginal'");
    assert_refused("--marg 3 a b", "unknown option '--marg'");
    assert_refused("-- a b", "'--' is for --race");
    assert_refused("-x a b", "unknown option '-x'");
}

static void host_params_are_of_suites(void **state)
{
    (void)state;
    assert_null(taken("a b")->settings.host_params);
    assert_string_equal(taken("--host-params scaling:gpus a b")->settings.host_params, "scaling:gpus");
    assert_string_equal(taken("--host-params=s:g,s:r,c:n a b")->settings.host_params, "s:g,s:r,c:n");
    static const char *const refused[] = {"''", "gpus", "scaling:", ":gpus", "s:g,", ",s:g", "s:g,,c:n", "s:g=2", "s:g:h",
                                          "s=1:g", "s:g,n"};
    char line[100], error[200];
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(line, sizeof line, "--host-params %s a b", refused[i]);
        snprintf(error, sizeof error, "--host-params: '%s' is not SUITE:PARAM[,SUITE:PARAM...]",
                 i == 0 ? "" : refused[i]);
        assert_refused(line, error);
    }
    assert_refused("a b --host-params", "--host-params needs a value");
}

/* Nothing behind it is looked at, and nothing is missing. */
static void help_ends_the_line(void **state)
{
    (void)state;
    assert_int_equal(taken("--help")->mode, MODE_HELP);
    assert_int_equal(taken("-h --what")->mode, MODE_HELP);
    assert_int_equal(taken("a.csv --help --margin x")->mode, MODE_HELP);
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    assert_non_null(memory);
    print_usage(memory);
    assert_int_equal(fclose(memory), 0);
    assert_int_equal(
        strncmp(text, "usage: gpubench-compare [options] BASELINE.csv CURRENT.csv\n", 59), 0);
    static const char *const said[] = {"--margin PERCENT", "--timeout SECONDS", "--oldest",
                                       "Exit status: 0 fine;"};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        assert_non_null(strstr(text, said[i]));
    free(text);
}

/* Each way to name files, and the mode that it makes. */
static void files_in_each_way(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum mode mode;
        size_t baseline, current;
    } cases[] = {
        {"--baseline a b c --current d e", MODE_COMPARE, 3, 2},
        {"--current d --baseline a", MODE_COMPARE, 1, 1},
        {"- b", MODE_COMPARE, 1, 1},
        {"--variants a b", MODE_VARIANTS, 2, 0},
        {"--self a b c", MODE_SELF, 3, 0},
        {"--check -", MODE_CHECK, 1, 0},
        {"--cards a b", MODE_CARDS, 2, 0},
        {"--history a b", MODE_HISTORY, 2, 0},
        {"--kernels a b", MODE_KERNELS, 1, 1},
        {"--race a b", MODE_RACE, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct options *options = taken(cases[i].line);
        assert_int_equal(options->mode, cases[i].mode);
        assert_int_equal(options->baseline.count, cases[i].baseline);
        assert_int_equal(options->current.count, cases[i].current);
    }
    assert_string_equal(taken("--race a b")->current.items[0], "b");
    assert_string_equal(taken("--race a b")->baseline.items[0], "a");
    const struct options *race = taken("--race a b -- --x y");
    assert_int_equal(race->arguments.count, 2);
    assert_string_equal(race->arguments.items[0], "--x");
    assert_int_equal(taken("--race a b --")->arguments.count, 0);
}

static void files_that_lack_or_are_too_many(void **state)
{
    (void)state;
    static const char many[] =
        "files are given in more than one way; choose BASELINE CURRENT, --baseline with "
        "--current, --variants, --self, --check, --race, --cards, --history, or --kernels";
    static const char *const ways[] = {"a b --baseline c",
                                       "a b --current c",
                                       "--variants a --self b",
                                       "--check a --cards b",
                                       "--history a --race b c",
                                       "--kernels a b c",
                                       "--race a b c",
                                       "a --variants b",
                                       "a --check b",
                                       "a --cards b",
                                       "--current a --history b",
                                       "--self a --check b",
                                       "--cards a --kernels b c"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        assert_refused(ways[i], many);
    assert_refused("", "no baseline file is given");
    assert_refused("--current a", "no baseline file is given");
    assert_refused("a", "no current file is given beside the baseline 'a'");
    assert_refused("--baseline a b", "no current file is given beside the baseline 'a'");
    assert_refused("a b c",
                   "'c' is a third file; several a side: --baseline FILE... --current FILE...");
    assert_refused("--self", "--self needs at least one file");
    assert_refused("--self --all a", "--self needs at least one file");
    static const char *const twos[] = {"--race", "--race a", "--race a --all", "--race --all a b"};
    for (size_t i = 0; i < sizeof twos / sizeof twos[0]; i++)
        assert_refused(twos[i], "--race needs two programs, OLD and NEW");
    assert_refused("--kernels a", "--kernels needs two files, OLD and NEW");
}

/* Options that only some modes have. */
static void options_of_other_modes(void **state)
{
    (void)state;
    assert_refused("--only o a b", "--only is for --race");
    assert_refused("--timeout 5 a b", "--timeout is for --race");
    assert_refused("--race-seconds 5 a b", "--race-seconds is for --race");
    assert_refused("--race-seconds 0 --race a b",
                   "--race-seconds: '0' is not a number of seconds above 0 and up to 1e6");
    assert_refused("a b -- x", "'--' is for --race");
    assert_refused("--cards a --format markdown", "--cards writes the formats text, csv and json");
    assert_refused("--cards a --format github", "--cards writes the formats text, csv and json");
    assert_refused("--history a --format markdown",
                   "--history writes the formats text, csv and json");
    assert_refused("--history a --format github",
                   "--history writes the formats text, csv and json");
    assert_refused("--kernels a b --format csv", "--kernels writes text");
    assert_refused("--self a --format github",
                   "--self writes the formats text, markdown, csv and json");
    static const char *const fine[] = {"--cards a --format csv",     "--cards a --format json",
                                       "--history a --format text",  "--kernels a b --format text",
                                       "--self a --format markdown", "--variants a --format github",
                                       "a b --format github"};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        taken(fine[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_without_options),
        cmocka_unit_test(percentages_have_bounds),
        cmocka_unit_test(seconds_have_bounds),
        cmocka_unit_test(words_of_a_list),
        cmocka_unit_test(limits_of_a_list),
        cmocka_unit_test(switches_and_texts),
        cmocka_unit_test(host_params_are_of_suites),
        cmocka_unit_test(help_ends_the_line),
        cmocka_unit_test(files_in_each_way),
        cmocka_unit_test(files_that_lack_or_are_too_many),
        cmocka_unit_test(options_of_other_modes),
    };
    return cmocka_run_group_tests_name("compare: the command line", tests, NULL, NULL);
}
