// SGEMM_CUDA: cuBLAS and its twelve kernels, C = 0.5 A B + 3 C, on the default stream.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include "runner.cuh"

static cublasHandle_t cublas;

struct sgemm {
    int kernel, size;
    size_t count;
    float *a, *b, *c, *before, *expected;
    void product(int which, float *to) {
        run_kernel(which, size, size, size, .5, a, b, 3, to, cublas);
    }
    void copy(float *to, gpubench_stream stream) {
        cudaMemcpyAsync(to, before, sizeof(float) * count, cudaMemcpyDefault, stream);
    }
    int setup(gpubench *bench) {
        a = gpubench_random<float>(bench, count), b = gpubench_random<float>(bench, count);
        before = gpubench_random<float>(bench, count);
        c = gpubench_alloc<float>(bench, count, GPUBENCH_OUTPUT);
        expected = gpubench_alloc<float>(bench, count);
        if (gpubench_allocated(bench) || (!cublas && cublasCreate(&cublas)))
            return GPUBENCH_OOM;
        copy(expected, nullptr);
        product(0, expected);
        return gpubench_use_stream(bench, nullptr);
    }
    void reset(gpubench_stream stream) { copy(c, stream); }
    void run(gpubench_stream) { product(kernel, c); }
    void verify(gpubench *bench) { gpubench_compare(bench, c, expected, count); }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("sgemm", argc, argv);
    for (int size = 1024; size <= 4096; size *= 2)
        for (int kernel = 0; kernel <= 12; kernel++) {
            sgemm one = {kernel, size, (size_t)size * size};
            gpubench_case c = gpubench_case_of(bench, "sgemm", one);
            c.variant = kernel ? gpubench_text(bench, "kernel%d", kernel) : "cublas";
            c.params = gpubench_text(bench, "m=%d n=%d k=%d", size, size, size);
            c.dtype = "f32", c.flops = 2 * one.count * size;
            gpubench_measure(bench, &c);
        }
    return gpubench_close(bench);
}
