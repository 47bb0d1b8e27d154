/* The set of names that a race goes by. */
#include "../../compare/race_keys.h"

#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    assert_non_null(copy);
    return strcpy(copy, text);
}

static void add_numbered(struct race_keys *keys, int count)
{
    for (int i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "case %02d", count - 1 - i);
        assert_true(race_keys_add(keys, copy_of(name)));
    }
}

static void sorts_and_keeps_each_once(void **state)
{
    (void)state;
    struct race_keys keys = {NULL, 0, 0};
    const char *names[] = {"b", "a", "b", "c", "a"};
    for (size_t i = 0; i < 5; i++)
        assert_true(race_keys_add(&keys, copy_of(names[i])));
    race_keys_sort(&keys);
    assert_int_equal(keys.count, 3);
    assert_string_equal(keys.items[0], "a");
    assert_string_equal(keys.items[1], "b");
    assert_string_equal(keys.items[2], "c");
    assert_true(race_keys_hold(&keys, "b"));
    assert_false(race_keys_hold(&keys, "d"));
    race_keys_free(&keys);
}

/* A name that there was no memory for, where the set is full and would grow. */
static void a_name_that_is_none_loses_no_other(void **state)
{
    (void)state;
    struct race_keys keys = {NULL, 0, 0};
    assert_false(race_keys_add(&keys, NULL));
    assert_int_equal(keys.count, 0);
    add_numbered(&keys, 64);
    assert_int_equal(keys.capacity, keys.count);
    char **before = keys.items;
    assert_false(race_keys_add(&keys, NULL));
    assert_ptr_equal(keys.items, before);
    assert_int_equal(keys.capacity, 64);
    race_keys_sort(&keys);
    assert_int_equal(keys.count, 64);
    assert_string_equal(keys.items[0], "case 00");
    assert_string_equal(keys.items[63], "case 63");
    race_keys_free(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_and_keeps_each_once),
        cmocka_unit_test(a_name_that_is_none_loses_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
