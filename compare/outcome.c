#include "precise.h"

#include "outcome.h"

#include "constant.h"
#include "number.h"

static size_t count_ok(struct row_span span)
{
    size_t ok = 0;
    for (size_t i = 0; i < span.count; i++)
        ok += span.rows[i]->status == STATUS_OK;
    return ok;
}

/* The first row that is not ok, or NULL. */
static const struct row *first_not_ok(struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        if (span.rows[i]->status != STATUS_OK)
            return span.rows[i];
    return NULL;
}

static bool all_skipped(struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        if (span.rows[i]->status != STATUS_SKIPPED)
            return false;
    return true;
}

/* Is the reason for each that the host has too few GPUs? */
static bool all_need_gpus(struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        if (!span.rows[i]->needs_gpus)
            return false;
    return true;
}

/* The first ok row whose value no measurement can have, or NULL. */
static const struct row *first_invalid(struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        if (span.rows[i]->status == STATUS_OK && !is_positive(span.rows[i]->value))
            return span.rows[i];
    return NULL;
}

/* The first ok row of which taking the constant out leaves no time, or NULL. */
static const struct row *first_below_constant(const struct metric *metric, struct row_span span)
{
    for (size_t i = 0; i < span.count; i++) {
        if (span.rows[i]->status != STATUS_OK)
            continue;
        double value = value_without_constant(metric, span.rows[i]);
        if (!is_positive(value))
            return span.rows[i];
    }
    return NULL;
}

static bool lacks_metric(struct row_span span)
{
    for (size_t i = 0; i < span.count; i++)
        if (span.rows[i]->status == STATUS_OK && !is_absent(span.rows[i]->value))
            return false;
    return true;
}

static enum outcome blame(struct problem *problem, const struct row *row, bool in_baseline, enum outcome outcome)
{
    problem->row = row;
    problem->in_baseline = in_baseline;
    return outcome;
}

static enum outcome outcome_of_values(const struct metric *metric, struct works *works,
                                      struct row_span baseline, struct row_span current,
                                      struct problem *problem)
{
    if (!metric->is_time && lacks_metric(baseline) && lacks_metric(current))
        return OUTCOME_NOT_APPLICABLE;
    const struct row *invalid = first_invalid(baseline);
    if (invalid)
        return blame(problem, invalid, true, OUTCOME_INVALID);
    invalid = first_invalid(current);
    if (invalid)
        return blame(problem, invalid, false, OUTCOME_INVALID);
    const struct row *below = first_below_constant(metric, baseline);
    if (below)
        return blame(problem, below, true, OUTCOME_BELOW_CONSTANT);
    below = first_below_constant(metric, current);
    if (below)
        return blame(problem, below, false, OUTCOME_BELOW_CONSTANT);
    struct other_work other;
    if (!work_changed(works, baseline, current, &other))
        return OUTCOME_JUDGED;
    problem->than = other.than;
    problem->than_in_baseline = other.than_in_baseline;
    return blame(problem, other.row, other.in_baseline, OUTCOME_WORK_CHANGED);
}

enum outcome outcome_of(const struct metric *metric, struct works *works, struct row_span baseline,
                        struct row_span current, struct problem *problem)
{
    *problem = (struct problem){0};
    size_t current_ok = count_ok(current);
    bool in_baseline = count_ok(baseline) > 0;
    if (!in_baseline && current_ok == 0)
        return baseline.count > 0 ? blame(problem, first_not_ok(baseline), true, OUTCOME_NEVER_OK)
                                  : blame(problem, first_not_ok(current), false, OUTCOME_NEVER_OK);
    /* A case on one side only is no news where its value cannot be. */
    if (!in_baseline || current_ok == 0) {
        struct row_span only = in_baseline ? baseline : current;
        const struct row *invalid = !metric->is_time && lacks_metric(only) ? NULL : first_invalid(only);
        if (invalid)
            return blame(problem, invalid, in_baseline, OUTCOME_INVALID);
    }
    if (!in_baseline)
        return OUTCOME_NEW;
    if (current.count == 0)
        return OUTCOME_MISSING;
    if (all_skipped(current))
        return blame(problem, current.rows[0], false, OUTCOME_MISSING);
    if (all_need_gpus(current))
        return blame(problem, current.rows[0], false, OUTCOME_ELSEWHERE);
    if (current_ok < current.count)
        return blame(problem, first_not_ok(current), false, OUTCOME_NOT_OK);
    return outcome_of_values(metric, works, baseline, current, problem);
}
