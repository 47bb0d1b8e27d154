/* What was measured, for the program itself: here how much longer a sort of twice as many
 * numbers takes.  cc -o results -I. examples/results.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { MOST = 1 << 14 };
static float numbers[MOST], work[MOST];

static int compare(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}
static int run(void *context, gpubench_stream stream) {
    size_t count = *(const size_t *)context;
    (void)stream;
    memcpy(work, numbers, count * sizeof *work);
    qsort(work, count, sizeof *work, compare);
    gpubench_keep(work);
    return 0;
}
int main(int argc, char **argv) {
    size_t counts[2] = {MOST / 2, MOST}, row;
    double us[2] = {1, 1};
    gpubench *bench = gpubench_open("results", argc, argv);
    gpubench_case pair[2] = {gpubench_case_init("half", run, &counts[0]),
                             gpubench_case_init("whole", run, &counts[1])};
    gpubench_fill(bench, numbers, "f32", MOST);
    gpubench_measure_group(bench, pair, 2);
    gpubench_run(bench); /* gpubench_close would free the rows */
    for (row = 0; row < gpubench_row_count(bench); row++)
        (void)gpubench_parse_number(gpubench_value(bench, row, "median_us"),
                                    &us[!strcmp(gpubench_value(bench, row, "case"), "whole")]);
    if (row == 2) /* none with --list */
        printf("twice as many numbers take %.2f times as long\n", us[1] / us[0]);
    return gpubench_close(bench);
}
