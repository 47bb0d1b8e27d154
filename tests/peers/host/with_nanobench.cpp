#define ANKERL_NANOBENCH_IMPLEMENT
#include "nanobench.h"
#include <cstring>
#include <fstream>
#include "work.h"

int main(int argc, char **argv) {
    using ankerl::nanobench::doNotOptimizeAway;
    ankerl::nanobench::Bench bench;
    work_fill();
    bench.run("fnv1a/64", [] { doNotOptimizeAway(work_hash(64)); });
    bench.run("fnv1a/4096", [] { doNotOptimizeAway(work_hash(4096)); });
    bench.run("fnv1a/1048576", [] { doNotOptimizeAway(work_hash(TEXT_BYTES)); });
    bench.run("memchr/4096",
              [] { doNotOptimizeAway(std::memchr(work_text, 'x', SEARCHED_BYTES)); });
    bench.run("sort/10000", [] { doNotOptimizeAway(work_sort()); });
    bench.run("empty", [] {});
    if (argc > 1) {
        std::ofstream file(argv[1]);
        bench.render("{{#result}}{{name}} {{median(elapsed)}}\n{{/result}}", file);
    }
}
