/* Variants of one case, side by side: their samples take turns, so that both see the same
 * clocks, and the table says which is how much faster.  cc -o group -I. examples/group.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { SIDE = 512 };
static float matrix[SIDE][SIDE];

static int by_rows(void *context, gpubench_stream stream) {
    float sum = 0;
    (void)context, (void)stream;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            sum += matrix[row][column];
    gpubench_keep(sum);
    return 0;
}
static int by_columns(void *context, gpubench_stream stream) {
    float sum = 0;
    (void)context, (void)stream;
    for (int column = 0; column < SIDE; column++)
        for (int row = 0; row < SIDE; row++)
            sum += matrix[row][column];
    gpubench_keep(sum);
    return 0;
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("group", argc, argv);
    gpubench_fill(bench, matrix, "f32", SIDE * SIDE);
    gpubench_case pair[2] = {gpubench_case_init("sum", by_rows, NULL),
                             gpubench_case_init("sum", by_columns, NULL)};
    pair[0].variant = "rows", pair[1].variant = "columns";
    pair[0].bytes = pair[1].bytes = sizeof matrix;
    gpubench_measure_group(bench, pair, 2);
    return gpubench_close(bench);
}
