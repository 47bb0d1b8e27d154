#include "cases.h"

#include <cstring>
#include <string>

void measure_find(gpubench *bench)
{
    std::string *text = gpubench_own<std::string>(bench, 4096, ' ');
    text->back() = 'x';
    gpubench_case one = gpubench_case_of(bench, "find", [text] {
        gpubench_keep(std::memchr(text->data(), 'x', text->size()));
    });
    gpubench_measure(bench, &one);
}
