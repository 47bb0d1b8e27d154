// fast.cu's matmul.cu: cuBLAS and its twelve kernels for sm_90a, on the default stream.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#define main main_of_fast
#include "matmul.cu"
#undef main

enum { SIZE = 8192, COUNT = SIZE * SIZE };
// One set for all: the kernels keep descriptors of the first memory that they are given.
static bf16 *a, *b, *c, *expected;

struct product {
    int kernel;
    int setup(gpubench *bench) {
        bf16 **const all[] = {&a, &b, &c, &expected};
        for (bf16 **memory : all)
            if (!*memory && cudaMalloc((void **)memory, sizeof(bf16) * COUNT))
                return GPUBENCH_OOM;
        gpubench_fill(bench, a, COUNT), gpubench_fill(bench, b, COUNT);
        if (!cublas_handle)
            cublasCreate(&cublas_handle);
        run_kernel(0, SIZE, SIZE, SIZE, a, b, expected);
        gpubench_output(bench, c, sizeof(bf16) * COUNT);
        return gpubench_use_stream(bench, nullptr);
    }
    void run(gpubench_stream) { run_kernel(kernel, SIZE, SIZE, SIZE, a, b, c); }
    void verify(gpubench *bench) { gpubench_compare(bench, c, expected, COUNT); }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("fast", argc, argv);
    for (int kernel = 0; kernel <= 12; kernel++) {
        gpubench_case c = gpubench_case_of(bench, "matmul", product{kernel});
        c.variant = kernel ? gpubench_text(bench, "kernel%d", kernel) : "cublas";
        c.dtype = "bf16", c.params = "m=8192 n=8192 k=8192", c.flops = 2ull * COUNT * SIZE;
        if (kernel == 1)
            c.verify = nullptr; // it takes B in another layout, and matmul.cu checks it neither
        gpubench_measure(bench, &c);
    }
    return gpubench_close(bench);
}
