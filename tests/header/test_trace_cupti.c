/* gpubench_trace.h's GPU half on a substitute for CUPTI, which has seen two launches of
 * one kernel (10 us each, at 1 and 21 us), one of another on another stream (6 to 26 us),
 * a copy (41 to 51 us) and a memset (50 to 51 us). Written for a multiprocessor of
 * compute capability 9.0: 2,048 threads and 65,536 registers, and 132 of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GPUBENCH_TRACE_IMPLEMENTATION
#include "gpubench_trace.h"
#include "fake_cupti/device.h"

const int gpubench_implementation_lacks_GPUBENCH_CUDA = 0;

/* ---- what the header and the runtime would say ---- */

static const char *kernels, *kernels_csv, *memory, *trace, *host_us = "60", *flags = "", *overhead_us = "",
                  *row_bytes = "";

const char *gpubench_given(const gpubench *bench, const char *option)
{
    (void)bench;
    return !strcmp(option, "--kernels")       ? kernels
           : !strcmp(option, "--kernels-csv") ? kernels_csv
           : !strcmp(option, "--memory")      ? memory
           : !strcmp(option, "--trace")       ? trace
                                              : NULL;
}

int gpubench_is_cuda(const gpubench *bench)
{
    (void)bench;
    return 1;
}

/* Two parts, and what a change would make of them. */
void gpubench_for_each_part(gpubench *bench,
                            void (*use)(void *context, const gpubench_part *part), void *context)
{
    static const gpubench_part parts[] = {
        {"inputs", NULL, 1 << 20, 5}, {"states", NULL, 3 << 20, 7}, {"states", "batch x2", 6 << 20, 9}};
    size_t i;
    (void)bench;
    for (i = 0; i < 3; i++)
        use(context, &parts[i]);
}

size_t gpubench_row_count(const gpubench *bench)
{
    (void)bench;
    return 1;
}

const char *gpubench_value(const gpubench *bench, size_t row, const char *column)
{
    (void)bench;
    (void)row;
    return !strcmp(column, "case")        ? "add"
           : !strcmp(column, "status")    ? "ok"
           : !strcmp(column, "mode")      ? "cold"
           : !strcmp(column, "median_us") ? "55.5"
           : !strcmp(column, "host_us")   ? host_us
           : !strcmp(column, "overhead_us") ? overhead_us
           : !strcmp(column, "bytes")       ? row_bytes
           : !strcmp(column, "flags")     ? flags
                                          : "";
}

int gpubench_parse_number(const char *text, double *value)
{
    *value = strtod(text, NULL);
    return *text ? 0 : -1;
}

void gpubench_format_number(double value, char *text)
{
    snprintf(text, 32, "%.10g", value);
}

const char *gpubench_plain(const char *text, char *room, size_t bytes)
{
    snprintf(room, bytes, "%s", text);
    return room;
}

void gpubench_usage_error(gpubench *bench, const char *format, ...)
{
    (void)bench;
    (void)format;
}

static const gpubench_watcher *watcher;

void gpubench_watch(gpubench *bench, const gpubench_watcher *given)
{
    (void)bench;
    watcher = given;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)device;
    memset(properties, 0, sizeof *properties);
    be_of_9_0(properties);
    return cudaSuccess;
}

/* 2 * 2619 MHz * 640 bytes: 3352.32 GB/s. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    *value = attribute == cudaDevAttrMemoryClockRate ? 2619000 : 5120;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = 600;
    *total = 1000;
    return cudaSuccess;
}

/* ---- the tests ---- */

static char folder[] = "/tmp/gpubench-trace-XXXXXX";
static char csv_path[64], trace_path[64];

static int executions = 1; /* of each case */

/* What gpubench.h does of a case, without the rehearsal. */
static int watch_case(const gpubench_case *one)
{
    int i, status = 0;
    for (i = 0; i < executions && status == 0; i++) {
        status = watcher->begin(NULL, one);
        if (status == 0)
            status = watcher->end(NULL, one, 0);
    }
    return status ? status : watcher->tell(NULL, one, "cold");
}

static gpubench_case add(void)
{
    gpubench_case one;
    memset(&one, 0, sizeof one);
    one.name = "add";
    one.variant = one.dtype = one.params = "";
    return one;
}

static int watch(void)
{
    gpubench_case one = add();
    int status = watcher->open(NULL);
    if (status == 0)
        status = watch_case(&one);
    return watcher->close(NULL) | status;
}

static char *contents(const char *path)
{
    static char text[20000];
    FILE *file = fopen(path, "r");
    size_t bytes;
    assert_non_null(file);
    bytes = fread(text, 1, sizeof text - 1, file);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static void assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' does not hold '%s'", text, part);
}

/* Two blocks of 256 threads with 128 registers each fill the registers: 2 of 8 possible.
 * With 32 registers all 8 blocks fit: 264 of them are 264 / (8 * 132) = 0.25 waves. The
 * longer one is (26 - 6) / (20 + 20 + 10 + 1) of the total. */
static void kernels_are_summed_by_name(void **state)
{
    char *text;
    (void)state;
    kernels_csv = csv_path;
    assert_int_equal(watch(), 0);
    text = contents(csv_path);
    assert_holds(text, ",kernel,\"scale<float, 4>\",2,20,10,10,10,0.3921568627,various,256,32,,1,,"
                       "0.25,,,,50,40,55.5,");
    assert_holds(text, ",kernel,add,1,20,20,20,20,0.3921568627,528,256,128,4096,0.25,registers,2,,"
                       ",,50,40,55.5,");
    assert_holds(text, ",copy,host to device,1,10,10,10,10,0.1960784314,,,,,,,,500000,50,,50,40,");
    assert_holds(text, ",memset,memset,1,1,1,1,1,0.01960784314,,,,,,,,1000,1,,50,40,");
    kernels_csv = NULL;
}

/* The run's calls are between 50 and 700 ns: all work belongs to it, 1 to 51 us. The
 * timeline's origin is 50 ns. */
static void the_timeline_has_both_sides(void **state)
{
    char *text;
    (void)state;
    trace = trace_path;
    assert_int_equal(watch(), 0);
    text = contents(trace_path);
    assert_holds(text, "\"ph\":\"X\",\"pid\":2,\"tid\":8,\"name\":\"scale<float, 4>\",\"ts\":0.950,"
                       "\"dur\":10.000,\"args\":{\"grid\":\"264 1 1\"");
    assert_holds(text, "\"pid\":2,\"tid\":9,\"name\":\"add\",\"ts\":5.950,\"dur\":20.000");
    assert_holds(text, "\"pid\":1,\"tid\":1,\"name\":\"cudaLaunchKernel\",\"ts\":0.250,\"dur\":0.090");
    assert_holds(text, "\"pid\":2,\"tid\":0,\"name\":\"add   \",\"ts\":0.950,\"dur\":50.000");
    assert_holds(text, "\"name\":\"memory in use, bytes\"");
    assert_holds(text, "\"args\":{\"value\":400}");
    trace = NULL;
}

static void a_refusal_is_said_with_its_reason(void **state)
{
    (void)state;
    kernels_csv = csv_path;
    assert_int_equal(watch(), 0);
    setenv("FAKE_CUPTI", "denied", 1);
    assert_int_equal(watch(), 2);
    unsetenv("FAKE_CUPTI");
    assert_holds(contents(csv_path), ",kernel,"); /* of the run before */
    kernels_csv = NULL;
}

static void lost_records_are_no_summary(void **state)
{
    (void)state;
    kernels_csv = csv_path;
    setenv("FAKE_CUPTI", "drops", 1);
    assert_int_equal(watch(), 2);
    unsetenv("FAKE_CUPTI");
    assert_holds(contents(csv_path), ",kernel,"); /* of the run before */
    assert_int_equal(unlink(csv_path), 0);
    setenv("FAKE_CUPTI", "drops", 1);
    assert_int_equal(watch(), 2);
    unsetenv("FAKE_CUPTI");
    assert_int_equal(access(csv_path, F_OK), -1);
    assert_int_equal(watch(), 0);
    kernels_csv = NULL;
}

/* Nothing is watched, and the file of before is left alone. */
static void a_missing_library_is_said(void **state)
{
    int major = gpt_cupti_major;
    (void)state;
    kernels_csv = csv_path;
    assert_int_equal(watch(), 0);
    gpt_cupti_major = 999;
    assert_string_equal(gpt_open_cupti(), "libcupti is not found (LD_LIBRARY_PATH or CUDA_HOME "
                                          "names its folder)");
    assert_int_equal(watch(), 2);
    assert_holds(contents(csv_path), ",kernel,");
    gpt_cupti_major = major;
    assert_int_equal(watch(), 0);
    kernels_csv = NULL;
}

static uint64_t case_bytes;

/* The table of one watched case. */
static char *printed(void)
{
    static char text[8000];
    FILE *table = tmpfile();
    size_t bytes;
    gpubench_case one = add();
    one.bytes = case_bytes;
    assert_non_null(table);
    assert_int_equal(watcher->open(NULL), 0);
    gpt.table = table;
    assert_int_equal(watch_case(&one), 0);
    rewind(table);
    bytes = fread(text, 1, sizeof text - 1, table);
    text[bytes] = '\0';
    assert_int_equal(watcher->close(NULL), 0);
    fclose(table);
    return text;
}

/* The first kernel takes 13, 11 and 12 us: 54, 52 and 53 us in all. */
static void the_median_of_several_executions_is_told(void **state)
{
    char *text;
    (void)state;
    kernels_csv = csv_path;
    setenv("FAKE_CUPTI", "varies", 1);
    executions = 3;
    text = printed();
    assert_holds(text, "kernels, copies and memsets: 5, 53.00 us in all");
    assert_holds(text, "the median of 3 executions of 52.00 to 54.00 us");
    assert_holds(contents(csv_path), "\"scale<float, 4>\",2,22,11,10,12,");
    executions = 1;
    unsetenv("FAKE_CUPTI");
    kernels_csv = NULL;
}

/* An empty launch that takes 5 us, in place of which an empty kernel's own 51 us stand
 * (the substitute knows one sort of work only): 55.5 - 5 + 51. */
static void the_sum_is_held_against_the_timed_one(void **state)
{
    gpubench_case one = add();
    (void)state;
    kernels_csv = csv_path;
    overhead_us = "5";
    assert_int_equal(watcher->open(NULL), 0);
    assert_int_equal(watch_case(NULL), 0);
    assert_int_equal(watch_case(&one), 0);
    assert_int_equal(watcher->close(NULL), 0);
    assert_holds(contents(csv_path), ",50,40,55.5,cold,1,51,101.5,");
    assert_int_equal(watch(), 0); /* what was known of it is forgotten */
    assert_holds(contents(csv_path), ",50,40,55.5,cold,1,,,");
    overhead_us = "";
    kernels_csv = NULL;
}

/* Of a case that failed there is nothing to tell, nor is there of it in the next one. */
static void a_failed_case_leaves_nothing(void **state)
{
    gpubench_case one = add();
    (void)state;
    kernels_csv = csv_path;
    assert_int_equal(watcher->open(NULL), 0);
    assert_int_equal(watcher->begin(NULL, &one), 0);
    assert_int_equal(watcher->end(NULL, &one, 0), 0);
    assert_int_equal(watcher->begin(NULL, &one), 0);
    assert_int_equal(watcher->end(NULL, &one, 700), 0);
    assert_int_equal(watch_case(&one), 0);
    assert_int_equal(watcher->close(NULL), 0);
    assert_holds(contents(csv_path), "\"scale<float, 4>\",2,20,10,10,10,");
    assert_holds(contents(csv_path), ",cold,1,");
    kernels_csv = NULL;
}

/* Of five million launches what fits is kept, and the rest is no memory's. */
static void buffers_are_lent_again_and_again_and_never_too_many(void **state)
{
    uint8_t *records[GPT_MOST_BUFFERS + 1];
    size_t bytes, most, i;
    (void)state;
    kernels_csv = csv_path;
    assert_int_equal(watcher->open(NULL), 0);
    for (i = 0; i <= GPT_MOST_BUFFERS; i++) {
        gpt_give_buffer(&records[i], &bytes, &most);
        assert_true((records[i] != NULL) == (i < GPT_MOST_BUFFERS));
        assert_true(bytes == (records[i] ? (size_t)GPT_BUFFER_BYTES : 0));
    }
    for (i = 0; i < GPT_MOST_BUFFERS; i++)
        gpt_take_buffer(NULL, 0, records[i], GPT_BUFFER_BYTES, 0);
    gpt_give_buffer(&records[0], &bytes, &most);
    assert_non_null(records[0]);
    gpt_take_buffer(NULL, 0, records[0], GPT_BUFFER_BYTES, 0);
    assert_int_equal(watcher->close(NULL), 2); /* of no case */
    kernels_csv = NULL;
}

/* 10 of 50 us nothing runs; a copy takes 10 of 51; scale's first grid fills a quarter. */
static void findings_have_their_numbers(void **state)
{
    char *text;
    (void)state;
    kernels = "";
    text = printed();
    assert_holds(text, "waiting for input: nothing ran for 10.0 of 50.0 us in front of copies from");
    assert_holds(text, "low occupancy: add (39 %, 20.0 us) has 128 registers a thread, so that 25 % of");
    assert_null(strstr(text, "waiting: "));
    assert_null(strstr(text, "far from")); /* several kernels do the work */
    assert_holds(text, "copying: 10.0 us, 20 % of all work");
    assert_holds(text, "a small grid: scale<float, 4> (39 %) has 264 blocks, which fill 0.25");
    assert_null(strstr(text, "launch-bound"));
    assert_null(strstr(text, "synchronizing"));
    assert_null(strstr(text, "many small"));
    host_us = "200";
    flags = "ungated unsteady";
    text = printed();
    assert_holds(text, "launch-bound: from an idle device the host needs 200.0 us for what the device "
                       "does in 55.5;");
    assert_null(strstr(text, "synchronizing")); /* all idleness is in front of a copy */
    host_us = "60";
    flags = "";
    kernels = NULL;
}

/* By a parser that is not ours. */
static void assert_is_trace_of(int spans)
{
    char command[256];
    if (system("command -v python3 > /dev/null") != 0)
        return;
    snprintf(command, sizeof command, "python3 tests/header/trace_format.py '%s' %d", trace_path, spans);
    assert_int_equal(system(command), 0);
}

static void watch_trace_of(const char *fake)
{
    trace = trace_path;
    if (fake)
        setenv("FAKE_CUPTI", fake, 1);
    assert_int_equal(watch(), 0);
    unsetenv("FAKE_CUPTI");
    trace = NULL;
}

/* Its run, five calls, three kernels, a copy, a memset, and where the run was on the device. */
static void the_timeline_is_what_viewers_read(void **state)
{
    (void)state;
    watch_trace_of(NULL);
    assert_is_trace_of(12);
}

/* From 28 to 33 us, beside one to 31 on the same stream: both whole, the later one in a lane
 * of its own. */
static void what_overlaps_on_a_stream_has_another_lane(void **state)
{
    (void)state;
    watch_trace_of("overlaps");
    assert_is_trace_of(13);
    assert_holds(contents(trace_path), "\"tid\":100008,\"name\":\"early\",\"ts\":27.950,\"dur\":5.000");
    assert_holds(contents(trace_path), "\"tid\":100008,\"name\":\"thread_name\",\"args\":{\"name\":\"stream 7, lane 2\"}");
}

static void names_of_any_bytes_are_text(void **state)
{
    (void)state;
    watch_trace_of("names");
    assert_is_trace_of(15);
    assert_holds(contents(trace_path), "\"operator \\\"\\\" _k\\\\n\\u0009</script>%s\"");
    assert_holds(contents(trace_path), "\"k\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
    assert_holds(contents(trace_path), "\"<unknown>\"");
}

/* Two launches of two kernels and a copy: 50 us more than the 51 of the rest. */
static void what_a_graph_launched_is_counted_and_shown(void **state)
{
    char *text;
    (void)state;
    kernels_csv = csv_path;
    setenv("FAKE_CUPTI", "graph", 1);
    text = printed();
    unsetenv("FAKE_CUPTI");
    assert_holds(text, "kernels, copies and memsets: 11, 101.00 us in all");
    assert_holds(text, "\n  6 of them by 2 launches of a graph\n");
    assert_holds(contents(csv_path), ",kernel,first,2,20,10,10,10,");
    assert_holds(contents(csv_path), ",copy,device to device,2,10,5,5,5,");
    kernels_csv = NULL;
    watch_trace_of("graph");
    assert_is_trace_of(12 + 6 + 2);
    assert_holds(contents(trace_path), "\"tid\":99999,\"name\":\"graph launch\",\"ts\":99.950,"
                                       "\"dur\":20.000,\"args\":{\"graph\":3,\"nodes\":3}}");
    assert_holds(contents(trace_path), "\"name\":\"second\",\"ts\":104.950,\"dur\":10.000,\"args\":"
                                       "{\"graph\":3,");
}

/* They fill several buffers. */
static void of_many_launches_none_is_lost(void **state)
{
    (void)state;
    kernels_csv = csv_path;
    setenv("FAKE_CUPTI", "many", 1);
    assert_int_equal(watch(), 0);
    assert_holds(contents(csv_path), ",kernel,tiny,100000,100000,1,1,1,1,");
    kernels_csv = NULL;
    watch_trace_of("many");
    assert_is_trace_of(100001);
    unsetenv("FAKE_CUPTI");
}

/* More than there is memory for: no table of a part. */
static void too_many_launches_are_refused(void **state)
{
    (void)state;
    kernels_csv = csv_path;
    setenv("FAKE_CUPTI", "endless", 1);
    assert_int_equal(watch(), 2);
    unsetenv("FAKE_CUPTI");
    assert_int_equal(watch(), 0); /* the next one is whole again */
    kernels_csv = NULL;
}

/* Of what is beyond the most that viewers open, a number is told. */
static void a_timeline_has_an_end(void **state)
{
    (void)state;
    assert_int_equal(unlink(trace_path), 0);
    trace = trace_path;
    assert_int_equal(watcher->open(NULL), 0);
    gpt.span_count = GPT_MOST_SPANS - 2;
    {
        gpubench_case one = add();
        assert_int_equal(watch_case(&one), 0);
    }
    assert_int_equal(watcher->close(NULL), 0);
    trace = NULL;
    assert_is_trace_of(2);
    assert_holds(contents(trace_path), "\"left_out\":\"10\"");
}

/* One kernel of 100 us behind 100 us of nothing: between the two halves of a run that waits
 * inside, or that was all enqueued. */
static void idleness_has_its_reason(void **state)
{
    char *text;
    (void)state;
    kernels = "";
    setenv("FAKE_CUPTI", "gap", 1);
    text = printed();
    assert_holds(text, "  waiting: nothing ran for 100.0 of 300.0 us, though all was enqueued");
    flags = "ungated";
    text = printed();
    assert_holds(text, "  synchronizing: the run waits for the device inside, and nothing ran for "
                       "100.0 of 300.0 us");
    assert_null(strstr(text, "waiting"));
    flags = "";
    unsetenv("FAKE_CUPTI");
    kernels = NULL;
}

/* 100 us for 33.5 MB are 335.2 GB/s: a tenth of the memory's rate. For 167.6 MB, the half. */
static void bytes_are_held_against_the_memorys_rate(void **state)
{
    char *text;
    (void)state;
    kernels = "";
    case_bytes = 33523200;
    setenv("FAKE_CUPTI", "alone", 1);
    text = printed();
    assert_holds(text, "  far from the memory's rate: alone moves the 33.5 MB that it must at 335 GB/s, "
                       "10 % of 3352, though it fills the device");
    case_bytes = 167616000;
    text = printed();
    assert_null(strstr(text, "far from"));
    case_bytes = 0;
    row_bytes = "33523200"; /* setup told them */
    assert_holds(printed(), "moves the 33.5 MB that it must at 335 GB/s");
    row_bytes = "";
    unsetenv("FAKE_CUPTI");
    kernels = NULL;
}

/* Twelve of 1 us and five others, where an empty launch takes 5. */
static void many_small_kernels_are_counted(void **state)
{
    char *text;
    (void)state;
    kernels = "";
    overhead_us = "5";
    setenv("FAKE_CUPTI", "small", 1);
    text = printed();
    assert_holds(text, "many small kernels: 12 of 17 are shorter than an empty launch's 5.0 us; fused");
    assert_holds(text, "(model.habit multi_tensor, habit=optimizer)");
    overhead_us = "";
    unsetenv("FAKE_CUPTI");
    kernels = NULL;
}

/* Memory is the header's to know: libcupti is not asked for. */
static void memory_needs_no_library(void **state)
{
    int major = gpt_cupti_major;
    (void)state;
    memory = "";
    gpt_cupti_major = 999;
    assert_int_equal(watch(), 0);
    gpt_cupti_major = major;
    memory = NULL;
}

static void names_are_shortened(void **state)
{
    char text[] = "void (anonymous namespace)::a<(b)3, c<d(*)(int)> >(x<int>, (anonymous "
                  "namespace)::y)";
    char plain[] = "gemm_64x64";
    (void)state;
    gpt_shorten(text);
    assert_string_equal(text, "a<(b)3, c<d(*)(int)> >");
    gpt_shorten(plain);
    assert_string_equal(plain, "gemm_64x64");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_summed_by_name),
        cmocka_unit_test(the_timeline_has_both_sides),
        cmocka_unit_test(a_refusal_is_said_with_its_reason),
        cmocka_unit_test(lost_records_are_no_summary),
        cmocka_unit_test(a_missing_library_is_said),
        cmocka_unit_test(findings_have_their_numbers),
        cmocka_unit_test(names_are_shortened),
        cmocka_unit_test(memory_needs_no_library),
        cmocka_unit_test(idleness_has_its_reason),
        cmocka_unit_test(bytes_are_held_against_the_memorys_rate),
        cmocka_unit_test(many_small_kernels_are_counted),
        cmocka_unit_test(the_timeline_is_what_viewers_read),
        cmocka_unit_test(what_overlaps_on_a_stream_has_another_lane),
        cmocka_unit_test(names_of_any_bytes_are_text),
        cmocka_unit_test(what_a_graph_launched_is_counted_and_shown),
        cmocka_unit_test(of_many_launches_none_is_lost),
        cmocka_unit_test(too_many_launches_are_refused),
        cmocka_unit_test(a_timeline_has_an_end),
        cmocka_unit_test(the_median_of_several_executions_is_told),
        cmocka_unit_test(the_sum_is_held_against_the_timed_one),
        cmocka_unit_test(a_failed_case_leaves_nothing),
        cmocka_unit_test(buffers_are_lent_again_and_again_and_never_too_many),
    };
    int failed;
    if (argc < 2 || !mkdtemp(folder)) {
        fputs("usage: test_trace_cupti FOLDER (with lib64/libcupti.so.N)\n", stderr);
        return 2;
    }
    setenv("CUDA_HOME", argv[1], 1);
    snprintf(csv_path, sizeof csv_path, "%s/k.csv", folder);
    snprintf(trace_path, sizeof trace_path, "%s/t.json", folder);
    gpubench_trace(NULL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(csv_path);
    (void)unlink(trace_path);
    (void)rmdir(folder);
    return failed;
}
