/* Two ways to sum, over sizes. --axis n=2^20..2^24 measures others.
 *   cc -O2 -o sweep sweep.c && ./sweep --axis stride=1 */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

struct sum {
    size_t n, stride;
    double *values, total;
};

static int setup(void *context, gpubench *bench)
{
    struct sum *s = context;
    s->n = (size_t)gpubench_axis_number(bench, "n");
    s->stride = (size_t)gpubench_axis_number(bench, "stride");
    gpubench_work(bench, s->n * sizeof *s->values, s->n); /* bytes and operations of one run */
    s->values = gpubench_alloc(bench, s->n * sizeof *s->values, GPUBENCH_DEVICE);
    for (size_t i = 0; s->values && i < s->n; i++)
        s->values[i] = 1;
    return s->values ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int one_sum(void *context, gpubench_stream stream)
{
    struct sum *s = context;
    (void)stream;
    s->total = 0;
    for (size_t start = 0; start < s->stride; start++)
        for (size_t i = start; i < s->n; i += s->stride)
            s->total += s->values[i];
    return 0;
}

static int four_sums(void *context, gpubench_stream stream)
{
    struct sum *s = context;
    double sums[4] = {0};
    (void)stream;
    for (size_t start = 0; start < s->stride; start++)
        for (size_t i = start, turn = 0; i < s->n; i += s->stride, turn++)
            sums[turn % 4] += s->values[i];
    s->total = sums[0] + sums[1] + sums[2] + sums[3];
    return 0;
}

static int verify(void *context, gpubench *bench)
{
    const struct sum *s = context;
    double error = s->total - (double)s->n;
    return gpubench_check(bench, error < 0 ? -error : error, 0);
}

int main(int argc, char **argv)
{
    static const gpubench_axis axes[] = {{"stride", "1,16"}, {"n", "2^10..2^16*8"}};
    struct sum contexts[2];
    gpubench *bench = gpubench_open("sweep", argc, argv);
    gpubench_case ways[] = {gpubench_case_init("sum", one_sum, &contexts[0]),
                            gpubench_case_init("sum", four_sums, &contexts[1])};
    ways[0].variant = "one";
    ways[1].variant = "four";
    for (int i = 0; i < 2; i++) {
        ways[i].dtype = "f64";
        ways[i].setup = setup;
        ways[i].verify = verify;
    }
    gpubench_sweep(bench, ways, 2, axes, 2);
    return gpubench_close(bench);
}
