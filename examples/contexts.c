/* Several shapes of one function: a context for each, and a text for its params, which the
 * bench frees when it is closed.  cc -o contexts -I. examples/contexts.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
struct shape {
    size_t rows, width;
    float *memory;
};

static int setup(void *context, gpubench *bench) {
    struct shape *s = (struct shape *)context;
    s->memory = (float *)gpubench_random(bench, "f32", s->rows * s->width);
    return gpubench_allocated(bench);
}
static int run(void *context, gpubench_stream stream) {
    const struct shape *s = (const struct shape *)context;
    (void)stream;
    for (size_t row = 1; row < s->rows; row++)
        for (size_t i = 0; i < s->width; i++)
            s->memory[row * s->width + i] += s->memory[(row - 1) * s->width + i];
    return 0;
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("contexts", argc, argv);
    for (size_t rows = 16; rows <= 1024; rows *= 8) {
        struct shape *s = (struct shape *)gpubench_own(bench, sizeof *s);
        gpubench_case c = gpubench_case_init("prefix_sums", run, s);
        s->rows = rows, s->width = 4096 / rows;
        c.setup = setup, c.dtype = "f32", c.flops = rows * s->width;
        c.params = gpubench_text(bench, "rows=%zu width=%zu", rows, s->width);
        gpubench_measure(bench, &c);
    }
    return gpubench_close(bench);
}
