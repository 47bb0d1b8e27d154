// llm.c's attention_forward.cu: its kernels without cuDNN, on the default stream. kernel2
// is a mismatch: it adds 0 times what stands in its output already, and here that is NaN.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#define main main_of_llmc
#include "attention_forward.cu"
#undef main

enum { B = 8, T = 1024, C = 768, NH = 12, COUNT = B * T * C, SCORES = B * NH * T * T };
static float in[3 * COUNT], out[COUNT], scores[2][SCORES]; // what the CPU takes and gives

struct attention {
    int kernel, block;
    float *d_in, *d_out, *qkvr, *vaccum, *preatt, *att;
    void setup(gpubench *bench) {
        if (!cublas_handle) { // the first: the reference takes seconds, --list shall not
            setup_main();
            attention_forward_cpu(out, scores[0], scores[1], in, B, T, C, NH);
        }
        d_in = gpubench_upload<float>(bench, in, 3 * COUNT);
        d_out = gpubench_alloc<float>(bench, COUNT, GPUBENCH_OUTPUT);
        qkvr = gpubench_alloc<float>(bench, 3 * COUNT);
        vaccum = gpubench_alloc<float>(bench, COUNT);
        preatt = gpubench_alloc<float>(bench, SCORES), att = gpubench_alloc<float>(bench, SCORES);
        gpubench_use_stream(bench, nullptr);
    }
    void run(gpubench_stream) {
        attention_forward(kernel, d_out, nullptr, vaccum, qkvr, preatt, att, d_in, B, T, C, NH,
                          block);
    }
    void verify(gpubench *bench) { // bf16 from kernel 5 on, tf32 before
        gpubench_compare(bench, d_out, out, COUNT, kernel >= 5 ? 1e-2 : 1e-3);
    }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("attention_forward", argc, argv);
    gpubench_fill(bench, in, 3 * COUNT);
    for (int block = 32; block <= 512; block *= 2)
        for (int kernel = 1; kernel <= 5; kernel++) {
            gpubench_case c = gpubench_case_of(bench, "attention", attention{kernel, block});
            c.variant = gpubench_text(bench, "kernel%d", kernel);
            c.params = gpubench_text(bench, "block=%d", block);
            c.flops = 2ull * SCORES * (C / NH); // causal: half of two products
            gpubench_measure(bench, &c);
        }
    return gpubench_close(bench);
}
