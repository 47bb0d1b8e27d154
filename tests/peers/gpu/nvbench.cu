// Five GPU benchmarks with NVBench: a copy over sizes, two kernels after each other, an
// update in place, one that launches nothing, one whose launch fails.
#include <nvbench/nvbench.cuh>
#include <thrust/device_vector.h>

__global__ void copy_kernel(const float *in, float *out, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) out[i] = in[i];
}
__global__ void scale_kernel(float *x, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) x[i] *= 3;
}
static unsigned blocks(size_t count) { return unsigned((count + 255) / 256); }

void copy(nvbench::state &state) {
    const size_t count = size_t(state.get_int64("n"));
    thrust::device_vector<float> in(count), out(count);
    state.add_global_memory_reads<float>(count);
    state.add_global_memory_writes<float>(count);
    state.exec([&](nvbench::launch &launch) {
        copy_kernel<<<blocks(count), 256, 0, launch.get_stream()>>>(in.data().get(),
                                                                    out.data().get(), count);
    });
}
NVBENCH_BENCH(copy).add_int64_power_of_two_axis("n", nvbench::range(18, 26, 4));

void two_kernels(nvbench::state &state) {
    const size_t count = 1 << 22;
    thrust::device_vector<float> in(count), out(count);
    state.exec([&](nvbench::launch &launch) {
        copy_kernel<<<blocks(count), 256, 0, launch.get_stream()>>>(in.data().get(),
                                                                    out.data().get(), count);
        scale_kernel<<<blocks(count), 256, 0, launch.get_stream()>>>(out.data().get(), count);
    });
}
NVBENCH_BENCH(two_kernels);

void in_place(nvbench::state &state) {
    const size_t count = 1 << 22;
    thrust::device_vector<float> before(count, 1), x(count);
    state.exec(nvbench::exec_tag::timer, [&](nvbench::launch &launch, auto &timer) {
        cudaMemcpyAsync(x.data().get(), before.data().get(), count * sizeof(float),
                        cudaMemcpyDefault, launch.get_stream());
        timer.start();
        scale_kernel<<<blocks(count), 256, 0, launch.get_stream()>>>(x.data().get(), count);
        timer.stop();
    });
}
NVBENCH_BENCH(in_place);

void nothing(nvbench::state &state) {
    state.exec([](nvbench::launch &) {});
}
NVBENCH_BENCH(nothing);

void fails(nvbench::state &state) {
    thrust::device_vector<float> x(1);
    state.exec([&](nvbench::launch &launch) {
        scale_kernel<<<1, 4096, 0, launch.get_stream()>>>(x.data().get(), 1); // more than fit
    });
}
NVBENCH_BENCH(fails);
