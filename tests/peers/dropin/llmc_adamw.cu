// llm.c's adamw.cu: both kernels, in place, on the default stream.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#define main main_of_llmc
#include "adamw.cu"
#undef main

enum { PARAMETERS, GRADIENTS, MEAN, VARIANCE, ARRAYS, STEP = 10, COUNT = 1 << 20 };
static float before[ARRAYS][COUNT], after[ARRAYS][COUNT]; // one step of the CPU

struct update {
    int kernel;
    float *now[ARRAYS], *kept[ARRAYS];
    void setup(gpubench *bench) {
        for (int i = 0; i < ARRAYS; i++) {
            kept[i] = gpubench_upload<float>(bench, before[i], COUNT);
            now[i] = gpubench_alloc<float>(bench, COUNT, GPUBENCH_OUTPUT);
        }
        gpubench_use_stream(bench, nullptr);
    }
    void reset(gpubench_stream stream) {
        for (int i = 0; i < ARRAYS; i++)
            cudaMemcpyAsync(now[i], kept[i], sizeof before[i], cudaMemcpyDefault, stream);
    }
    void run(gpubench_stream) {
        adamw(kernel, now[PARAMETERS], now[GRADIENTS], now[MEAN], now[VARIANCE], STEP, COUNT);
    }
    void verify(gpubench *bench) {
        for (int i = 0; i < ARRAYS; i++)
            gpubench_compare(bench, now[i], after[i], COUNT);
    }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("adamw", argc, argv);
    gpubench_fill(bench, before[0], ARRAYS * COUNT);
    for (float &v : before[VARIANCE]) v = v * v; // which has no sign
    memcpy(after, before, sizeof after);
    adamw_cpu(after[PARAMETERS], after[GRADIENTS], after[MEAN], after[VARIANCE], STEP, COUNT);
    for (int kernel = 1; kernel <= 2; kernel++) {
        gpubench_case c = gpubench_case_of(bench, "adamw", update{kernel});
        c.variant = gpubench_text(bench, "kernel%d", kernel);
        c.bytes = 7 * sizeof before[0]; // four arrays read, three written
        gpubench_measure(bench, &c);
    }
    return gpubench_close(bench);
}
