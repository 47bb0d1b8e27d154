/* A program's own options: switches, values, arguments, defaults of standard options. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

static const char *shape, *sorted, *seconds, *modes, *file, *more;

static const gpubench_option options[] = {{"--shape", "LIST", "sizes to measure", &shape},
                                          {"-s", NULL, "sort first", &sorted},
                                          {"--max-time", NULL, NULL, &seconds},
                                          {"--mode", NULL, NULL, &modes},
                                          {"FILE", NULL, "what to read", &file},
                                          {"MORE...", NULL, "other files", &more}};

static int run(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

/* The handle of a program with so many of the options, in their order. */
static gpubench *open_with(size_t count, const char *const *words)
{
    static char *argv[MOST_ARGUMENTS];
    int argc = 1;
    argv[0] = (char *)(uintptr_t)"test";
    for (; *words; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    return gpubench_open_with("test", options, count, argc, argv);
}

#define OPEN_WITH(count, ...) open_with(count, (const char *const[]){__VA_ARGS__, NULL})

static int close_listed(gpubench *bench)
{
    gpubench_case one = gpubench_case_init("nothing", run, NULL);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}

static int forget(void **state)
{
    (void)state;
    shape = sorted = seconds = modes = file = more = NULL;
    return 0;
}

static void what_is_given_is_set(void **state)
{
    (void)state;
    shape = "default";
    file = "default";
    more = "unused";
    assert_int_equal(close_listed(OPEN_WITH(6, "--list", "-s", "--shape=a=b", "in", "x", "y")), 0);
    assert_string_equal(shape, "a=b");
    assert_non_null(sorted);
    assert_string_equal(file, "in");
    assert_string_equal(more, "x");
    assert_null(seconds);
}

static void what_is_not_given_keeps_its_default(void **state)
{
    (void)state;
    shape = "64";
    file = "stdin";
    assert_int_equal(close_listed(OPEN_WITH(5, "--list")), 0);
    assert_string_equal(shape, "64");
    assert_string_equal(file, "stdin");
    assert_null(sorted);
}

static void a_program_has_defaults_of_its_own(void **state)
{
    gpubench *bench;
    (void)state;
    seconds = "0.125";
    modes = "hot";
    bench = OPEN_WITH(4, "--list");
    assert_true(bench->settings.max_time_s * 8 == 1);
    assert_int_equal(bench->settings.modes, GPUBENCH_HOT);
    assert_int_equal(close_listed(bench), 0);
    bench = OPEN_WITH(4, "--list", "--max-time", "0.5", "--mode=cold");
    assert_true(bench->settings.max_time_s * 2 == 1);
    assert_int_equal(bench->settings.modes, GPUBENCH_COLD);
    assert_string_equal(seconds, "0.5"); /* for the program to see */
    assert_int_equal(close_listed(bench), 0);
}

static void all_arguments_can_be_read(void **state)
{
    gpubench *bench;
    (void)state;
    more = "";
    bench = OPEN_WITH(6, "a", "--list", "-", "--", "--list", "-s");
    assert_string_equal(gpubench_argument(bench, 0), "a");
    assert_string_equal(gpubench_argument(bench, 1), "-");
    assert_string_equal(gpubench_argument(bench, 2), "--list");
    assert_string_equal(gpubench_argument(bench, 3), "-s");
    assert_null(gpubench_argument(bench, 4));
    assert_null(sorted);
    assert_int_equal(close_listed(bench), 0);
}

/* ---- what is wrong is named, and ends with 2 ---- */

/* What is said of it on standard error. */
static char *refusal(size_t count, const char *const *words)
{
    const char *path = support_path("said");
    int before = dup(STDERR_FILENO), said = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), status;
    gpubench *bench;
    fflush(stderr);
    dup2(said, STDERR_FILENO);
    bench = open_with(count, words);
    status = close_listed(bench);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    close(said);
    assert_int_equal(status, 2);
    return support_read(path);
}

#define EXPECT_REFUSED(count, message, ...)                                            \
    do {                                                                               \
        char *said = refusal(count, (const char *const[]){__VA_ARGS__, NULL});         \
        assert_string_equal(said, "test: " message "\n");                              \
        free(said);                                                                    \
        forget(NULL);                                                                  \
    } while (0)

static void wrong_words_are_named(void **state)
{
    (void)state;
    EXPECT_REFUSED(4, "--what: unknown option (--help lists them)", "--what");
    EXPECT_REFUSED(4, "-x: unknown option (--help lists them)", "-x");
    EXPECT_REFUSED(4, "word: unknown option (--help lists them)", "word");
    EXPECT_REFUSED(4, "--list: unknown option (--help lists them)", "--", "--list");
    EXPECT_REFUSED(4, "-s=1: takes no value", "-s=1");
    EXPECT_REFUSED(4, "-s: given twice", "-s", "-s");
    EXPECT_REFUSED(4, "--shape: wants a value", "--list", "--shape");
    EXPECT_REFUSED(5, "FILE is missing (--help says what it is)", "--list");
    EXPECT_REFUSED(5, "b: one argument too many (--help lists them)", "a", "b");
    EXPECT_REFUSED(6, "MORE... is missing (--help says what it is)", "a");
}

static void a_default_that_cannot_be_is_named(void **state)
{
    (void)state;
    seconds = "soon";
    EXPECT_REFUSED(4, "--max-time 'soon': wants a number above 0 and up to 86400", "--list");
}

static void an_axis_has_its_defaults_in_the_sweep(void **state)
{
    static const char *text = "n=1";
    const gpubench_option axis = {"--axis", NULL, NULL, &text};
    char *argv[] = {(char *)(uintptr_t)"test", NULL};
    (void)state;
    assert_int_equal(close_listed(gpubench_open_with("test", &axis, 1, 1, argv)), 2);
}

/* ---- help ---- */

static void help_shows_them(void **state)
{
    outcome result = RUN("options", "--help", "--letters", "7");
    (void)state;
    support_expect_status(&result, 0);
    support_expect_text(result.out, "options [options] [WORD]\n\nMeasures the cases of ");
    support_expect_text(result.out, "  --letters N                of the alphabet, 1 to 26 "
                                    "(default 2)\n");
    support_expect_text(result.out, "  --backwards                from the end\n");
    support_expect_text(result.out, "  WORD                       what to count (default aab)\n");
    support_expect_text(result.out, " interval (default 0.5) (here 2)\n");
    assert_null(strstr(strstr(result.out, "--precision") + 1, "--precision")); /* once */
    support_free_outcome(&result);
}

#define OPTION_TEST(name) cmocka_unit_test_setup(name, forget)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        OPTION_TEST(what_is_given_is_set),
        OPTION_TEST(what_is_not_given_keeps_its_default),
        OPTION_TEST(a_program_has_defaults_of_its_own),
        OPTION_TEST(all_arguments_can_be_read),
        OPTION_TEST(wrong_words_are_named),
        OPTION_TEST(a_default_that_cannot_be_is_named),
        OPTION_TEST(an_axis_has_its_defaults_in_the_sweep),
        OPTION_TEST(help_shows_them),
    };
    (void)argc;
    support_start(argv[0]);
    return support_stop(cmocka_run_group_tests_name("options", tests, NULL, NULL));
}
