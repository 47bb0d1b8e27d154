// A case as an object with members: run and, where it needs them, setup, reset, verify and
// teardown.  c++ -std=c++11 -O2 -o object -I. examples/object.cpp
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include <vector>

struct scale {
    size_t count;
    float factor;
    float *x, *before;
    void setup(gpubench *bench) { // returns nothing: it went well if the memory is there
        before = gpubench_random<float>(bench, count);
        x = gpubench_alloc<float>(bench, count, GPUBENCH_OUTPUT);
    }
    void reset(gpubench_stream) { memcpy(x, before, count * sizeof *x); } // it works in place
    void run(gpubench_stream) {
        for (size_t i = 0; i < count; i++)
            x[i] *= factor;
    }
    void verify(gpubench *bench) {
        std::vector<double> expected(before, before + count);
        for (double &value : expected)
            value *= static_cast<double>(factor);
        gpubench_compare(bench, x, expected.data(), count);
    }
};

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("object", argc, argv);
    for (size_t count = 1 << 10; count <= 1 << 16; count <<= 3) {
        gpubench_case c = gpubench_case_of(bench, "scale", scale{count, 3, nullptr, nullptr});
        c.dtype = "f32", c.params = gpubench_text(bench, "n=%zu", count);
        c.bytes = 2 * count * sizeof(float);
        gpubench_measure(bench, &c);
    }
    return gpubench_close(bench);
}
