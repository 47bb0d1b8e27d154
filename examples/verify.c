/* Inputs from host memory and from the seed, a result held against a reference, by
 * norm(output - reference) / norm(reference).  cc -o verify -I. examples/verify.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { COUNT = 1 << 16 };
static const float weights[3] = {0.25f, 0.5f, 0.25f};
static float *in, *out, *weight;

static int setup(void *context, gpubench *bench) {
    (void)context;
    in = (float *)gpubench_random(bench, "f32", COUNT + 2);
    weight = (float *)gpubench_upload(bench, weights, sizeof weights);
    out = (float *)gpubench_alloc(bench, COUNT * sizeof *out, GPUBENCH_OUTPUT);
    return gpubench_allocated(bench); /* whether all three are there */
}
static int run(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    for (int i = 0; i < COUNT; i++)
        out[i] = in[i] * weight[0] + in[i + 1] * weight[1] + in[i + 2] * weight[2];
    return 0;
}
static int verify(void *context, gpubench *bench) {
    static double expected[COUNT];
    (void)context;
    for (int i = 0; i < COUNT; i++)
        expected[i] = 0.25 * ((double)in[i] + 2.0 * (double)in[i + 1] + (double)in[i + 2]);
    return gpubench_compare(bench, out, "f32", expected, "f64", COUNT, GPUBENCH_OF_DTYPE);
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("verify", argc, argv);
    gpubench_case c = gpubench_case_init("smooth", run, NULL);
    c.setup = setup, c.verify = verify, c.dtype = "f32", c.bytes = 2 * COUNT * sizeof(float);
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
