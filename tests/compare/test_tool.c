/* The program itself: its command line, its output and its exit status. Takes
 * the path of gpubench-compare as its argument. */
#define _XOPEN_SOURCE 700
#include "tool.h"

/* O07 */
static void the_status_carries_the_verdict(void **state)
{
    (void)state;
    assert_int_equal(run("base.csv base.csv"), 0);
    assert_int_equal(run("base.csv same.csv"), 0);
    assert_says(output, "2 cases: 2 same\n");
    assert_int_equal(run("base.csv fast.csv"), 0);
    assert_says(output, "2 cases: 1 faster, 1 same\n");
    assert_int_equal(run("base.csv slow.csv"), 1);
    assert_says(output, "2 cases: 1 slower, 1 same\n");
    assert_says(output, "+49.90 %");
    assert_null(strchr(output, '\033'));
    assert_string_equal(complaint, "");
    assert_int_equal(run("base.csv broken.csv"), 2);
    assert_says(complaint, "broken.csv:5: column 'variant': the line has 3 fields");
}

static void bad_usage_is_named(void **state)
{
    (void)state;
    const struct {
        const char *arguments;
        const char *complaint;
    } cases[] = {
        {"", "no baseline file"},
        {"base.csv", "no current file is given beside the baseline 'base.csv'"},
        {"base.csv same.csv slow.csv", "'slow.csv' is a third file"},
        {"none.csv base.csv", "none.csv: cannot open"},
        {". base.csv", ".: cannot read"},
        {"/dev/null base.csv", "/dev/null:1: no header"},
        {"--what base.csv same.csv", "unknown option '--what'"},
        {"--margin", "--margin needs a value"},
        {"--margin 5% base.csv same.csv", "--margin: '5%'"},
        {"--margin nan base.csv same.csv", "--margin: 'nan'"},
        {"--margin -5 base.csv same.csv", "--margin: '-5'"},
        {"--margin 1e400 base.csv same.csv", "--margin: '1e400'"},
        {"--margin ' 7' base.csv same.csv", "--margin: ' 7'"},
        {"--margin '' base.csv same.csv", "--margin: ''"},
        {"--margin 0x10 base.csv same.csv", "--margin: '0x10'"},
        {"--margin 1 --margin=2 base.csv same.csv", "--margin is given twice"},
        {"--confidence 100 base.csv same.csv", "--confidence: '100'"},
        {"--false-alarms 50 base.csv same.csv", "--false-alarms: '50'"},
        {"--threshold x base.csv same.csv", "--threshold: 'x'"},
        {"--metric speed base.csv same.csv", "--metric: 'speed'"},
        {"--metric mean_us base.csv same.csv", "base.csv:1: column 'mean_us' is missing"},
        {"--format html base.csv same.csv", "--format: 'html'"},
        {"--sort size base.csv same.csv", "--sort: 'size'"},
        {"--limit -1 base.csv same.csv", "--limit: '-1'"},
        {"--check base.csv broken.csv", "broken.csv:5: column 'variant'"},
        {"--filter '(' base.csv same.csv", "--filter: '('"},
        {"--filter '' base.csv same.csv", "--filter: an empty value"},
        {"--filter nothing base.csv same.csv", "nothing to compare"},
        {"--subset=yes base.csv same.csv", "--subset: takes no value after '=': 'yes'"},
        {"--self --margin 3", "--self needs at least one file"},
        {"--self base.csv same.csv --variants base.csv", "in more than one way"},
        {"--baseline base.csv", "no current file"},
        {"--self same.csv", "no case has four ok runs"},
        {"--output no/such/place base.csv same.csv", "cannot write no/such/place"},
        {"same.csv same.csv >/dev/full 2>err.txt #", "cannot write the report"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int status = run(cases[i].arguments);
        if (status != 2 || !strstr(complaint, cases[i].complaint))
            fail_msg("[%s] ends with %d and says '%s'", cases[i].arguments, status, complaint);
    }
}

static void help_is_no_fault(void **state)
{
    (void)state;
    assert_int_equal(run("--help"), 0);
    assert_says(output, "usage: gpubench-compare");
    assert_says(output, "--ignore-device");
}

static void several_files_a_side(void **state)
{
    (void)state;
    assert_int_equal(run("--all --baseline base.csv same.csv --current fast.csv --margin 3"), 0);
    assert_says(output, "13 runs in 2 campaigns against 3 runs");
    assert_says(output, "margin 3 %");
    assert_int_equal(run("--baseline base.csv base.csv --current same.csv"), 2);
    assert_says(complaint, "base.csv:2: column 'run': run 1 of campaign 'c1' has a second row");
    assert_int_equal(run("--check base.csv; cp base.csv other.csv; exit 0;"), 0);
    assert_int_equal(run("--baseline base.csv other.csv --current same.csv"), 2);
    assert_says(complaint, "other.csv:2: column 'run': run 1 of campaign 'c1' has a second row");
    assert_says(complaint, "; the first is at base.csv:2");
    assert_int_equal(run("base.csv - < ../../../dev/null"), 2);
    assert_int_equal(run("base.csv - < slow.csv"), 1);
}

static void rules_can_be_set(void **state)
{
    (void)state;
    assert_int_equal(run("--margin 60 base.csv slow.csv"), 0);
    assert_int_equal(run("--filter copy base.csv slow.csv"), 0);
    assert_says(output, "1 case: 1 same\n");
}

static void a_file_appears_when_complete(void **state)
{
    (void)state;
    char report[4096];
    assert_int_equal(run("--output report.md --format markdown base.csv slow.csv"), 1);
    assert_string_equal(output, "");
    read_back("report.md", report, sizeof report);
    assert_says(report, "### gpubench: 2 cases: 1 slower, 1 same");
    assert_says(report, "| **SLOWER** | suite norm\\|&lt;f,4&gt; plain cuda f32 n=1 cold | 50.00 | 74.85 |");
    assert_says(report, "<details><summary>1 without change</summary>");
    assert_int_equal(system("ls /tmp/gpubench-compare-test-*/*.tmp >/dev/null 2>&1") == 0, 0);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* 400 cases, of which 30 are slower by 10 to 39 %: one screen, the largest first,
 * the rest counted; and a comment that GitHub takes. */
static void a_report_fits_a_screen(void **state)
{
    (void)state;
    struct text old = {0}, new = {0};
    char name[16];
    add_header(&old);
    add_header(&new);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "case%03d", i);
        add_case(&old, name, "c1", 10, 100);
        add_case(&new, name, "new", 3, i < 30 ? 110 + i : 100);
    }
    write_text("many.csv", &old);
    write_text("many-new.csv", &new);
    assert_int_equal(run("many.csv many-new.csv"), 1);
    assert_true(count_lines(output) <= 50);
    assert_int_equal(strncmp(output, "400 cases: 30 slower, 370 same\n", 31), 0);
    assert_says(output, "90 % interval");
    assert_says(output, "case029");
    assert_true(strstr(output, "case029") < strstr(output, "case028"));
    assert_null(strstr(output, "case009"));
    assert_says(output, "and 15 more (--limit 0 lists them)");
    assert_int_equal(run("--limit 0 --sort name many.csv many-new.csv"), 1);
    assert_true(strstr(output, "case001") < strstr(output, "case029"));
    assert_null(strstr(output, "case030"));
    assert_int_equal(run("--format markdown --limit 0 many.csv many-new.csv > md; exit $?;"), 1);
    assert_int_equal(run("--all many.csv many-new.csv | grep -c plain > count; exit 0;"), 0);
    read_back("count", name, sizeof name);
    assert_string_equal(name, "400\n");
    assert_int_equal(run("--format markdown many.csv many-new.csv"), 1);
    assert_true(strlen(output) < 60000);
    assert_null(strstr(output, directory));
    assert_int_equal(run("--format github --margin 35 many.csv many-new.csv"), 1);
    assert_says(output, "::error title=gpubench: SLOWER::suite case029 plain cuda f32 n=1 cold: +38.91 %25");
    assert_int_equal(count_lines(output), 2);
}

/* A command that can be pasted: with the names of the slower cases, quoted for the
 * shell and for the expression; none where nothing is open. */
static void the_race_is_named(void **state)
{
    (void)state;
    assert_int_equal(run("base.csv slow.csv"), 1);
    assert_says(output, "    gpubench-compare --race OLD NEW -- --filter '^norm\\|<f,4> '\n");
    assert_int_equal(run("base.csv same.csv"), 0);
    assert_null(strstr(output, "--race"));
    struct text old = {0}, new = {0};
    add_header(&old);
    add_header(&new);
    add_runs(&old, (struct text_row){.name = "it's", .campaign = "a", .git = "aaaa"}, 5, 100, 0.002);
    add_runs(&new, (struct text_row){.name = "it's", .campaign = "b", .git = "bbbb"}, 5, 150, 0.002);
    write_text("quote.csv", &old);
    write_text("quote-new.csv", &new);
    assert_int_equal(run("quote.csv quote-new.csv"), 1);
    assert_says(output, "    gpubench-compare --race OLD NEW\n"
                        "    (OLD: the program as of revision aaaa; NEW: the program as of revision bbbb)\n");
}

/* However long the names are, and wherever the files lie. */
static void a_comment_is_short_and_names_no_folder(void **state)
{
    (void)state;
    struct text old = {0}, new = {0};
    static char name[3001];
    char arguments[700];
    add_header(&old);
    add_header(&new);
    for (int i = 0; i < 40; i++) {
        memset(name, 'a' + i % 26, sizeof name - 1);
        snprintf(name, 8, "case%03d", i);
        name[7] = '-';
        add_case(&old, name, "c1", 10, 100);
        add_runs(&new, (struct text_row){.name = name, .campaign = "new", .status = i ? "ok" : "oom"}, 3,
                 i < 20 ? 150 : 100, 0.002);
    }
    write_text("long.csv", &old);
    write_text("long-new.csv", &new);
    snprintf(arguments, sizeof arguments, "--format markdown '%s/long.csv' '%s/long-new.csv'", directory, directory);
    assert_int_equal(run(arguments), 1);
    assert_true(strlen(output) < 60000);
    assert_says(output, " more (--limit 0 lists them)");
    assert_says(output, "| long-new.csv:2: status oom |");
    assert_null(strstr(output, directory));
}

/* The CSV output is CSV, and its numbers read back. */
static void csv_output_reads_back(void **state)
{
    (void)state;
    struct csv_reader reader;
    assert_int_equal(run("--format csv base.csv slow.csv"), 1);
    assert_true(csv_open_bytes(&reader, "out.csv", output, strlen(output)));
    int name = csv_column(&reader, "case");
    int verdict = csv_column(&reader, "verdict");
    int ratio = csv_column(&reader, "ratio");
    assert_int_equal(csv_next(&reader), CSV_RECORD);
    assert_string_equal(reader.fields[verdict], "same");
    assert_int_equal(csv_next(&reader), CSV_RECORD);
    assert_string_equal(reader.fields[name], "norm|<f,4>");
    assert_string_equal(reader.fields[verdict], "SLOWER");
    assert_true(strtod(reader.fields[ratio], NULL) > 1.49 && strtod(reader.fields[ratio], NULL) < 1.51);
    assert_int_equal(csv_next(&reader), CSV_END);
    csv_close(&reader);
}

/* Text for whoever reads it, and the same verdicts for programs. */
static void verdicts_beside_the_report(void **state)
{
    (void)state;
    static char verdicts[sizeof output], csv[sizeof output];
    assert_int_equal(run("--format csv base.csv slow.csv"), 1);
    memcpy(csv, output, sizeof csv);
    assert_int_equal(run("--verdicts verdicts.csv base.csv slow.csv"), 1);
    assert_says(output, "2 cases: 1 slower, 1 same\n");
    read_back("verdicts.csv", verdicts, sizeof verdicts);
    assert_string_equal(verdicts, csv);
    assert_int_equal(run("--verdicts no/such/place base.csv slow.csv"), 2);
    assert_says(output, "2 cases: 1 slower, 1 same\n");
    assert_says(complaint, "cannot write no/such/place");
    assert_int_equal(run("--verdicts base.csv base.csv slow.csv"), 2);
}

/* C7: what is there already is written as it is, or not at all. */
static void outputs_of_every_kind(void **state)
{
    (void)state;
    char report[4096];
    char command[600];
    assert_int_equal(run("--output base.csv base.csv slow.csv"), 2);
    assert_says(complaint, "cannot write base.csv: it is one of the inputs");
    snprintf(command, sizeof command,
             "cd '%s' && ln -s base.csv input && echo old > target && ln -s target link && ln -s nowhere dangling && "
             "mkfifo pipe && echo old > log && echo old > shut && chmod 444 shut", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(run("--output input base.csv slow.csv"), 2);
    assert_int_equal(run("--output ./slow.csv --baseline base.csv --current same.csv slow.csv"), 2);
    assert_int_equal(run("base.csv slow.csv"), 1);
    assert_int_equal(run("--output dangling base.csv slow.csv"), 2);
    assert_int_equal(run("--output . base.csv slow.csv"), 2);
    if (geteuid() != 0)
        assert_int_equal(run("--output shut base.csv slow.csv"), 2);
    assert_int_equal(run("--output link base.csv slow.csv"), 1);
    read_back("target", report, sizeof report);
    assert_says(report, "1 slower");
    snprintf(command, sizeof command, "test -L '%s/link'", directory);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "cd '%s' && { timeout 10 cat pipe > piped & }", directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(run("--output pipe base.csv slow.csv; code=$?; sleep 0.2; exit $code;"), 1);
    read_back("piped", report, sizeof report);
    assert_says(report, "1 slower");
}

/* C8: what is behind /dev/stdout is appended to, not replaced. */
static void open_descriptors_are_written_to(void **state)
{
    (void)state;
    char report[4096];
    assert_int_equal(run("--output /dev/stdout base.csv slow.csv >> log; exit $?;"), 1);
    read_back("log", report, sizeof report);
    assert_int_equal(strncmp(report, "old\n", 4), 0);
    assert_says(report, "1 slower");
    assert_int_equal(run("--output /dev/fd/3 base.csv slow.csv 3>> log; exit $?;"), 1);
    assert_int_equal(run("--output /dev/fd/77 base.csv slow.csv"), 2);
}

/* C10: names are told apart and taken by --filter to their last character. */
static void long_names_stay_whole(void **state)
{
    (void)state;
    struct text text = {0};
    char names[2][700];
    add_header(&text);
    for (int i = 0; i < 2; i++) {
        memset(names[i], 'x', sizeof names[i] - 1);
        names[i][sizeof names[i] - 2] = (char)('a' + i);
        names[i][sizeof names[i] - 1] = '\0';
        add_case(&text, names[i], "c1", 3, 100);
    }
    write_text("long.csv", &text);
    assert_int_equal(run("--all long.csv long.csv"), 0);
    assert_says(output, names[0]);
    assert_says(output, names[1]);
    assert_int_equal(run("--filter 'xb plain cuda' long.csv long.csv"), 0);
    assert_says(output, "1 case: 1 same");
}

static void cut_files_are_named(void **state)
{
    (void)state;
    struct text text = {0};
    add_header(&text);
    for (unsigned run_number = 1; run_number <= 3; run_number++)
        for (int i = 0; i < (run_number == 3 ? 1 : 2); i++)
            add_row(&text, (struct text_row){.name = i ? "\"norm|<f,4>\"" : "copy", .campaign = "new",
                                             .run = run_number, .median_us = i ? "50" : "100"});
    write_text("cut.csv", &text);
    assert_int_equal(run("base.csv cut.csv"), 0);
    assert_says(output, "warning: cut.csv:6: run 3 of campaign 'new' ends after 1 of the 2 rows that another run of its "
                        "campaign has: was the file cut?");
    struct text cards = {0}; /* the processes of --device all have another card each */
    add_header(&cards);
    for (unsigned run_number = 1; run_number <= 3; run_number++)
        for (int i = 0; i < (run_number == 3 ? 1 : 2); i++)
            add_row(&cards, (struct text_row){.name = i ? "\"norm|<f,4>\"" : "copy", .campaign = "new", .run = run_number,
                                              .uuid = run_number % 2 ? "GPU-a" : "GPU-b", .median_us = i ? "50" : "100"});
    write_text("cards.csv", &cards);
    assert_int_equal(run("base.csv cards.csv"), 0);
    assert_says(output, "warning: cards.csv:6: run 3 of campaign 'new' ends after 1 of the 2 rows");
}

static void write_changed(const char *name, const char *campaign, struct text_row row)
{
    struct text text = {0};
    add_header(&text);
    add_case(&text, "copy", campaign, 3, 100);
    row.campaign = campaign;
    add_row(&text, row);
    write_text(name, &text);
}

/* O01, O03 and O05 as a user sees them. */
static void what_cannot_be_judged_is_said(void **state)
{
    (void)state;
    write_changed("zero.csv", "new", (struct text_row){.name = "\"norm|<f,4>\"", .run = 1, .median_us = "0"});
    assert_int_equal(run("base.csv zero.csv"), 2);
    assert_says(output, "zero.csv:5: median_us cannot be 0");
    assert_says(complaint, "cannot judge 1 case: 1 with invalid values");

    write_changed("card.csv", "new", (struct text_row){.run = 9, .device = "NVIDIA L4"});
    assert_int_equal(run("base.csv card.csv"), 2);
    assert_says(complaint, "card.csv:5: column 'device': 'NVIDIA L4', but the baseline (base.csv:2) has 'NVIDIA H100'");
    assert_int_equal(run("--ignore-device --subset base.csv card.csv"), 0);

    write_changed("fewer.csv", "new", (struct text_row){.run = 9});
    assert_int_equal(run("base.csv fewer.csv"), 1);
    assert_says(output, "missing ");
    assert_says(output, "1 missing in current");
    assert_int_equal(run("fewer.csv base.csv"), 0);
    assert_says(output, "1 new in current");

    write_changed("work.csv", "new", (struct text_row){.run = 9, .bytes = "7"});
    assert_int_equal(run("--subset base.csv work.csv"), 2);
    assert_says(output, "work.csv:5: other bytes or flops than in the baseline");
}

/* Rows of the case copy, each with its seed and bytes; the baseline has 1 and 1024. */
static int run_with_work(const char *seeds[2], const char *bytes[2])
{
    struct text text = {0};
    add_header(&text);
    for (unsigned i = 0; i < 2 && seeds[i]; i++)
        add_row(&text, (struct text_row){.run = i + 1, .seed = seeds[i], .bytes = bytes[i]});
    write_text("draw.csv", &text);
    return run("--subset base.csv draw.csv");
}

static void changed_work_names_the_seeds(void **state)
{
    (void)state;
    assert_int_equal(run_with_work((const char *[]){"1", "2"}, (const char *[]){"1024", "7"}), 0);
    assert_int_equal(run_with_work((const char *[]){"2", "1"}, (const char *[]){"7", "9"}), 2);
    assert_says(output, "draw.csv:3: other bytes or flops than in the baseline, so the times do not compare");
    assert_int_equal(run_with_work((const char *[]){"2", "2"}, (const char *[]){"7", "9"}), 2);
    assert_says(output, "draw.csv:3: other bytes or flops than draw.csv:2, so the times do not compare");
    assert_int_equal(run_with_work((const char *[]){"2", NULL}, (const char *[]){"7", NULL}), 2);
    assert_says(output, "draw.csv:2: other bytes or flops than in the baseline, which has seed 1 where this row has "
                        "seed 2: without a seed that both sides have, nobody can tell other work from another draw "
                        "(--seed 1 measures what compares)");
    assert_int_equal(run_with_work((const char *[]){"", NULL}, (const char *[]){"7", NULL}), 2);
    assert_says(output, "which has seed 1 where this row has no seed: without");
    assert_int_equal(run("--subset draw.csv base.csv"), 2);
    assert_says(output, "base.csv:2: other bytes or flops than in the baseline, which has no seed where this row has "
                        "seed 1: without a seed that both sides have, nobody can tell other work from another draw\n");
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
        cmocka_unit_test(the_status_carries_the_verdict),
        cmocka_unit_test(bad_usage_is_named),
        cmocka_unit_test(help_is_no_fault),
        cmocka_unit_test(several_files_a_side),
        cmocka_unit_test(rules_can_be_set),
        cmocka_unit_test(a_file_appears_when_complete),
        cmocka_unit_test(outputs_of_every_kind),
        cmocka_unit_test(open_descriptors_are_written_to),
        cmocka_unit_test(long_names_stay_whole),
        cmocka_unit_test(cut_files_are_named),
        cmocka_unit_test(a_report_fits_a_screen),
        cmocka_unit_test(the_race_is_named),
        cmocka_unit_test(a_comment_is_short_and_names_no_folder),
        cmocka_unit_test(csv_output_reads_back),
        cmocka_unit_test(verdicts_beside_the_report),
        cmocka_unit_test(what_cannot_be_judged_is_said),
        cmocka_unit_test(changed_work_names_the_seeds),
    };
    return cmocka_run_group_tests_name("compare: the program", tests, write_files, remove_files);
}
