#include "cases.h"

#include <cstring>

static char text[4096];

static int find_end(void *, gpubench_stream)
{
    gpubench_keep(std::memchr(text, 'x', sizeof text));
    return 0;
}

void measure_find(gpubench *bench)
{
    text[sizeof text - 1] = 'x';
    gpubench_case one = gpubench_case_init("find", find_end, nullptr);
    gpubench_measure(bench, &one);
}
