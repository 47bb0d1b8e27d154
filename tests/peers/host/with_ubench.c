#include <string.h>
#include "ubench.h"
#include "work.h"

static void keep(uint64_t value) { UBENCH_DO_NOTHING(&value); }

UBENCH(fnv1a, 64) { keep(work_hash(64)); }
UBENCH(fnv1a, 4096) { keep(work_hash(4096)); }
UBENCH(fnv1a, 1048576) { keep(work_hash(TEXT_BYTES)); }
UBENCH(memchr, 4096) { UBENCH_DO_NOTHING(memchr(work_text, 'x', SEARCHED_BYTES)); }
UBENCH(sort, 10000) { keep(work_sort()); }
UBENCH(empty, empty) {}

UBENCH_STATE();
int main(int argc, const char *const argv[]) {
    work_fill();
    return ubench_main(argc, argv);
}
