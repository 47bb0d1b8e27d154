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

struct buffers {
    size_t count;
    float *in, *out;
    void setup(gpubench *bench) {
        in = gpubench_random<float>(bench, count);
        out = gpubench_alloc<float>(bench, count, GPUBENCH_OUTPUT);
    }
};

struct copy : buffers {
    void setup(gpubench *bench) {
        count = size_t(gpubench_axis_number(bench, "n"));
        gpubench_work(bench, 2 * count * sizeof(float), 0);
        buffers::setup(bench);
    }
    void run(gpubench_stream stream) {
        copy_kernel<<<blocks(count), 256, 0, stream>>>(in, out, count);
    }
    void verify(gpubench *bench) { gpubench_compare(bench, out, in, count, 0); }
};

struct scaled : buffers {
    void verify(gpubench *bench) {
        float *host = (float *)gpubench_own(bench, count * sizeof *host);
        gpubench_copy(bench, host, in, count * sizeof *host);
        for (size_t i = 0; i < count; i++)
            host[i] *= 3;
        gpubench_compare(bench, out, host, count);
    }
};

struct two_kernels : scaled {
    void run(gpubench_stream stream) {
        copy_kernel<<<blocks(count), 256, 0, stream>>>(in, out, count);
        scale_kernel<<<blocks(count), 256, 0, stream>>>(out, count);
    }
};

struct in_place : scaled {
    void reset(gpubench_stream stream) {
        cudaMemcpyAsync(out, in, count * sizeof *out, cudaMemcpyDefault, stream);
    }
    void run(gpubench_stream stream) {
        scale_kernel<<<blocks(count), 256, 0, stream>>>(out, count);
    }
};

template <class Type> static void queue(gpubench *bench, const char *name) {
    Type made = {};
    made.count = 1 << 22;
    gpubench_case one = gpubench_case_of(bench, name, made);
    gpubench_measure(bench, &one);
}

int main(int argc, char **argv) {
    static const gpubench_axis sizes = {"n", "2^18..2^26*16"};
    gpubench *bench = gpubench_open("gpu", argc, argv);
    gpubench_case one = gpubench_case_of(bench, "copy", copy());
    gpubench_sweep(bench, &one, 1, &sizes, 1);
    queue<two_kernels>(bench, "two_kernels");
    queue<in_place>(bench, "in_place");
    one = gpubench_case_of(bench, "nothing", [] {});
    gpubench_measure(bench, &one);
    one = gpubench_case_of(bench, "fails", [](gpubench_stream stream) {
        scale_kernel<<<1, 4096, 0, stream>>>(nullptr, 1); // more than fit
    });
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
