#include "cases.h"

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("dropin", argc, argv);
    measure_sort(bench);
    measure_find(bench);
    return gpubench_close(bench);
}
