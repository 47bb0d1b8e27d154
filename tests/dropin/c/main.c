/* A program as a user's: plain C, one file, beside a header with macros of its own. */
#include "hostile.h"
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

static int add(void *context, gpubench_stream stream)
{
    int *sum = (int *)context;
    (void)stream;
    *sum = max(*sum, 1);
    gpubench_keep(sum);
    return 0;
}

int main(int argc, char **argv)
{
    int sum = 0;
    gpubench *bench = gpubench_open("dropin", argc, argv);
    gpubench_case one = gpubench_case_init("add", add, &sum);
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
