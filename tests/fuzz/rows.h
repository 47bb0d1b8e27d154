/* For targets that judge rows: both sides from bytes, with the host's constant taken out. */
#ifndef GPUBENCH_TESTS_FUZZ_ROWS_H
#define GPUBENCH_TESTS_FUZZ_ROWS_H

#include "../../compare/comparison.h"
#include "fuzz.h"

struct rows {
    const char *path;
    struct catalogue catalogue;
    struct results baseline, current;
    struct constants constants;
    struct settings settings;
};

/* False where a side is refused; rows_free is due either way. */
static inline bool rows_load(struct rows *rows, const uint8_t *baseline, size_t baseline_size,
                             const uint8_t *current, size_t current_size)
{
    char error[results_error_capacity] = "";
    *rows = (struct rows){.path = "fuzz.csv",
                          .catalogue = {.metric = find_metric("median_us")},
                          .settings = {.rule = default_rule(), .metric = find_metric("median_us")}};
    if (!results_load_bytes(&rows->baseline, &rows->catalogue, &rows->path, (const char *)baseline,
                            baseline_size, error) ||
        !results_load_bytes(&rows->current, &rows->catalogue, &rows->path, (const char *)current,
                            current_size, error)) {
        require(error[0] != '\0');
        return false;
    }
    require(find_constants(&rows->constants, &rows->catalogue, &rows->baseline, &rows->current));
    rows->settings.constants = &rows->constants;
    return true;
}

static inline void rows_free(struct rows *rows)
{
    results_free(&rows->baseline);
    results_free(&rows->current);
    catalogue_free(&rows->catalogue);
}

#endif
