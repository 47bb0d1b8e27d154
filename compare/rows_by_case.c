#include "rows_by_case.h"

#include <stdlib.h>

/* A counting sort: the rows of a case keep their order. */
bool rows_by_case_build(struct rows_by_case *index, const struct results *results, size_t case_count)
{
    index->rows = malloc((results->count + 1) * sizeof index->rows[0]);
    index->starts = calloc(case_count + 2, sizeof index->starts[0]);
    if (!index->rows || !index->starts)
        return false;
    size_t *next = index->starts + 1;
    for (size_t i = 0; i < results->count; i++)
        next[results->rows[i].case_id + 1]++;
    for (size_t id = 0; id < case_count; id++)
        next[id + 1] += next[id];
    /* next[id] is where id begins and moves to where it ends, which is where
     * starts[id + 1] must point. */
    for (size_t i = 0; i < results->count; i++)
        index->rows[next[results->rows[i].case_id]++] = &results->rows[i];
    return true;
}

struct row_span rows_of_case(const struct rows_by_case *index, uint32_t case_id)
{
    size_t start = index->starts[case_id];
    return (struct row_span){index->rows + start, index->starts[case_id + 1] - start};
}

void rows_by_case_free(struct rows_by_case *index)
{
    free(index->rows);
    free(index->starts);
    *index = (struct rows_by_case){0};
}
