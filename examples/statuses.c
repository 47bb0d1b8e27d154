/* What a case may say instead of a time, each a row of its own; the others are measured,
 * and the exit status is 1 only for what failed.  cc -o statuses -I. examples/statuses.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
static char *memory;

static int unsupported(void *context, gpubench *bench) {
    (void)context;
    if (!gpubench_is_cuda(bench))
        return gpubench_fail(bench, GPUBENCH_UNSUPPORTED, "needs a GPU");
    return GPUBENCH_OK;
}
static int enough(void *context, gpubench *bench) {
    size_t bytes = *(const size_t *)context;
    memory = (char *)gpubench_alloc(bench, bytes, GPUBENCH_OUTPUT);
    if (!memory) /* GPUBENCH_OOM would fail the program: the row says how much was free */
        return gpubench_fail(bench, GPUBENCH_SKIPPED, "%zu bytes are not there", bytes);
    gpubench_flag(bench, "enough-memory"); /* any word, for the row's flags */
    return GPUBENCH_OK;
}
static int run(void *context, gpubench_stream stream) {
    (void)stream;
    memset(memory, 1, *(const size_t *)context);
    return 0;
}
int main(int argc, char **argv) {
    size_t few = 4096, many = SIZE_MAX / 4;
    gpubench *bench = gpubench_open("statuses", argc, argv);
    gpubench_case c = gpubench_case_init("few", run, &few);
    c.setup = enough;
    gpubench_measure(bench, &c);
    c.name = "many", c.context = &many;
    gpubench_measure(bench, &c);
    c.name = "gpu", c.setup = unsupported;
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
