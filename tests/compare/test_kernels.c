/* Two files of --kernels-csv, written here: which kernel moved is known by hand. */
#define _POSIX_C_SOURCE 200809L

#include "../../compare/kernels.h"
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char header[] = "kernels_schema,suite,case,variant,backend,dtype,params,kind,name,launches,total_us\n";

static char paths[2][40];

static void write_file(int side, const char *rows)
{
    FILE *file = fopen(paths[side], "w");
    assert_non_null(file);
    fputs(header, file);
    fputs(rows, file);
    assert_int_equal(fclose(file), 0);
}

/* What loading both says: "" when it went well. */
static const char *load(struct kernels *kernels, const regex_t *filter)
{
    static char error[kernels_error_capacity];
    *kernels = (struct kernels){0};
    error[0] = '\0';
    for (int side = 0; side < 2; side++)
        if (!kernels_load(kernels, side, paths[side], filter, error))
            break;
    return error;
}

static char *report(const struct kernels *kernels, size_t limit)
{
    static char text[4000];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_true(kernels_report(out, kernels, limit));
    assert_int_equal(fclose(out), 0);
    return text;
}

/* Asserts that the parts stand in the text, in this order. */
static void assert_in_order(const char *text, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(text, parts[i]);
        if (!found)
            fail_msg("'%s' is missing, or not behind the part before it", parts[i]);
        text = found + strlen(parts[i]);
    }
}

/* Case b: 10 + 20 + 5 = 35 us before, 10 + 28 + 3 = 41 us now; case a 2 us both times. */
static void what_moved_most_stands_first(void **state)
{
    struct kernels kernels;
    (void)state;
    write_file(0, "1,s,a,v,cuda,f32,n=1,kernel,k,1,2\n"
                  "1,s,b,v,cuda,f32,n=1,kernel,same,1,10\n"
                  "1,s,b,v,cuda,f32,n=1,kernel,\"slow<1, 2>\",2,20\n"
                  "1,s,b,v,cuda,f32,n=1,copy,old copy,1,5\n");
    write_file(1, "1,s,b,v,cuda,f32,n=1,kernel,\"slow<1, 2>\",3,28\n"
                  "1,s,b,v,cuda,f32,n=1,kernel,same,1,10\n"
                  "1,s,b,v,cuda,f32,n=1,memset,fill,1,3\n"
                  "1,s,a,v,cuda,f32,n=1,kernel,k,1,2\n");
    assert_string_equal(load(&kernels, NULL), "");
    assert_int_equal(kernels_common_cases(&kernels), 2);
    const char *const parts[] = {
        "      35.00       41.00       +6.00    +17.1 %  s b v cuda f32 n=1\n",
        "      20.00       28.00       +8.00    +40.0 %    kernel slow<1, 2> (3 launches, 2 before)\n",
        "       5.00        gone       -5.00               copy old copy\n",
        "        new        3.00       +3.00               memset fill\n",
        "      10.00       10.00       +0.00     +0.0 %    kernel same\n",
        "       2.00        2.00       +0.00     +0.0 %  s a v cuda f32 n=1\n",
    };
    assert_in_order(report(&kernels, 0), parts, sizeof parts / sizeof parts[0]);
    assert_in_order(report(&kernels, 1), (const char *const[]){"s b v", "and 1 more cases"}, 2);
    assert_null(strstr(report(&kernels, 1), "s a v"));
    kernels_free(&kernels);
}

/* 9 us are the run's: the 4 us of its part are among them. */
static void ranges_are_not_counted_twice(void **state)
{
    struct kernels kernels;
    (void)state;
    const char rows[] = "1,s,a,,cpu,,,range,run,1,9\n1,s,a,,cpu,,,range,part,2,4\n";
    write_file(0, rows);
    write_file(1, rows);
    assert_string_equal(load(&kernels, NULL), "");
    assert_in_order(report(&kernels, 0), (const char *const[]){"       9.00        9.00       +0.00     +0.0 %  s a cpu\n"}, 1);
    kernels_free(&kernels);
}

/* A part without its run adds to no sum, and its case is on both sides all the same. */
static void a_case_of_parts_alone_is_there(void **state)
{
    struct kernels kernels;
    (void)state;
    const char rows[] = "1,s,a,,cpu,,,range,part,2,4\n";
    write_file(0, rows);
    write_file(1, rows);
    assert_string_equal(load(&kernels, NULL), "");
    assert_int_equal(kernels_common_cases(&kernels), 1);
    const char *const parts[] = {"       0.00        0.00       +0.00             s a cpu\n",
                                 "       4.00        4.00       +0.00     +0.0 %    range part\n"};
    assert_in_order(report(&kernels, 0), parts, 2);
    kernels_free(&kernels);
}

/* Two of 1e308 are beyond the largest number on both sides; 1 to 3 us is what moved. */
static void sums_beyond_all_numbers_do_not_move(void **state)
{
    struct kernels kernels;
    (void)state;
    write_file(0, "1,s,a,,cuda,,,kernel,k,1,1e308\n1,s,a,,cuda,,,kernel,l,1,1e308\n1,s,b,,cuda,,,kernel,k,1,1\n");
    write_file(1, "1,s,a,,cuda,,,kernel,k,1,1e308\n1,s,a,,cuda,,,kernel,l,1,1e308\n1,s,b,,cuda,,,kernel,k,1,3\n");
    assert_string_equal(load(&kernels, NULL), "");
    assert_in_order(report(&kernels, 0), (const char *const[]){"  s b cuda\n", "  s a cuda\n"}, 2);
    kernels_free(&kernels);
}

static void a_filter_takes_cases(void **state)
{
    struct kernels kernels;
    regex_t filter;
    (void)state;
    write_file(0, "1,s,a,,cuda,,,kernel,k,1,2\n1,s,b,,cuda,,,kernel,k,1,2\n");
    write_file(1, "1,s,a,,cuda,,,kernel,k,1,2\n1,s,b,,cuda,,,kernel,k,1,2\n");
    assert_int_equal(regcomp(&filter, "^s b", REG_EXTENDED | REG_NOSUB), 0);
    assert_string_equal(load(&kernels, &filter), "");
    assert_int_equal(kernels_common_cases(&kernels), 1);
    regfree(&filter);
    kernels_free(&kernels);
}

static void assert_refused(const char *rows, const char *why)
{
    struct kernels kernels;
    write_file(1, rows);
    const char *error = load(&kernels, NULL);
    if (!strstr(error, why))
        fail_msg("'%s' does not hold '%s'", error, why);
    kernels_free(&kernels);
}

static void faults_are_named_with_their_line(void **state)
{
    (void)state;
    write_file(0, "1,s,a,,cuda,,,kernel,k,1,2\n");
    assert_refused("2,s,a,,cuda,,,kernel,k,1,2\n", ":2: column 'kernels_schema': this reads schema 1");
    assert_refused("1,s,a,,cuda,,,kernel,k,1,x\n", ":2: column 'total_us' holds no time");
    assert_refused("1,s,a,,cuda,,,kernel,k,1,-1\n", ":2: column 'total_us' holds no time");
    assert_refused("1,s,a,,cuda,,,kernel,k,0,1\n", ":2: column 'launches' holds no number of them");
    assert_refused("1,s,a,,cuda,,,kernel,k,1,2\n1,s,a,,cuda,,,kernel,k,1,2\n", ":3: this kernel of this case stands there twice");
    assert_refused("1,s,a\n", ":2");
    assert_int_equal(unlink(paths[1]), 0);
    struct kernels kernels;
    assert_non_null(strstr(load(&kernels, NULL), paths[1]));
    kernels_free(&kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moved_most_stands_first),
        cmocka_unit_test(ranges_are_not_counted_twice),
        cmocka_unit_test(a_case_of_parts_alone_is_there),
        cmocka_unit_test(sums_beyond_all_numbers_do_not_move),
        cmocka_unit_test(a_filter_takes_cases),
        cmocka_unit_test(faults_are_named_with_their_line),
    };
    char folder[] = "/tmp/gpubench-kernels-XXXXXX";
    if (!mkdtemp(folder))
        return 2;
    for (int side = 0; side < 2; side++)
        snprintf(paths[side], sizeof paths[side], "%s/%d.csv", folder, side);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int side = 0; side < 2; side++)
        (void)unlink(paths[side]);
    (void)rmdir(folder);
    return failed;
}
