#include "precise.h"

#include "constant.h"

#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The smallest difference that is taken out. */
static const double least_difference_us = 0.1;

/* One row's empty kernel. Equal modes are one string of the catalogue. */
struct reading {
    const char *mode;
    uint32_t campaign;
    bool in_baseline;
    float overhead_us;
    struct row *row;
};

/* The readings of one campaign of one side in one mode: one sitting, one host. */
struct sitting {
    const struct reading *readings;
    size_t count;
    double median_us;
};

/* Hosts of one kind: sittings whose medians follow each other closely. */
struct kind {
    struct sitting *sittings;
    size_t count;
    double constant_us;
    size_t baseline_rows;
    size_t current_rows;
};

static bool has_constant(const struct case_key *key, const struct row *row)
{
    return row->status == STATUS_OK && row->overhead_us > 0.0f && strcmp(key->parts[KEY_BACKEND], "cpu") != 0 &&
           strcmp(key->parts[KEY_MODE], "hot") != 0;
}

static int by_sitting_and_value(const void *left, const void *right)
{
    const struct reading *a = left;
    const struct reading *b = right;
    if (a->mode != b->mode)
        return strcmp(a->mode, b->mode);
    if (a->in_baseline != b->in_baseline)
        return a->in_baseline ? -1 : 1;
    if (a->campaign != b->campaign)
        return a->campaign < b->campaign ? -1 : 1;
    return (a->overhead_us > b->overhead_us) - (a->overhead_us < b->overhead_us);
}

static int by_mode_and_median(const void *left, const void *right)
{
    const struct sitting *a = left;
    const struct sitting *b = right;
    if (a->readings->mode != b->readings->mode)
        return strcmp(a->readings->mode, b->readings->mode);
    return (a->median_us > b->median_us) - (a->median_us < b->median_us);
}

static size_t add_readings(const struct catalogue *catalogue, struct results *side, bool in_baseline,
                           struct reading *out)
{
    size_t count = 0;
    for (size_t i = 0; i < side->count; i++) {
        struct row *row = &side->rows[i];
        const struct case_key *key = &catalogue->cases[row->case_id];
        if (has_constant(key, row))
            out[count++] =
                (struct reading){key->parts[KEY_MODE], row->campaign, in_baseline, row->overhead_us, row};
    }
    return count;
}

static bool same_sitting(const struct reading *a, const struct reading *b)
{
    return a->mode == b->mode && a->in_baseline == b->in_baseline && a->campaign == b->campaign;
}

/* Cuts readings that are in order into sittings. */
static size_t cut_sittings(const struct reading *readings, size_t count, struct sitting *out)
{
    size_t sittings = 0;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && same_sitting(&readings[first], &readings[end]);)
            end++;
        double low = (double)readings[first + (end - first - 1) / 2].overhead_us;
        double high = (double)readings[first + (end - first) / 2].overhead_us;
        out[sittings++] = (struct sitting){&readings[first], end - first, 0.5 * (low + high)};
    }
    return sittings;
}

/* The kind of host that the first of some sittings in order belongs to. */
static struct kind first_kind(struct sitting *sittings, size_t count)
{
    struct kind kind = {.sittings = sittings};
    double sum = 0.0;
    do {
        const struct sitting *sitting = &sittings[kind.count++];
        *(sitting->readings->in_baseline ? &kind.baseline_rows : &kind.current_rows) += sitting->count;
        sum += sitting->median_us * (double)sitting->count;
    } while (kind.count < count && sittings[kind.count].readings->mode == sittings->readings->mode &&
             sittings[kind.count].median_us - sittings[kind.count - 1].median_us <= least_difference_us);
    kind.constant_us = sum / (double)(kind.baseline_rows + kind.current_rows);
    return kind;
}

static size_t move_kind(const struct kind *kind, double baseline_us)
{
    float shift_us = (float)(kind->constant_us - baseline_us);
    for (size_t s = 0; s < kind->count; s++)
        for (size_t i = 0; i < kind->sittings[s].count; i++)
            kind->sittings[s].readings[i].row->shift_us = shift_us;
    return kind->baseline_rows + kind->current_rows;
}

/* Moves all sittings of one mode to the constant of the kind of host that most
 * baseline rows are from. */
static void find_constant(struct constants *constants, struct sitting *sittings, size_t count)
{
    struct kind baseline = {0};
    struct kind current = {0};
    struct kind kind;
    for (size_t first = 0; first < count; first += kind.count) {
        kind = first_kind(sittings + first, count - first);
        if (kind.baseline_rows > baseline.baseline_rows)
            baseline = kind;
        if (kind.current_rows > current.current_rows)
            current = kind;
    }
    if (baseline.count == 0 || baseline.count == count || constants->count == most_constants)
        return;
    struct constant *constant = &constants->of_mode[constants->count++];
    *constant = (struct constant){sittings->readings->mode, baseline.constant_us, current.constant_us, 0};
    for (size_t first = 0; first < count; first += kind.count) {
        kind = first_kind(sittings + first, count - first);
        if (kind.sittings != baseline.sittings)
            constant->moved_rows += move_kind(&kind, baseline.constant_us);
    }
}

static void find_by_mode(struct constants *constants, struct sitting *sittings, size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && sittings[end].readings->mode == sittings[first].readings->mode;)
            end++;
        find_constant(constants, sittings + first, end - first);
    }
}

bool find_constants(struct constants *constants, const struct catalogue *catalogue, struct results *baseline,
                    struct results *current)
{
    *constants = (struct constants){.count = 0};
    size_t rows = baseline->count + current->count;
    struct reading *readings = malloc((rows + 1) * sizeof readings[0]);
    struct sitting *sittings = NULL;
    if (readings) {
        size_t count = add_readings(catalogue, baseline, true, readings);
        count += add_readings(catalogue, current, false, readings + count);
        qsort(readings, count, sizeof readings[0], by_sitting_and_value);
        sittings = malloc((count + 1) * sizeof sittings[0]);
        size_t sitting_count = sittings ? cut_sittings(readings, count, sittings) : 0;
        if (sitting_count > 0)
            qsort(sittings, sitting_count, sizeof sittings[0], by_mode_and_median);
        find_by_mode(constants, sittings, sitting_count);
    }
    free(readings);
    free(sittings);
    return readings && sittings;
}

double value_without_constant(const struct metric *metric, const struct row *row)
{
    double shift = (double)row->shift_us;
    if (metric->is_time)
        return row->value - shift;
    if (!metric->bigger_is_better) /* a counter that is no rate */
        return row->value;
    /* A throughput is work over the median. */
    double time = (double)row->time_us;
    return shift == 0.0 || isnan(time) ? row->value : row->value * time / (time - shift);
}
