// Five GPU benchmarks with gpubench.h: a copy over sizes, two kernels after each other, an
// update in place, one that launches nothing, one whose launch fails. The first three are
// verified, too.
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

__global__ void copy_kernel(const float *in, float *out, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = in[i];
}
__global__ void scale_kernel(float *x, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) x[i] *= 3;
}
static unsigned blocks(size_t count) { return unsigned((count + 255) / 256); }

static size_t count = 1 << 22;
static float *in, *out;
static void allocate(gpubench *bench) {
    in = gpubench_random<float>(bench, count);
    out = gpubench_alloc<float>(bench, count, GPUBENCH_OUTPUT);
}
static void copy(gpubench_stream s) { copy_kernel<<<blocks(count), 256, 0, s>>>(in, out, count); }
static void scale(gpubench_stream s) { scale_kernel<<<blocks(count), 256, 0, s>>>(out, count); }
static void is_scaled(gpubench *bench) {
    float *host = gpubench_alloc<float>(bench, count, GPUBENCH_PAGEABLE);
    if (!host) return;
    gpubench_copy(bench, host, in, count * sizeof *host);
    for (size_t i = 0; i < count; i++) host[i] *= 3;
    gpubench_compare(bench, out, host, count);
}

int main(int argc, char **argv) {
    static const gpubench_axis sizes = {"n", "2^18..2^26*16"};
    gpubench *bench = gpubench_open("gpu", argc, argv);
    gpubench_case one = gpubench_case_of(
        bench, "copy",
        [](gpubench *b) {
            count = size_t(gpubench_axis_number(b, "n"));
            gpubench_work(b, 2 * count * sizeof(float), 0);
            allocate(b);
        },
        copy, [](gpubench *b) { gpubench_compare(b, out, in, count, 0); });
    gpubench_sweep(bench, &one, 1, &sizes, 1);
    auto setup = [](gpubench *b) { count = 1 << 22, allocate(b); };
    one = gpubench_case_of(
        bench, "two_kernels", setup, [](gpubench_stream s) { copy(s), scale(s); }, is_scaled);
    gpubench_measure(bench, &one);
    one = gpubench_case_of(bench, "in_place", setup, scale, is_scaled);
    one.reset = [](void *, gpubench_stream s) {
        return int(cudaMemcpyAsync(out, in, count * sizeof *out, cudaMemcpyDefault, s));
    };
    gpubench_measure(bench, &one);
    one = gpubench_case_of(bench, "nothing", [] {});
    gpubench_measure(bench, &one);
    one = gpubench_case_of(bench, "fails", [](gpubench_stream s) {
        scale_kernel<<<1, 4096, 0, s>>>(out, 1); // more than fit
    });
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
