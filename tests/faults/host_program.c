/* A program that uses what gpubench.h and gpubench_trace.h offer on the host. */
#define GPUBENCH_IMPLEMENTATION
#define GPUBENCH_TRACE_IMPLEMENTATION
#include "gpubench.h"
#include "gpubench_trace.h"
#include "faults/fault.h"

enum { COUNT = 1000 };

typedef struct numbers {
    double *in, *out;
    size_t count;
} numbers;

static int set_up(void *context, gpubench *bench)
{
    numbers *n = context;
    const char *vanishing = getenv("VANISHING");
    if (vanishing && mkdir("began", 0700) != 0) /* a folder that goes in the second process */
        rename(vanishing, "vanished");
    fault_count_cases();
    n->count = COUNT;
    n->in = gpubench_random(bench, "f64", COUNT);
    n->out = gpubench_alloc(bench, COUNT * sizeof *n->out, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    gpubench_counter(bench, "elements", COUNT);
    return gpubench_allocated(bench);
}

static int set_up_swept(void *context, gpubench *bench)
{
    int code = set_up(context, bench);
    ((numbers *)context)->count = (size_t)gpubench_axis_number(bench, "n");
    gpubench_work(bench, 16 * (uint64_t)((numbers *)context)->count, 0);
    return code;
}

static int run(void *context, gpubench_stream stream)
{
    const numbers *n = context;
    size_t i;
    (void)stream;
    gpubench_range_begin("copying");
    for (i = 0; i < n->count; i++)
        n->out[i] = n->in[i];
    gpubench_range_end();
    return 0;
}

static int verify(void *context, gpubench *bench)
{
    const numbers *n = context;
    return gpubench_compare(bench, n->out, "f64", n->in, "f64", n->count, 0);
}

int main(int argc, char **argv)
{
    static const gpubench_axis axes[] = {{"n", "10,100"}};
    static numbers contexts[5];
    gpubench_case cases[5];
    gpubench *bench = gpubench_open("faulty", argc, argv);
    const char *const names[] = {"first", "left", "right", "swept", "last"};
    size_t i;
    for (i = 0; i < 5; i++) {
        cases[i] = gpubench_case_init(names[i], run, &contexts[i]);
        cases[i].setup = i == 3 ? set_up_swept : set_up;
        cases[i].verify = verify;
        cases[i].bytes = 16 * COUNT;
    }
    gpubench_trace(bench);
    gpubench_measure(bench, &cases[0]);
    gpubench_measure_group(bench, &cases[1], 2);
    gpubench_sweep(bench, &cases[3], 1, axes, 1);
    gpubench_measure(bench, &cases[4]);
    return gpubench_close(bench);
}
