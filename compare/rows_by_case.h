/* The rows of one side, those of a case next to each other. */
#ifndef GPUBENCH_COMPARE_ROWS_BY_CASE_H
#define GPUBENCH_COMPARE_ROWS_BY_CASE_H

#include "results.h"

struct row_span {
    const struct row *const *rows;
    size_t count;
};

struct rows_by_case {
    const struct row **rows;
    size_t *starts; /* of each case, and one more */
};

/* case_count is that of the catalogue. rows_by_case_free is due either way. */
bool rows_by_case_build(struct rows_by_case *index, const struct results *results, size_t case_count);
struct row_span rows_of_case(const struct rows_by_case *index, uint32_t case_id);
void rows_by_case_free(struct rows_by_case *index);

#endif
