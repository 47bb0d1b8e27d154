/* What a run is made of: --kernels and --trace (on a GPU its kernels, copies and gaps too).
 *
 *     cc -O2 examples/trace.c -o trace && ./trace --kernels --trace timeline.json */
#define GPUBENCH_IMPLEMENTATION
#define GPUBENCH_TRACE_IMPLEMENTATION
#include "gpubench.h"
#include "gpubench_trace.h"

static float values[1 << 16];

static int run(void *context, gpubench_stream stream)
{
    float sum = 0;
    int i;
    (void)context;
    (void)stream;
    gpubench_range_begin("fill");
    for (i = 0; i < 1 << 16; i++)
        values[i] = (float)i;
    gpubench_range_end();
    gpubench_range_begin("sum");
    for (i = 0; i < 1 << 16; i++)
        sum += values[i];
    gpubench_range_end();
    gpubench_keep(sum);
    return GPUBENCH_OK;
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("trace", argc, argv);
    gpubench_case one = gpubench_case_init("fill and sum", run, NULL);
    gpubench_trace(bench);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
