#include <algorithm>
#include <vector>

#include "cases.h"

static std::vector<int> numbers(1000);

static int sort_numbers(void *, gpubench_stream)
{
    int next = 1;
    for (int &number : numbers)
        number = next = max(1, next * 7 % 1009);
    std::sort(numbers.begin(), numbers.end());
    gpubench_keep(numbers);
    return 0;
}

void measure_sort(gpubench *bench)
{
    gpubench_case one = gpubench_case_init("sort", sort_numbers, nullptr);
    gpubench_measure(bench, &one);
}
