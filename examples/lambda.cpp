// Cases from lambdas with captures; copies of them live until gpubench_close.
// c++ -std=c++11 -O2 -o lambda -I. examples/lambda.cpp
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

#include <algorithm>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    gpubench *bench = gpubench_open("lambda", argc, argv);
    for (size_t length = 16; length <= 4096; length *= 16) {
        const std::string text = std::string(length, '.') + "!";
        gpubench_case c = gpubench_case_of(bench, "find", [text] {
            gpubench_keep(text.find('!'));
        });
        c.params = gpubench_text(bench, "length=%zu", length);
        gpubench_measure(bench, &c);
    }
    // With a setup, and a verify: what one leaves for the next is captured by reference.
    const size_t count = 1000;
    const float *random = nullptr;
    std::vector<float> sorted(count);
    gpubench_case c = gpubench_case_of(
        bench, "sort",
        [&](gpubench *b) { random = gpubench_random<float>(b, count); },
        [&](gpubench_stream) {
            std::copy(random, random + count, sorted.begin());
            std::sort(sorted.begin(), sorted.end());
        },
        [&](gpubench *b) {
            gpubench_check(b, std::is_sorted(sorted.begin(), sorted.end()) ? 0 : 1, 0);
        });
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
