/* A program as a user's: plain C, one file, beside a header with macros of its own. */
#include "hostile.h"
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

enum { COUNT = 1000 };
struct clamp {
    float most;
    const float *in;
    float *out;
};

static int setup(void *context, gpubench *bench)
{
    struct clamp *c = (struct clamp *)context;
    c->in = (const float *)gpubench_random(bench, "f32", COUNT);
    c->out = (float *)gpubench_alloc(bench, COUNT * sizeof *c->out, GPUBENCH_OUTPUT);
    return gpubench_allocated(bench);
}

static int run(void *context, gpubench_stream stream)
{
    struct clamp *c = (struct clamp *)context;
    int i;
    (void)stream;
    for (i = 0; i < COUNT; i++)
        c->out[i] = min(c->most, max(-c->most, c->in[i]));
    return 0;
}

/* No element of the input is beyond 3.47: such bounds change nothing. */
static int verify(void *context, gpubench *bench)
{
    const struct clamp *c = (const struct clamp *)context;
    return gpubench_compare(bench, c->out, "f32", c->in, "f32", COUNT, 0);
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("dropin", argc, argv);
    struct clamp *c = (struct clamp *)gpubench_own(bench, sizeof *c);
    gpubench_case one = gpubench_case_init("clamp", run, c);
    c->most = 3.47f;
    one.params = gpubench_text(bench, "n=%d", COUNT);
    one.setup = setup;
    one.verify = verify;
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
