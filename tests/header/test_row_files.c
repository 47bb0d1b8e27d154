/* Where rows go: --json beside --csv, and files that are full, closed or shared. */
#define _GNU_SOURCE
#include "row_files.h"

/* ---- --json beside --csv ---- */

static const char *json_path(void)
{
    return support_path("rows/out.json");
}

/* Is there a file that has not got its name? */
static int left_beside_json(void)
{
    char command[300];
    snprintf(command, sizeof command, "ls '%s'.* >/dev/null 2>&1", json_path());
    return system(command) == 0;
}

/* By python3's parsers: both files hold the same rows. */
static void expect_same_rows(const char *csv)
{
    char command[700];
    snprintf(command, sizeof command, "python3 tests/header/same_rows.py '%s' '%s'", json_path(), csv);
    assert_int_equal(system(command), 0);
}

/* Neither what ends a process nor what runs in several loses, or adds, an object. */
static void json_has_the_same_rows_whatever_ends(void **state)
{
    static const struct { const char *fault, *runs; int rows; } cases[] = {
        {"none", "1", CASES},   {"exit-3", "1", CASES},     {"segv", "1", CASES},
        {"none", "3", 3 * CASES}, {"segv", "2", 2 * CASES}, {"killed", "2", 2 * CASES}};
    size_t i;
    (void)state;
    support_skip_without_python();
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *csv = csv_path();
        outcome result;
        support_write(json_path(), old_text);
        result = RUN("rows", "--fault", cases[i].fault, "--runs", cases[i].runs, "--csv", csv,
                     "--json", json_path(), QUICK);
        support_expect_status(&result, strcmp(cases[i].fault, "none") != 0);
        expect_rows(csv, (size_t)cases[i].rows,
                    strcmp(cases[i].fault, "none") ? "reason=" : NULL);
        expect_same_rows(csv);
        assert_false(left_beside_json());
        support_free_outcome(&result);
    }
}

/* A signal ends it: the rows so far are there; none: the old file is. */
static void json_so_far_is_put_in_place(void **state)
{
    static const char *const runs[] = {"1", "3"};
    size_t i;
    (void)state;
    support_skip_without_python();
    for (i = 0; i < 2; i++) {
        const char *csv = csv_path();
        running started;
        support_write(json_path(), old_text);
        started = START("rows", "--fault", "wait", "--csv", csv, "--json", json_path(), "--runs",
                        runs[i], QUICK);
        wait_for_the_moment(&started);
        kill(started.pid, SIGINT);
        assert_int_equal(end(&started), 128 + SIGINT);
        expect_rows(csv, GUILTY, NULL);
        expect_same_rows(csv);
        assert_false(left_beside_json());
        csv = csv_path();
        support_write(json_path(), old_text);
        started = START("rows", "--fault", "wait", "--at", "0", "--csv", csv, "--json",
                        json_path(), "--runs", runs[i], QUICK);
        wait_for_the_moment(&started);
        kill(started.pid, SIGTERM);
        assert_int_equal(end(&started), 128 + SIGTERM);
        expect_content(json_path(), old_text);
    }
}

/* What nothing can catch leaves whole JSON beside the old file. */
static void json_survives_what_nothing_can_catch(void **state)
{
    const char *csv = csv_path();
    outcome result;
    char command[300];
    (void)state;
    support_skip_without_python();
    support_write(json_path(), old_text);
    result = RUN("rows", "--fault", "killed", "--csv", csv, "--json", json_path(), QUICK);
    support_expect_status(&result, 128 + SIGKILL);
    expect_content(json_path(), old_text);
    snprintf(command, sizeof command, "mv '%s'.*.json.tmp '%s'", json_path(), json_path());
    assert_int_equal(system(command), 0);
    expect_rows(csv, GUILTY, NULL);
    expect_same_rows(csv);
    support_free_outcome(&result);
}

static void json_on_standard_output_is_alone(void **state)
{
    const char *csv = csv_path();
    outcome result;
    (void)state;
    support_skip_without_python();
    result = RUN("rows", "--fault", "segv", "--csv", csv, "--json", "-", QUICK);
    support_expect_status(&result, 1);
    support_expect_text(result.err, " median ");
    support_write(json_path(), result.out);
    expect_same_rows(csv);
    support_free_outcome(&result);
}

/* ---- where the rows cannot go ---- */

/* A file that may not grow (beyond 1536 bytes, which hold a row or two) stands
 * for a full disk; what a pipe takes has no such limit. Counters of coverage
 * fit neither, and must not tell so among the rows. */
#define ON_A_FULL_DISK(arguments)                                              \
    "trap '' XFSZ; export GCOV_ERROR_FILE=/dev/null; { (ulimit -f 3; $D/rows " arguments " $Q 2>&1 >&3; echo status=$?)" \
    " | cat >&2; } 3>&1"

static void a_full_disk_loses_nothing(void **state)
{
    enum { QUIET = 1 };
    int variant;
    (void)state;
    for (variant = 0; variant < VARIANTS; variant++) {
        const char *csv = csv_path(), *copy = support_path("copy.csv");
        outcome result;
        char *rows;
        if (variant & OLD_FILE)
            support_write(csv, old_text);
        result = shell(variant & QUIET ? ON_A_FULL_DISK("--quiet --csv $O/out.csv")
                                       : ON_A_FULL_DISK("--csv $O/out.csv"));
        support_expect_text(result.err, "status=2\n");
        support_expect_text(result.err, csv);
        support_expect_text(result.err, strerror(EFBIG));
        if (variant & OLD_FILE)
            expect_content(csv, old_text);
        if (!(variant & QUIET))
            support_expect_text(result.out, " median ");
        rows = strstr(result.err, "schema,suite,"); /* all of them, for whoever needs them */
        assert_non_null(rows);
        *strstr(rows, "status=2") = '\0';
        support_write(copy, rows);
        expect_rows(copy, CASES, NULL);
        support_free_csv(support_read_csv(variant & OLD_FILE ? partial_path() : csv)); /* whole */
        support_free_outcome(&result);
    }
}

/* The message and the status are those of --csv; nothing is lost that was there. */
static void json_on_a_full_disk_is_told(void **state)
{
    outcome result;
    char *rows, command[400];
    (void)state;
    (void)csv_path();
    support_write(json_path(), old_text);
    result = shell(ON_A_FULL_DISK("--json $O/out.json"));
    support_expect_text(result.err, "status=2\n");
    support_expect_text(result.err, json_path());
    support_expect_text(result.err, strerror(EFBIG));
    support_expect_text(result.out, " median ");
    expect_content(json_path(), old_text);
    rows = strstr(result.err, "schema,suite,"); /* all of them, for whoever needs them */
    assert_non_null(rows);
    *strstr(rows, "status=2") = '\0';
    support_write(support_path("copy.csv"), rows);
    expect_rows(support_path("copy.csv"), CASES, NULL);
    support_expect_text(result.err, "the rows before are in ");
    support_free_outcome(&result);
    support_skip_without_python();
    snprintf(command, sizeof command,
             "cat '%s'.*.json.tmp | "
             "python3 -c 'import json, sys; sys.exit(len(json.load(sys.stdin)) != 1)'",
             json_path());
    assert_int_equal(system(command), 0); /* whole lines only, and an array again */
}

static void a_closed_output_is_told(void **state)
{
    const char *csv = csv_path();
    outcome result = shell("exec $D/rows --csv - $Q >&-");
    (void)state;
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv '-'");
    support_free_outcome(&result);
    result = shell("exec $D/rows --csv $O/out.csv $Q >&-");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "the table: ");
    expect_rows(csv, CASES, NULL);
    support_free_outcome(&result);
    result = shell("exec $D/rows --csv /dev/fd/7 $Q 7>&-");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "/dev/fd/7");
    support_free_outcome(&result);
}

/* Whoever reads may stop: the file loses no row. */
static void a_reader_may_stop(void **state)
{
    const char *csv = csv_path();
    outcome result = shell("$D/rows --csv $O/out.csv $Q | true");
    (void)state;
    expect_rows(csv, CASES, NULL);
    support_free_outcome(&result);
    result = shell("{ $D/rows --csv - --fault hang --timeout 60 $Q; echo $? >&2; } | head -1");
    support_expect_text(result.out, "schema,suite,");
    support_free_outcome(&result);
}

/* ---- descriptors that have a path ---- */

static void expect_appended(const char *words)
{
    const char *csv = csv_path();
    outcome result;
    char *text;
    support_write(csv, old_text);
    result = shell(words);
    support_expect_status(&result, 0);
    text = support_read(csv);
    assert_non_null(text);
    assert_memory_equal(text, old_text, strlen(old_text));
    support_write(support_path("copy.csv"), text + strlen(old_text));
    expect_rows(support_path("copy.csv"), CASES, NULL); /* and no table between the rows */
    expect_alone(csv);
    free(text);
    support_free_outcome(&result);
}

static void a_log_is_appended_to(void **state)
{
    (void)state;
    expect_appended("exec $D/rows --csv /dev/stdout $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv - $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv /dev/fd/1 $Q >> $O/out.csv");
    expect_appended("exec $D/rows --csv /dev/fd/3 $Q 3>> $O/out.csv");
    expect_appended("exec $D/rows --csv /proc/self/fd/3 $Q 3>> $O/out.csv");
    expect_appended("exec $D/rows --csv $O/out.csv $Q >> $O/out.csv");
    expect_appended("$D/rows --csv /dev/fd/3 $Q 3>&1 | cat >> $O/out.csv");
    expect_appended("$D/rows --csv /dev/stdout $Q | cat >> $O/out.csv");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_the_same_rows_whatever_ends),
        cmocka_unit_test(json_so_far_is_put_in_place),
        cmocka_unit_test(json_survives_what_nothing_can_catch),
        cmocka_unit_test(json_on_standard_output_is_alone),
        cmocka_unit_test(json_on_a_full_disk_is_told),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_closed_output_is_told),
        cmocka_unit_test(a_reader_may_stop),
        cmocka_unit_test(a_log_is_appended_to),
    };
    size_t i;
    for (i = 0; i < sizeof polite / sizeof polite[0]; i++)
        signal(polite[i], SIG_DFL); /* a shell's background job ignores them */
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("files of rows", tests, NULL, NULL));
}
