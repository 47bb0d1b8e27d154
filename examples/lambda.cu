#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
__global__ void square(const float *in, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * in[i];
}
int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("lambda", argc, argv);
    const int count = 1 << 24;
    float *x, *y;
    for (int block = 64; block <= 1024; block *= 2) {
        gpubench_case c = gpubench_case_of(bench, "square",
            [&](gpubench *b) {
                x = gpubench_random<float>(b, count);
                y = gpubench_alloc<float>(b, count, GPUBENCH_OUTPUT);
            },
            [=, &x, &y](gpubench_stream s) { square<<<count / block, block, 0, s>>>(x, y); });
        c.params = gpubench_text(bench, "block=%d", block);
        c.bytes = 2ull * count * sizeof(float); // read once, written once
        gpubench_measure(bench, &c);
    }
    return gpubench_close(bench);
}
