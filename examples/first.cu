#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { COUNT = 1 << 24 };
static float *x, *y;

__global__ void square(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * in[i];
}
static int setup(void *, gpubench *bench) {
    x = (float *)gpubench_alloc(bench, COUNT * sizeof *x, GPUBENCH_DEVICE);
    y = (float *)gpubench_alloc(bench, COUNT * sizeof *y, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return x && y ? GPUBENCH_OK : GPUBENCH_OOM;
}
static int run(void *, gpubench_stream stream) {
    square<<<COUNT / 256, 256, 0, stream>>>(x, y);
    return cudaGetLastError();
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("first", argc, argv);
    gpubench_case c = gpubench_case_init("square", run, NULL);
    c.setup = setup, c.bytes = 2 * COUNT * sizeof(float); /* read once, written once */
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
