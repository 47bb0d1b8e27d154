// A program as a user's: a kernel, a library's macros in front of the header, one lambda
// for each function of the case. Without a GPU the host does the same.
#include "hostile.h"
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

enum { COUNT = 1000 };
static float host[COUNT], expected[COUNT];

static __global__ void clamp_on_device(const float *in, float *out)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < COUNT)
        out[i] = min(1.0f, max(-1.0f, in[i]));
}

static void clamp(const float *in, float *out)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = min(1.0f, max(-1.0f, in[i]));
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("dropin", argc, argv);
    const bool device = gpubench_is_cuda(bench);
    const float *in = nullptr;
    float *out = nullptr;
    gpubench_fill(bench, host, COUNT);
    clamp(host, expected);
    gpubench_case one = gpubench_case_of(
        bench, "clamp",
        [&](gpubench *b) {
            in = gpubench_upload<float>(b, host, COUNT);
            out = gpubench_alloc<float>(b, COUNT, GPUBENCH_OUTPUT);
        },
        [&](gpubench_stream stream) {
            if (device)
                clamp_on_device<<<(COUNT + 255) / 256, 256, 0, stream>>>(in, out);
            else
                clamp(in, out);
        },
        [&](gpubench *b) { gpubench_compare(b, out, expected, COUNT, 0); });
    gpubench_measure(bench, &one);
    return gpubench_close(bench);
}
