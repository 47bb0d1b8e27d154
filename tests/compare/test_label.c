/* Texts from files on their way to a terminal, a log or JSON: character by character. */
#define _XOPEN_SOURCE 700

#include "../../compare/json.h"
#include "../../compare/label.h"
#include "../../compare/race_keys.h"

#include "cmocka_all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t size;

static FILE *begin(void)
{
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    return out;
}

static void expect_written(FILE *out, const char *wanted)
{
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, wanted);
    free(text);
}

/* What a terminal or a log would obey becomes a question mark, one a byte. */
static void plain_texts(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain", "plain"},
        {"a b", "a b"},
        {"tab\tnew\nescape\033[31m\177", "tab?new?escape?[31m?"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc2\x80|\xc2\x9b|\xc2\x9f|\xc2\xa0", "??|??|??|\xc2\xa0"},
        {"\xff\xc3", "??"},
        {"::error::", "?:error::"},
        {"  ::error::", "  ?:error::"},
        {"\xc3\xa9::error::", "\xc3\xa9?:error::"}, /* nothing visible in ASCII stands before */
        {"a::b", "a::b"},
        {":a", ":a"},
        {"##[error]", "#?[error]"},
        {"a###", "a#??"},
        {"#a#", "#a#"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        FILE *out = begin();
        print_plain(out, pairs[i][0]);
        expect_written(out, pairs[i][1]);
    }
}

static const struct case_key key = {.parts = {"suite", "copy", "", "cuda", "f32", "n=1", "cold"}};
static const struct case_key odd = {.parts = {"::s", "", "a\tb", "", "", "", "##c"}};

static void labels(void **state)
{
    (void)state;
    static const struct {
        const struct case_key *key;
        const char *behind, *label;
    } cases[] = {{&key, NULL, "suite copy cuda f32 n=1 cold"},
                 {&key, "against a\nb", "suite copy cuda f32 n=1 cold (against a?b)"},
                 {&odd, NULL, "?:s a?b #?c"},
                 {&odd, "", "?:s a?b #?c ()"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *label = case_label(cases[i].key, cases[i].behind);
        assert_string_equal(label, cases[i].label);
        free(label);
    }
}

static void strings_in_json(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", "\"\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\001\037 \177", "\"\\u0001\\u001f \\u007f\""},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "\"\\u0080\\u009f\xc2\xa0\""},
        {"#a##b###", "\"#a\\u0023#b\\u0023\\u0023#\""},
        {"\xff"
         "a\xe2\x82\xac",
         "\"\\ufffda\xe2\x82\xac\""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        FILE *out = begin();
        json_string(out, pairs[i][0]);
        expect_written(out, pairs[i][1]);
        out = begin();
        json_text_or_null(out, pairs[i][0]);
        expect_written(out, pairs[i][1]);
    }
    FILE *out = begin();
    json_text_or_null(out, NULL);
    expect_written(out, "null");
}

static void members_in_json(void **state)
{
    (void)state;
    static const struct json_member members[] = {
        {"a", 1.5}, {"b", (double)INFINITY}, {"c", (double)NAN}, {"d", 0}};
    FILE *out = begin();
    json_members(out, members, 4);
    expect_written(out, "\"a\":1.5,\"b\":null,\"c\":null,\"d\":0");
    out = begin();
    json_members(out, members, 0);
    expect_written(out, "");
    out = begin();
    json_key(out, &key);
    expect_written(out,
                   "\"suite\":\"suite\",\"case\":\"copy\",\"variant\":\"\",\"backend\":\"cuda\","
                   "\"dtype\":\"f32\",\"params\":\"n=1\",\"mode\":\"cold\"");
    assert_string_equal(json_truth(true), "true");
    assert_string_equal(json_truth(false), "false");
    struct settings settings = {
        .rule = {.margin = 0.02, .confidence = 0.95, .false_alarms = 0.01, .threshold = 0.05},
        .metric = find_metric("gb_per_s")};
    out = begin();
    json_rule(out, &settings);
    expect_written(out,
                   "\"metric\":\"gb_per_s\",\"unit\":\"GB/s\",\"bigger_is_better\":true,"
                   "\"margin\":0.02,\"confidence\":0.95,\"false_alarms\":0.01,\"threshold\":0.05");
}

/* A program's own name of a case has no suite, backend and mode. */
static void names_for_a_race(void **state)
{
    (void)state;
    static const struct case_key full = {
        .parts = {"s", "copy", "v", "cuda", "f32", "n=1 m=2", "cold"}};
    char *name = race_key(&full);
    assert_string_equal(name, "copy v f32 n=1 m=2");
    free(name);
    name = race_key(&key);
    assert_string_equal(name, "copy f32 n=1");
    free(name);
    name = race_key(&odd);
    assert_string_equal(name, "a\tb");
    free(name);
}

/* Names a line, of which empty ones are none; the last one needs no end. */
static void a_file_of_names(void **state)
{
    (void)state;
    char path[] = "/tmp/gpubench-names-XXXXXX";
    int descriptor = mkstemp(path);
    static const char lines[] = "\n\nb c\na+b\n\na+b\nlast";
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, lines, sizeof lines - 1), sizeof lines - 1);
    assert_int_equal(close(descriptor), 0);
    struct race_keys keys = {NULL, 0, 0};
    assert_true(race_keys_read(&keys, path));
    assert_int_equal(keys.count, 3);
    assert_string_equal(keys.items[0], "a+b");
    assert_string_equal(keys.items[1], "b c");
    assert_string_equal(keys.items[2], "last");
    assert_true(race_keys_hold(&keys, "last"));
    assert_false(race_keys_hold(&keys, ""));
    char *filter = race_filter(&keys);
    assert_string_equal(filter, "^(a\\+b|b c|last)$");
    free(filter);
    race_keys_free(&keys);
    assert_int_equal(unlink(path), 0);
    errno = 0;
    assert_false(race_keys_read(&keys, path));
    assert_int_equal(errno, ENOENT);
    assert_false(race_keys_read(&keys, "/"));
    assert_int_equal(keys.count, 0);
    assert_null(race_filter(&keys));
    assert_false(race_keys_hold(&keys, "last"));
    race_keys_free(&keys);
}

/* "^()$" around them: with 99,996 characters the filter is as long as it may be. */
static void a_filter_ends_at_its_longest(void **state)
{
    (void)state;
    for (size_t longer = 0; longer < 2; longer++) {
        struct race_keys keys = {NULL, 0, 0};
        size_t length = race_longest_filter - 4 + longer;
        char *name = malloc(length + 1);
        assert_non_null(name);
        memset(name, 'x', length);
        name[length] = '\0';
        assert_true(race_keys_add(&keys, name));
        char *filter = race_filter(&keys);
        assert_int_equal(filter != NULL, longer == 0);
        free(filter);
        race_keys_free(&keys);
    }
    struct race_keys keys = {NULL, 0, 0};
    assert_true(race_keys_add(&keys, strdup(".[\\()*+?{|^$")));
    char *filter = race_filter(&keys);
    assert_string_equal(filter, "^(\\.\\[\\\\\\(\\)\\*\\+\\?\\{\\|\\^\\$)$");
    free(filter);
    race_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_texts),
        cmocka_unit_test(labels),
        cmocka_unit_test(strings_in_json),
        cmocka_unit_test(members_in_json),
        cmocka_unit_test(names_for_a_race),
        cmocka_unit_test(a_file_of_names),
        cmocka_unit_test(a_filter_ends_at_its_longest),
    };
    return cmocka_run_group_tests_name("compare: texts", tests, NULL, NULL);
}
