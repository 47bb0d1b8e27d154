#include "precise.h"

#include "work.h"

#include "number.h"

#include <stdlib.h>

/* A row that said how much, and where it stands. */
struct told {
    const struct row *row; /* NULL while none said it */
    bool in_baseline;
};

struct work {
    struct told bytes;
    struct told flops;
    bool of_baseline; /* the baseline has rows of this seed */
};

bool works_make(struct works *works, const struct catalogue *catalogue)
{
    works->of_seed = calloc((size_t)catalogue->seeds.count + 1, sizeof works->of_seed[0]);
    return works->of_seed != NULL;
}

void works_free(struct works *works)
{
    free(works->of_seed);
    *works = (struct works){0};
}

static struct work *work_of(const struct works *works, const struct row *row)
{
    return &works->of_seed[row->seed == INTERN_NONE ? 0 : (size_t)row->seed + 1];
}

/* An empty field says nothing about the work. */
static bool differs(double told, double value)
{
    return !is_absent(value) && (told < value || told > value);
}

/* What says otherwise, or NULL. */
static const struct told *other_than(const struct work *work, const struct row *row)
{
    if (work->bytes.row && differs(work->bytes.row->bytes, row->bytes))
        return &work->bytes;
    if (work->flops.row && differs(work->flops.row->flops, row->flops))
        return &work->flops;
    return NULL;
}

static void note(struct work *work, const struct row *row, bool in_baseline)
{
    if (!work->bytes.row && !is_absent(row->bytes))
        work->bytes = (struct told){row, in_baseline};
    if (!work->flops.row && !is_absent(row->flops))
        work->flops = (struct told){row, in_baseline};
}

/* Within one seed. *common is set where a row is of a seed that the baseline has. */
static bool differs_within_seed(struct works *works, struct row_span span, bool in_baseline,
                                bool *common, struct other_work *found)
{
    for (size_t i = 0; i < span.count; i++) {
        const struct row *row = span.rows[i];
        if (row->status != STATUS_OK)
            continue;
        struct work *work = work_of(works, row);
        const struct told *than = other_than(work, row);
        if (than) {
            *found = (struct other_work){row, than->row, in_baseline, than->in_baseline};
            return true;
        }
        note(work, row, in_baseline);
        *common |= work->of_baseline;
        work->of_baseline |= in_baseline;
    }
    return false;
}

/* The first row that says otherwise than the first of the other side does, or NULL. */
static const struct row *first_other(struct row_span others, struct row_span span,
                                     const struct row **than)
{
    struct work work = {0};
    for (size_t i = 0; i < others.count; i++)
        if (others.rows[i]->status == STATUS_OK)
            note(&work, others.rows[i], false);
    for (size_t i = 0; i < span.count; i++) {
        const struct told *told =
            span.rows[i]->status == STATUS_OK ? other_than(&work, span.rows[i]) : NULL;
        if (told) {
            *than = told->row;
            return span.rows[i];
        }
    }
    return NULL;
}

/* Across seeds. Where no row of current differs from the baseline's first, all of them
 * are alike, and a row of the baseline that differs from that differs from each. */
static bool differs_across_seeds(struct row_span baseline, struct row_span current,
                                 struct other_work *found)
{
    *found = (struct other_work){.than_in_baseline = true};
    found->row = first_other(baseline, current, &found->than);
    if (!found->row)
        found->than = first_other(current, baseline, &found->row);
    return found->row != NULL;
}

static void forget(struct works *works, struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        *work_of(works, span.rows[i]) = (struct work){0};
}

bool work_changed(struct works *works, struct row_span baseline, struct row_span current,
                  struct other_work *found)
{
    bool common = false;
    bool ignored = false;
    bool changed = differs_within_seed(works, baseline, true, &ignored, found) ||
                   differs_within_seed(works, current, false, &common, found) ||
                   (!common && differs_across_seeds(baseline, current, found));
    forget(works, baseline);
    forget(works, current);
    return changed;
}
