/* Where memory runs out: each allocation of the compare tool's library fails in turn, and what
 * asked for it says so, gives back what it has, and never goes on as if all were well. */
#define _XOPEN_SOURCE 700

#include "../../compare/cards.h"
#include "../../compare/history.h"
#include "../../compare/kernels.h"
#include "../../compare/label.h"
#include "../../compare/race_keys.h"
#include "../../compare/self.h"
#include "../../compare/starved.h"

#include "one_side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the allocator: linked in front of the real one by --wrap ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* The call that fails, from 1 on; 0 for none. */
static size_t failing, calls;

static bool fails(void)
{
    return ++calls == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- what is tried ---- */

static struct one_side side, small;
static char paths[2][40];

/* Three campaigns of so many cases, two variants each, the last with a long name. */
static void fill_side(struct one_side *filled, unsigned cases)
{
    static const char *const campaigns[] = {"a", "b", "c"};
    static const char *const uuids[] = {"GPU-1", "GPU-2", "GPU-3"};
    char name[300];
    *filled = begin_side();
    for (unsigned i = 0; i < 3; i++)
        for (unsigned c = 0; c < 2 * cases; c++) {
            snprintf(name, sizeof name, "case%u%s", c / 2,
                     c / 2 + 1 < cases
                         ? ""
                         : " with a name so long that what keys are joined in has to grow for "
                           "it although it has twice the room that the first key needs");
            add_runs(&filled->text,
                     (struct text_row){.name = name,
                                       .variant = c % 2 ? "naive" : "tiled",
                                       .campaign = campaigns[i],
                                       .uuid = uuids[i],
                                       .node = "rack"},
                     2, 100 + c, 0.001);
        }
    load_side(filled);
}

/* One side with enough for every table to grow, and a small one. */
static int write_side(void **state)
{
    (void)state;
    fill_side(&side, 70);
    fill_side(&small, 3);
    char folder[] = "/tmp/gpubench-starved-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
        FILE *file = fopen(paths[i], "w");
        assert_non_null(file);
        fputs(
            "kernels_schema,suite,case,variant,backend,dtype,params,kind,name,launches,total_us\n",
            file);
        for (int row = 0; row < 70; row++)
            fprintf(file, "1,s,case%d,v,cuda,f32,n=1,kernel,k%d,1,2\n", row, row);
        assert_int_equal(fclose(file), 0);
    }
    return 0;
}

static int remove_side(void **state)
{
    (void)state;
    end_side(&side);
    end_side(&small);
    for (int i = 0; i < 2; i++)
        assert_int_equal(unlink(paths[i]), 0);
    *strrchr(paths[0], '/') = '\0';
    return rmdir(paths[0]);
}

static char error[results_error_capacity];

static bool loads(void)
{
    static const char *const path = "T.csv";
    struct catalogue catalogue = {.metric = side.settings.metric};
    struct results results;
    bool complete =
        results_load_bytes(&results, &catalogue, &path, side.text.bytes, side.text.size, error);
    results_free(&results);
    catalogue_free(&catalogue);
    return complete;
}

static bool finds_constants(void)
{
    struct constants constants;
    return find_constants(&constants, &small.catalogue, &small.results, &small.results);
}

static bool compares(void)
{
    struct comparison comparison;
    bool complete = compare_sides(&comparison, &small.settings, &small.catalogue, &small.results,
                                  &small.results);
    comparison_free(&comparison);
    return complete;
}

static bool compares_variants(void)
{
    struct comparison comparison;
    bool complete =
        compare_variants(&comparison, &small.settings, &small.catalogue, &small.results);
    comparison_free(&comparison);
    return complete;
}

static bool compares_with_itself(void)
{
    struct self_result result;
    bool complete = self_compare(&result, &small.settings, &small.catalogue, &small.results);
    self_free(&result);
    return complete;
}

static bool finds_cards(void)
{
    struct cards_result result;
    bool complete = find_odd_cards(&result, &small.settings, &small.catalogue, &small.results);
    cards_free(&result);
    return complete;
}

static bool finds_history(void)
{
    struct history history;
    bool complete = find_history(&history, &small.settings, &small.catalogue, &small.results);
    history_free(&history);
    return complete;
}

static bool loads_kernels(void)
{
    struct kernels kernels = {0};
    bool complete = kernels_load(&kernels, 0, paths[0], NULL, error) &&
                    kernels_load(&kernels, 1, paths[1], NULL, error);
    kernels_free(&kernels);
    return complete;
}

static struct kernels loaded;

static bool counts_kernels(void)
{
    return kernels_common_cases(&loaded) == 70;
}

static bool reports_kernels(void)
{
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    bool complete = kernels_report(out, &loaded, 0);
    assert_int_equal(fclose(out), 0);
    return complete;
}

static bool names_cases(void)
{
    struct race_keys keys = {0};
    bool complete = true;
    for (uint32_t id = 0; complete && id < side.catalogue.keys.count; id++)
        complete = race_keys_add(&keys, race_key(&side.catalogue.cases[id]));
    if (complete)
        race_keys_sort(&keys);
    char *filter = complete ? race_filter(&keys) : NULL;
    complete = filter != NULL;
    free(filter);
    race_keys_free(&keys);
    return complete;
}

static bool labels_a_case(void)
{
    char *label = case_label(&side.catalogue.cases[0], "behind");
    bool complete = label != NULL;
    free(label);
    return complete;
}

/* Each allocation fails once, until a run meets none that does. Leaks are what the leak
 * sanitizer says, under which this runs too. */
static void fails_at_each(bool (*tried)(void), size_t least)
{
    for (failing = 1;; failing++) {
        calls = 0;
        error[0] = '\0';
        bool complete = tried();
        if (calls < failing)
            break;
        if (complete)
            fail_msg("went on without the %zu. allocation", failing);
        if (*error && !strstr(error, "not enough memory"))
            fail_msg("without the %zu. allocation it says '%s'", failing, error);
    }
    assert_true(failing > least);
    failing = 0;
    assert_true(tried());
}

static void reading(void **state)
{
    (void)state;
    fails_at_each(loads, 40);
}

static void comparing(void **state)
{
    (void)state;
    fails_at_each(finds_constants, 2);
    fails_at_each(compares, 20);
    fails_at_each(compares_variants, 20);
}

static void looking_at_one_side(void **state)
{
    (void)state;
    fails_at_each(compares_with_itself, 100);
    fails_at_each(finds_cards, 10);
    fails_at_each(finds_history, 10);
}

static void kernels_of_two_files(void **state)
{
    (void)state;
    fails_at_each(loads_kernels, 280);
    assert_true(kernels_load(&loaded, 0, paths[0], NULL, error) &&
                kernels_load(&loaded, 1, paths[1], NULL, error));
    fails_at_each(counts_kernels, 1);
    fails_at_each(reports_kernels, 3);
    kernels_free(&loaded);
}

static void naming_cases(void **state)
{
    (void)state;
    fails_at_each(names_cases, 70);
    fails_at_each(labels_a_case, 1);
}

/* ---- what a report notes: once for all, so each in a process of its own ---- */

static bool nothing_failed(void)
{
    int there = 1;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    bool right = !is_starved() && noted(&there) == &there && !is_starved() && memory;
    if (memory)
        end_memory(memory);
    free(text);
    return right && !is_starved();
}

static bool memory_failed(void)
{
    int there = 1;
    return noted(NULL) == NULL && is_starved() && noted(&there) == &there && is_starved();
}

/* A stream that was too small when its text was written, and one that is when it is closed. */
static bool a_stream_failed(void)
{
    char room[8];
    FILE *memory = fmemopen(room, sizeof room, "w");
    if (!memory || fputs("more than there is room for", memory) < 0 || fflush(memory) == 0 ||
        !ferror(memory))
        return false;
    end_memory(memory);
    return is_starved();
}

static bool a_close_failed(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (!full || fputs("kept until it is closed", full) < 0 || ferror(full))
        return false;
    end_memory(full);
    return is_starved();
}

static bool holds_in_a_child(bool (*what)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(what() ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void what_failed_is_noted_for_good(void **state)
{
    (void)state;
    assert_true(holds_in_a_child(nothing_failed));
    assert_true(holds_in_a_child(memory_failed));
    assert_true(holds_in_a_child(a_stream_failed));
    assert_true(holds_in_a_child(a_close_failed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),
        cmocka_unit_test(comparing),
        cmocka_unit_test(looking_at_one_side),
        cmocka_unit_test(kernels_of_two_files),
        cmocka_unit_test(naming_cases),
        cmocka_unit_test(what_failed_is_noted_for_good),
    };
    return cmocka_run_group_tests_name("compare: memory that runs out", tests, write_side,
                                       remove_side);
}
