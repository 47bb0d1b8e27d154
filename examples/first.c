#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

struct buffers { unsigned char *from, *to; size_t bytes; };

static int copy_run(void *context, gpubench_stream stream)
{
    struct buffers *b = context;
    (void)stream;
    memcpy(b->to, b->from, b->bytes);
    return 0;
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("first", argc, argv);
    struct buffers b = {calloc(1, 1 << 20), malloc(1 << 20), 1 << 20};
    gpubench_case copy = gpubench_case_init("copy", copy_run, &b);
    copy.bytes = 2 * b.bytes; /* read and written */
    gpubench_measure(bench, &copy);
    return gpubench_close(bench);
}
