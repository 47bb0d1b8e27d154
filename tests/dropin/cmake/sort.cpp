#include <algorithm>
#include <vector>

#include "cases.h"

// A case as an object: its memory lives until the bench is closed.
struct sorted {
    std::vector<float> random, numbers;
    int setup(gpubench *bench) { return gpubench_fill(bench, random.data(), random.size()); }
    void run(gpubench_stream)
    {
        numbers = random;
        std::sort(numbers.begin(), numbers.end());
        gpubench_keep(numbers);
    }
    void verify(gpubench *bench)
    {
        const bool fine = std::is_sorted(numbers.begin(), numbers.end());
        gpubench_check(bench, fine && max(numbers[0], 0) <= 0 ? 0 : 1, 0);
    }
};

void measure_sort(gpubench *bench)
{
    gpubench_case one = gpubench_case_of(bench, "sort", sorted{std::vector<float>(1000), {}});
    gpubench_measure(bench, &one);
}
