/* A program whose cases CUPTI watches, on the substitutes for the CUDA runtime and for
 * CUPTI, which has seen the same whatever was launched. CUPTI's headers want the toolkit's
 * own beside them. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "faults/describe.h"
#define GPUBENCH_IMPLEMENTATION
#define GPUBENCH_TRACE_IMPLEMENTATION
#include "gpubench.h"
#include "gpubench_trace.h"
#include "faults/fault.h"
#include "fake_nvml/nvml.h"

enum { BYTES = 1024 };

struct fake_nvml fake_nvml = {.present = 1, .watts = 500, .watts_now = 100};
int fake_live_objects(void);

typedef struct buffers {
    void *from, *to;
} buffers;

static int set_up(void *context, gpubench *bench)
{
    buffers *b = context;
    fault_count_cases();
    b->from = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE);
    b->to = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    if (gpubench_allocated(bench) != GPUBENCH_OK)
        return gpubench_allocated(bench);
    return gpubench_category(bench, b->from, BYTES, "inputs");
}

static int run(void *context, gpubench_stream stream)
{
    const buffers *b = context;
    int code;
    gpubench_range_begin("copying");
    code = (int)cudaMemcpyAsync(b->to, b->from, BYTES, cudaMemcpyDefault, (cudaStream_t)stream);
    gpubench_range_end();
    return code;
}

int main(int argc, char **argv)
{
    static buffers contexts[2];
    char home[4096];
    gpubench *bench;
    gpubench_case first = gpubench_case_init("first", run, &contexts[0]);
    gpubench_case last = gpubench_case_init("last", run, &contexts[1]);
    int status;
    snprintf(home, sizeof home, "%s", argv[0]);
    snprintf(home + strlen(dirname(home)), 16, "/../cupti");
    setenv("CUDA_HOME", home, 1);
    bench = gpubench_open("traced", argc, argv);
    first.setup = last.setup = set_up;
    gpubench_trace(bench);
    gpubench_measure(bench, &first);
    gpubench_measure(bench, &last);
    status = gpubench_close(bench);
    if (fake_live_objects() != 0 && !fault_lasts())
        fprintf(stderr, "LEFT: %d objects of the device's\n", fake_live_objects());
    return status;
}
