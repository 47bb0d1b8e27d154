#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { BYTES = 1 << 20 };
static void *to, *from;

static int setup(void *context, gpubench *bench) {
    (void)context;
    from = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE);
    to = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return from && to ? GPUBENCH_OK : GPUBENCH_OOM;
}
static int run(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    memcpy(to, from, BYTES);
    return 0;
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("first", argc, argv);
    gpubench_case c = gpubench_case_init("memcpy", run, NULL);
    c.setup = setup, c.bytes = 2 * BYTES; /* read once, written once */
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
