#include <benchmark/benchmark.h>
#include <cstring>
#include "work.h"

static void hash(benchmark::State &state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(work_hash(static_cast<size_t>(state.range(0))));
}
BENCHMARK(hash)->Name("fnv1a")->Arg(64)->Arg(4096)->Arg(TEXT_BYTES);

static void find(benchmark::State &state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(
            std::memchr(work_text, 'x', static_cast<size_t>(state.range(0))));
}
BENCHMARK(find)->Name("memchr")->Arg(SEARCHED_BYTES);

static void sort(benchmark::State &state) {
    for (auto _ : state)
        benchmark::DoNotOptimize(work_sort());
}
BENCHMARK(sort)->Name("sort/10000");

static void nothing(benchmark::State &state) {
    for (auto _ : state) {
    }
}
BENCHMARK(nothing)->Name("empty");

int main(int argc, char **argv) {
    work_fill();
    benchmark::Initialize(&argc, argv);
    return benchmark::RunSpecifiedBenchmarks() == 0;
}
