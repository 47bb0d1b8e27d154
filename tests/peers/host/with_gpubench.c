#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
#include "work.h"

static int hash(void *bytes, gpubench_stream stream) {
    (void)stream;
    gpubench_keep(work_hash(*(const size_t *)bytes));
    return 0;
}
static int find(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    gpubench_keep(memchr(work_text, 'x', SEARCHED_BYTES));
    return 0;
}
static int sort(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    gpubench_keep(work_sort());
    return 0;
}
static int nothing(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    return 0;
}
static void queue(gpubench *bench, const char *name, int (*run)(void *, gpubench_stream),
                  size_t *bytes) {
    gpubench_case one = gpubench_case_init(name, run, bytes);
    one.modes = GPUBENCH_HOT;
    gpubench_measure(bench, &one);
}
int main(int argc, char **argv) {
    static size_t bytes[] = {64, 4096, TEXT_BYTES};
    gpubench *bench = gpubench_open("host", argc, argv);
    work_fill();
    queue(bench, "fnv1a/64", hash, &bytes[0]);
    queue(bench, "fnv1a/4096", hash, &bytes[1]);
    queue(bench, "fnv1a/1048576", hash, &bytes[2]);
    queue(bench, "memchr/4096", find, NULL);
    queue(bench, "sort/10000", sort, NULL);
    queue(bench, "empty", nothing, NULL);
    return gpubench_close(bench);
}
