// llm.c's layernorm_forward.cu: six kernels at six block sizes, on the default stream.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#define main main_of_llmc
#include "layernorm_forward.cu"
#undef main

enum { B = 8, T = 1024, C = 768, ROWS = B * T, COUNT = ROWS * C };
static float in[COUNT], weight[C], bias[C], out[COUNT], mean[ROWS], rstd[ROWS]; // the CPU's

struct layernorm {
    int kernel, block;
    float *d_in, *d_weight, *d_bias, *d_out, *d_mean, *d_rstd;
    void setup(gpubench *bench) {
        d_in = gpubench_upload<float>(bench, in, COUNT);
        d_weight = gpubench_upload<float>(bench, weight, C);
        d_bias = gpubench_upload<float>(bench, bias, C);
        d_out = gpubench_alloc<float>(bench, COUNT, GPUBENCH_OUTPUT);
        d_mean = gpubench_alloc<float>(bench, ROWS, GPUBENCH_OUTPUT);
        d_rstd = gpubench_alloc<float>(bench, ROWS, GPUBENCH_OUTPUT);
        gpubench_use_stream(bench, nullptr);
    }
    void run(gpubench_stream) {
        layernorm_forward(kernel, d_out, d_mean, d_rstd, d_in, d_weight, d_bias, B, T, C, block);
    }
    void verify(gpubench *bench) {
        gpubench_compare(bench, d_out, out, COUNT);
        gpubench_compare(bench, d_mean, mean, ROWS);
        gpubench_compare(bench, d_rstd, rstd, ROWS);
    }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("layernorm_forward", argc, argv);
    gpubench_fill(bench, in, COUNT), gpubench_fill(bench, weight, C), gpubench_fill(bench, bias, C);
    layernorm_forward_cpu(out, mean, rstd, in, weight, bias, B, T, C);
    for (int block = 32; block <= 1024; block *= 2)
        for (int kernel = 1; kernel <= 6; kernel++) {
            gpubench_case c = gpubench_case_of(bench, "layernorm", layernorm{kernel, block});
            c.variant = gpubench_text(bench, "kernel%d", kernel);
            c.params = gpubench_text(bench, "block=%d", block);
            c.bytes = 2 * sizeof in;
            gpubench_measure(bench, &c);
        }
    return gpubench_close(bench);
}
