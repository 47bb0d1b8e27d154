/* Rows as JSON. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "table_rows.h"

/* ---- JSON ---- */

/* Compares by python3's own parsers. */
static void expect_same_rows(const char *json, const char *csv)
{
    char command[700];
    snprintf(command, sizeof command, "python3 tests/header/same_rows.py '%s' '%s'", json, csv);
    assert_int_equal(system(command), 0);
}

static void json_holds_the_same_rows(void **state)
{
    const char *json = support_path("rows.json"), *csv = support_path("rows.csv");
    gpubench *bench;
    FILE *file;
    gpb_row *row;
    (void)state;
    support_skip_without_python();
    bench = OPEN("--json", json);
    file = fopen(csv, "w");
    row = add_row(bench, "quoted \"a\\b\"", "tab\there", "n=1\x01\x1f\x7f", 1.25e-7);
    gpb_set_text(row, GPB_COLUMN_git, "12e4567"); /* no number though it looks like one */
    gpb_set_text(row, GPB_COLUMN_compute_capability, "9.0");
    gpb_set_text(row, GPB_COLUMN_seed, "18446744073709551615");
    gpb_set_number(row, GPB_COLUMN_bytes, 1e21);
    gpb_set_text(row, GPB_COLUMN_counters, "steps=17 tokens/s=1.5e10");
    gpb_set_text(row, GPB_COLUMN_device, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    fail_row(add_row(bench, "b", "", "", 0), "failed");
    gpb_set_text(&bench->rows[1], GPB_COLUMN_flags, "reason=run:_no");
    gpb_keep_json(bench);
    add_row(bench, "c", "", "", 3);
    gpb_keep_json(bench);
    assert_int_equal(gpb_write_rows(bench, file), 0);
    fclose(file);
    assert_false(support_exists(json)); /* only a finished file has the name */
    assert_int_equal(gpb_finish_json(bench), 0);
    expect_same_rows(json, csv);
    assert_int_equal(gpubench_close(bench), 2);
    unlink(json);
    unlink(csv);
}

/* Bytes that are no UTF-8 (RFC 3629) are replaced, one by one. */
static void json_is_utf_8(void **state)
{
    static const struct { const char *text, *wanted; } cases[] = {
        {"a\xff", "\"a\\ufffd\""},
        {"\xc0\x80z", "\"\\ufffd\\ufffdz\""},         /* overlong */
        {"\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\""}, /* overlong */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\""},
        {"\177\xc2\x9b##[#", "\"\\u007f\\u009b\\u0023#[#\""}, /* what is obeyed somewhere */
        {"\"\\\n", "\"\\\"\\\\\\u000a\""}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        gpb_write_json_text(file, cases[i].text);
        fclose(file);
        assert_string_equal(text, cases[i].wanted);
        free(text);
    }
}

/* The file is a whole array after each row. */
static void json_is_whole_after_each_row(void **state)
{
    gpubench *bench = OPEN("--json", support_path("rows.json"));
    int i;
    (void)state;
    for (i = 1; i <= 3; i++) {
        char *text, *at;
        int rows = 0;
        add_row(bench, "c", "", "", i);
        gpb_keep_json(bench);
        text = support_read(bench->json_temporary);
        assert_memory_equal(text, "[\n{\"schema\": ", 13);
        assert_string_equal(text + strlen(text) - 4, "}\n]\n");
        for (at = text; (at = strstr(at, "\"schema\"")); at++)
            rows++;
        assert_int_equal(rows, i);
        free(text);
    }
    assert_int_equal(gpubench_close(bench), 2);
    unlink(support_path("rows.json"));
}

static void json_goes_to_a_file_of_its_own(void **state)
{
    const char *path = support_path("both"), *link = support_path("link");
    char other[1200];
    outcome result;
    (void)state;
    result = RUN("host", "--json", path, "--csv", path);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv writes there");
    support_free_outcome(&result);
    snprintf(other, sizeof other, "%s/./both", support_folder);
    result = RUN("host", "--json", other, "--csv", path); /* neither is there */
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv writes there");
    support_free_outcome(&result);
    support_write(path, "old\n");
    assert_int_equal(symlink(path, link), 0);
    result = RUN("host", "--json", link, "--csv", path);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv writes there");
    support_free_outcome(&result);
    unlink(link);
    unlink(path);
    result = RUN("host", "--json", path, "--samples", path);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--samples writes there");
    support_free_outcome(&result);
    result = RUN("host", "--json", "-", "--csv", "/dev/stdout");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--csv writes there");
    support_free_outcome(&result);
    result = RUN("host", "--json", support_folder);
    support_expect_status(&result, 2);
    support_expect_text(result.err, "wants a file");
    support_free_outcome(&result);
    result = RUN("host", "--json", path, "--profile");
    support_expect_status(&result, 2);
    support_expect_text(result.err, "--profile measures nothing");
    support_free_outcome(&result);
    assert_false(support_exists(path));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_holds_the_same_rows),
        cmocka_unit_test(json_is_utf_8),
        cmocka_unit_test(json_is_whole_after_each_row),
        cmocka_unit_test(json_goes_to_a_file_of_its_own),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("JSON", tests, NULL, NULL));
}
