/* What the system's files say of the machine, and what --csv's names mean: each form that they
 * have, and those that they should not. */
#define _GNU_SOURCE
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include "support.h"

/* ---- what files say ---- */

/* What a key is behind a blank, of the first line that begins with all of it. */
static void the_number_behind_a_name(void **state)
{
    static const struct { const char *text, *name; double number; } files[] = {
        {"inactive 7\nactive_x 3\nactive 12\nactive 13\n", "active", 12},
        {"inactive 7\n", "active", 0},
        {"activated 7\n", "active", 0},
        {"active", "active", 0},
        {"active 0.5", "active", 0.5},
        {"42\n43\n", NULL, 42},
        {"many\n", NULL, 0},
        {"", NULL, 0},
        {"", "active", 0}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = support_path("numbers");
        support_write(path, files[i].text);
        assert_true(gpb_number_in(path, files[i].name) == files[i].number);
    }
    assert_true(gpb_number_in(support_path("no/such"), NULL) == 0);
    assert_true(gpb_number_in(support_path("no/such"), "active") == 0);
}

static void expect_cpu(const char *text, const char *expected)
{
    char name[128];
    const char *path = support_path("cpuinfo");
    FILE *file;
    support_write(path, text);
    file = fopen(path, "r");
    assert_non_null(file);
    gpb_parse_cpu_name(file, name, sizeof name);
    fclose(file);
    assert_string_equal(name, expected);
}

/* What an s390 and others write where there is less to read than usual. */
static void processors_that_tell_little(void **state)
{
    (void)state;
    expect_cpu("processor 0: version = FF,  identification = 1,  machine = 3931\n"
               "processor 1: version = FF,  identification = 2,  machine = 8561\n",
               "s390 machine 8561");
    expect_cpu("processor 0: version = FF\n", "unknown CPU");
    expect_cpu("processor 0: version = FF, machine = z16\n", "unknown CPU");
    expect_cpu("model name : a\nprocessor 0: machine = 3931\n", "a");
    expect_cpu("model name :\ncpu : POWER9\n", "POWER9");
    expect_cpu("isa : rv64imafdc\n", "RISC-V rv64imafdc");
    expect_cpu("isa : rv64imafdc\nuarch : sifive,u74-mc\n", "sifive,u74-mc");
    expect_cpu("CPU implementer : 0x41\nCPU part : none\n", "unknown CPU");
    expect_cpu("no colon\n\n", "unknown CPU");
    expect_cpu("", "unknown CPU");
}

/* ---- what --csv names ---- */

static void descriptors_that_csv_names(void **state)
{
    char under_a_file[400];
    const char *path = support_path("rows.csv");
    int before = dup(STDOUT_FILENO), file;
    (void)state;
    assert_int_equal(gpb_csv_stream("-"), STDOUT_FILENO);
    assert_int_equal(gpb_csv_stream("/dev/stdout"), STDOUT_FILENO);
    assert_int_equal(gpb_csv_stream("/dev/stderr"), STDERR_FILENO);
    assert_int_equal(gpb_csv_stream("/dev/fd/5"), 5);
    assert_int_equal(gpb_csv_stream("/proc/self/fd/7"), 7);
    assert_int_equal(gpb_csv_stream("/dev/fd/2147483647"), INT_MAX);
    assert_int_equal(gpb_csv_stream("/dev/fd/2147483648"), GPB_NO_STREAM);
    assert_int_equal(gpb_csv_stream("/dev/fd/x"), GPB_NO_STREAM);
    assert_int_equal(gpb_csv_stream(support_path("none.csv")), GPB_NO_STREAM);
    support_write(path, "");
    assert_int_equal(gpb_csv_stream(path), GPB_NO_STREAM);
    snprintf(under_a_file, sizeof under_a_file, "%s/rows.csv", path);
    assert_int_equal(gpb_csv_stream(under_a_file), GPB_UNKNOWN_STREAM);
    assert_int_equal(errno, ENOTDIR);
    fflush(stdout);
    file = open(path, O_WRONLY);
    dup2(file, STDOUT_FILENO); /* as where the shell's >> made it standard output */
    close(file);
    file = gpb_csv_stream(path);
    close(STDOUT_FILENO);
    errno = 0;
    assert_true(dup2(before, 100) == 100);
    {
        int closed = gpb_csv_stream(path);
        dup2(before, STDOUT_FILENO);
        close(before);
        close(100);
        assert_int_equal(file, STDOUT_FILENO);
        assert_int_equal(closed, GPB_NO_STREAM);
    }
}

/* ---- signals ---- */

/* Of bash(1) and signal(7): these ask a program to end, and leave it the time. */
static void signals_that_ask_to_end(void **state)
{
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static const int others[] = {SIGKILL, SIGSEGV, SIGCHLD, SIGALRM, SIGCONT, SIGXCPU};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof asking / sizeof asking[0]; i++)
        assert_true(gpb_asks_to_end(asking[i]));
    for (i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(gpb_asks_to_end(others[i]));
}

static void signals_have_numbers_and_some_a_name(void **state)
{
    static const struct { int number; const char *text; } known[] = {
        {11, "ended by signal 11 (Segmentation fault)"},
        {6, "ended by signal 6 (Aborted)"},
        {9, "ended by signal 9"},
        {15, "ended by signal 15"},
        {2, "ended by signal 2"},
        {64, "ended by signal 64"}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        char text[80] = "";
        gpb_name_signal(text, sizeof text, known[i].number);
        assert_string_equal(text, known[i].text);
    }
}

/* ---- what is told at the end ---- */

static char *told_by(int (*what)(gpubench *), gpubench *bench, int *code)
{
    const char *path = support_path("told");
    int before = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    *code = what(bench);
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    return support_read(path);
}

/* Where samples are lost, the message names the file with those that are not, if there is one. */
static void samples_so_far_are_named(void **state)
{
    static gpubench bench;
    char temporary[300], path[300];
    char *told;
    int code;
    (void)state;
    snprintf(temporary, sizeof temporary, "%s", support_path("so_far.tmp"));
    snprintf(path, sizeof path, "%s", support_path("none/so_far.csv"));
    bench.suite = "readings";
    bench.samples_temporary = temporary;
    bench.samples_path = path;
    assert_int_equal(gpb_finish_samples(&bench), 0); /* of no case there are samples */
    bench.samples_lost = 1;
    told = told_by(gpb_finish_samples, &bench, &code);
    assert_int_equal(code, -1);
    assert_string_equal(told, "");
    free(told);
    support_write(temporary, "case,sample\n");
    told = told_by(gpb_finish_samples, &bench, &code);
    assert_int_equal(code, -1);
    support_expect_text(told, "the samples so far are in");
    support_expect_text(told, temporary);
    free(told);
    bench.samples_lost = 0;
    snprintf(path, sizeof path, "%s", support_path("so_far.csv"));
    assert_int_equal(gpb_finish_samples(&bench), 0);
    assert_false(support_exists(temporary));
    assert_true(support_exists(path));
    support_write(temporary, "case,sample\n");
    snprintf(path, sizeof path, "%s", support_folder); /* no file takes a folder's name */
    told = told_by(gpb_finish_samples, &bench, &code);
    assert_int_equal(code, -1);
    support_expect_text(told, "--samples");
    support_expect_text(told, "the samples so far are in");
    free(told);
    bench.samples_temporary = NULL;
    bench.samples_lost = 0;
    assert_int_equal(gpb_finish_samples(&bench), 0); /* none were asked for */
}

static int nothing(void *context, gpubench_stream stream)
{
    (void)context;
    (void)stream;
    return 0;
}

static int close_it(gpubench *bench)
{
    return gpubench_close(bench);
}

/* A program without gpubench_trace.h refuses each option that needs it, by its name. */
static void what_is_watched_needs_a_watcher(void **state)
{
    static const char *const options[][2] = {{"--kernels", NULL},
                                             {"--kernels-csv", "kernels.csv"},
                                             {"--memory", NULL},
                                             {"--memory-csv", "memory.csv"},
                                             {"--trace", "trace.json"}};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof options / sizeof options[0]; i++) {
        gpubench_case one = gpubench_case_init("nothing", nothing, NULL);
        char program[] = "readings", option[32], path[300], expected[100];
        char *arguments[] = {program, option, path, NULL};
        gpubench *bench;
        char *told;
        int code;
        snprintf(option, sizeof option, "%s", options[i][0]);
        snprintf(path, sizeof path, "%s", options[i][1] ? support_path(options[i][1]) : "");
        snprintf(expected, sizeof expected, "%s: this program was built without gpubench_trace.h",
                 option);
        if (!options[i][1])
            arguments[2] = NULL;
        bench = gpubench_open("readings", options[i][1] ? 3 : 2, arguments);
        gpubench_measure(bench, &one);
        told = told_by(close_it, bench, &code);
        assert_int_equal(code, 2);
        support_expect_text(told, expected);
        free(told);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_behind_a_name),
        cmocka_unit_test(processors_that_tell_little),
        cmocka_unit_test(descriptors_that_csv_names),
        cmocka_unit_test(signals_that_ask_to_end),
        cmocka_unit_test(signals_have_numbers_and_some_a_name),
        cmocka_unit_test(samples_so_far_are_named),
        cmocka_unit_test(what_is_watched_needs_a_watcher),
    };
    support_start(argv[0]);
    (void)argc;
    return support_stop(cmocka_run_group_tests_name("readings", tests, NULL, NULL));
}
