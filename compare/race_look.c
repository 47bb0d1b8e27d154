#include "precise.h"

#include "race_look.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void race_standing_start(struct race_standing *standing, const struct settings *settings)
{
    *standing =
        (struct race_standing){.settings = settings, .catalogue = {.metric = settings->metric}};
}

void race_standing_free(struct race_standing *standing)
{
    comparison_free(&standing->comparison);
    results_free(&standing->sides[0]);
    results_free(&standing->sides[1]);
    catalogue_free(&standing->catalogue);
    race_keys_free(&standing->only);
    free(standing->cases);
    free(standing->case_ids);
}

static bool fail(char *error, const char *reason)
{
    snprintf(error, results_error_capacity, "%s", reason);
    return false;
}

/* Leaves only the rows of the cases that take part. */
static bool drop_others(struct race_standing *standing, struct results *side)
{
    size_t kept = 0;
    for (size_t i = 0; standing->only.count > 0 && i < side->count; i++) {
        char *key = race_key(&standing->catalogue.cases[side->rows[i].case_id]);
        if (!key)
            return false;
        if (race_keys_hold(&standing->only, key))
            side->rows[kept++] = side->rows[i];
        free(key);
    }
    if (standing->only.count > 0)
        side->count = kept;
    return true;
}

/* A case that was not ok in the warm-up (run 0) is not ok: what later processes, which
 * may verify nothing, say of it is dropped. */
static bool drop_refuted(const struct race_standing *standing, struct results *side)
{
    size_t kept = 0;
    bool *refuted = calloc(standing->catalogue.keys.count + 1, sizeof refuted[0]);
    if (!refuted)
        return false;
    for (size_t i = 0; i < side->count; i++)
        if (side->rows[i].run == 0)
            refuted[side->rows[i].case_id] = true;
    for (size_t i = 0; i < side->count; i++)
        if (side->rows[i].run == 0 || !refuted[side->rows[i].case_id])
            side->rows[kept++] = side->rows[i];
    side->count = kept;
    free(refuted);
    return true;
}

static bool load_side(struct race_standing *standing, const struct race_files *files, int side,
                      char *error)
{
    struct results *results = &standing->sides[side];
    const char *path = files->rows[side];
    results_free(results);
    if (!results_load(results, &standing->catalogue, &path, 1, error))
        return false;
    /* The file may be gone when a report names it. */
    standing->paths[side] = files->kept ? path : side == 0 ? "OLD's row" : "NEW's row";
    results->paths = &standing->paths[side];
    /* Later processes measure fewer cases by intent: none is a file that was cut. */
    for (size_t i = 0; i < results->run_count; i++)
        results->runs[i].most_rows = results->runs[i].rows;
    return (drop_others(standing, results) && drop_refuted(standing, results)) ||
           fail(error, "not enough memory");
}

bool race_take_rows(struct race_standing *standing, const struct race_files *files,
                    char error[results_error_capacity])
{
    comparison_free(&standing->comparison);
    if (!load_side(standing, files, 0, error) || !load_side(standing, files, 1, error))
        return false;
    return compare_sides(&standing->comparison, standing->settings, &standing->catalogue,
                         &standing->sides[0], &standing->sides[1]) ||
           fail(error, "not enough memory");
}

bool race_has_common(const struct race_standing *standing)
{
    return standing->comparison.common > 0;
}

const char *race_other_card(const struct race_standing *standing)
{
    const struct intern_table *old = &standing->sides[0].provenance[PROVENANCE_UUID];
    const struct intern_table *new = &standing->sides[1].provenance[PROVENANCE_UUID];
    if (old->count > 1 || new->count > 1)
        return intern_text(old->count > 1 ? old : new, 1);
    return provenance_only_in(&standing->sides[1], &standing->sides[0], PROVENANCE_UUID);
}

static bool grow(struct race_standing *standing)
{
    if (standing->count < standing->capacity)
        return true;
    size_t capacity = standing->capacity ? 2 * standing->capacity : 64;
    struct race_case *cases = realloc(standing->cases, capacity * sizeof cases[0]);
    if (cases)
        standing->cases = cases;
    uint32_t *ids = realloc(standing->case_ids, capacity * sizeof ids[0]);
    if (ids)
        standing->case_ids = ids;
    if (cases && ids)
        standing->capacity = capacity;
    return cases && ids;
}

/* The place of each case of the catalogue among those that race, SIZE_MAX for the
 * others. */
static size_t *find_places(const struct race_standing *standing)
{
    size_t room = standing->catalogue.keys.count + 1;
    size_t *places = malloc(room * sizeof places[0]);
    if (places)
        memset(places, 0xff, room * sizeof places[0]);
    for (size_t i = 0; places && i < standing->count; i++)
        places[standing->case_ids[i]] = i;
    return places;
}

/* Heat says nothing of the code: see comparison.c. */
static bool is_evidence(const struct row *row)
{
    return row->status == STATUS_OK && !row->throttled;
}

/* Both spans are in the order of the pairs. */
static void pair_rows(const struct metric *metric, struct row_span old, struct row_span new,
                      struct race_case *one)
{
    size_t o = 0;
    size_t n = 0;
    one->count = 0;
    while (o < old.count && n < new.count && one->count < race_most_pairs) {
        const struct row *before = old.rows[o];
        const struct row *after = new.rows[n];
        if (before->run == after->run && is_evidence(before) && is_evidence(after))
            one->pairs[one->count++] = (struct race_pair){
                .log_ratio = log_cost(metric, after->value) - log_cost(metric, before->value),
                .new_first = after->run % 2 == 0};
        o += before->run <= after->run;
        n += after->run <= before->run;
    }
}

/* A case that can no longer be judged, because it failed in a later pair, is open no
 * more; it stays in the family, in which nothing was found of it. */
static void leave_race(struct race_case *one)
{
    one->decided = true;
    one->judgement.verdict = VERDICT_SAME;
}

/* Brings the racing cases up to the rows. */
static bool take_pairs(struct race_standing *standing, const struct rows_by_case *old,
                       const struct rows_by_case *new, size_t *places)
{
    const struct comparison *comparison = &standing->comparison;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct case_result *result = &comparison->results[i];
        size_t place = places[result->case_id];
        if (result->outcome != OUTCOME_JUDGED) {
            if (place != SIZE_MAX)
                leave_race(&standing->cases[place]);
            continue;
        }
        if (place == SIZE_MAX) {
            if (!grow(standing))
                return false;
            place = places[result->case_id] = standing->count++;
            standing->cases[place] = (struct race_case){.count = 0};
            standing->case_ids[place] = result->case_id;
        }
        if (!standing->cases[place].decided)
            pair_rows(standing->settings->metric, rows_of_case(old, result->case_id),
                      rows_of_case(new, result->case_id), &standing->cases[place]);
    }
    return true;
}

static void count_case(struct race_counts *counts, const struct race_case *one)
{
    counts->slower += one->judgement.verdict == VERDICT_SLOWER;
    counts->faster += one->judgement.verdict == VERDICT_FASTER;
    counts->same += one->judgement.verdict == VERDICT_SAME;
    counts->open += !one->decided;
    counts->pairs_outside += one->evidence.baseline_outside;
}

/* The pairs' judgement replaces that of the runs, which compare_sides made. */
static void tell_comparison(struct race_standing *standing, const size_t *places)
{
    struct comparison *comparison = &standing->comparison;
    standing->counts = (struct race_counts){0};
    comparison->far_count = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        struct case_result *result = &comparison->results[i];
        if (result->outcome != OUTCOME_JUDGED)
            continue;
        const struct race_case *one = &standing->cases[places[result->case_id]];
        struct rule rule = race_rule(&standing->settings->rule, one->look);
        result->evidence = one->evidence;
        result->judgement = one->judgement;
        result->smallest_change = smallest_change(&one->judgement, &rule);
        count_case(&standing->counts, one);
    }
}

bool race_look(struct race_standing *standing, size_t look, char error[results_error_capacity])
{
    struct rows_by_case old = {0};
    struct rows_by_case new = {0};
    size_t keys = standing->catalogue.keys.count;
    size_t *places = find_places(standing);
    bool complete = places && rows_by_case_build(&old, &standing->sides[0], keys) &&
                    rows_by_case_build(&new, &standing->sides[1], keys) &&
                    take_pairs(standing, &old, &new, places) &&
                    race_judge(standing->cases, standing->count, &standing->settings->rule, look);
    if (complete)
        tell_comparison(standing, places);
    rows_by_case_free(&old);
    rows_by_case_free(&new);
    free(places);
    return complete || fail(error, "not enough memory");
}

bool race_open_keys(const struct race_standing *standing, struct race_keys *keys)
{
    for (size_t i = 0; i < standing->count; i++)
        if (!standing->cases[i].decided &&
            !race_keys_add(keys, race_key(&standing->catalogue.cases[standing->case_ids[i]])))
            return false;
    race_keys_sort(keys);
    return true;
}

double race_place_effect(const struct race_standing *standing)
{
    double *effects = malloc((standing->count + 1) * sizeof effects[0]);
    double median = 0.0;
    for (size_t i = 0; effects && i < standing->count; i++)
        effects[i] = standing->cases[i].place_effect;
    if (effects && standing->count > 0) {
        sort_values(effects, standing->count);
        median = sorted_quantile(effects, standing->count, 0.5);
    }
    free(effects);
    return median;
}
