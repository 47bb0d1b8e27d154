/* Kernels that are launched on the default stream: setup says so in one line, and what is
 * measured stays as it is. nvcc -o default_stream -I. examples/default_stream.cu */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
enum { COUNT = 1 << 24 };
static float *x;

__global__ void scale(float *x, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] *= factor;
}
static void scale_all(float factor) { /* as it stands in the code that is measured */
    scale<<<COUNT / 256, 256>>>(x, factor);
}
static int setup(void *, gpubench *bench) {
    x = (float *)gpubench_alloc(bench, COUNT * sizeof *x, GPUBENCH_DEVICE | GPUBENCH_OUTPUT);
    return x ? gpubench_use_stream(bench, NULL) : GPUBENCH_OOM; /* or a stream of its own */
}
static int run(void *, gpubench_stream) {
    scale_all(2);
    return cudaGetLastError();
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("default_stream", argc, argv);
    gpubench_case c = gpubench_case_init("scale", run, NULL);
    c.setup = setup, c.bytes = 2 * COUNT * sizeof(float); /* read once, written once */
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
