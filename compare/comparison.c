#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "comparison.h"

#include "label.h"
#include "other_hosts.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A current run this far (10 %) from its side's median is worth a word: no
 * kernel known to us spreads as much between sound processes. */
static const double far_current = 0.1;

/* The ok runs of one side of one case. */
struct runs {
    double *measured; /* the metric as it stands in the file */
    double *values;   /* with the constant taken out */
    double *costs;
    uint32_t *campaigns;
    const struct row **rows;
    size_t count;
    size_t throttled; /* left out: what heat does to a card says nothing of the code */
};

/* Room for one case: of the seeds, and of the runs, grown to the largest case. */
struct scratch {
    struct works works;
    struct runs baseline;
    struct runs current;
    bool *far;
    double *sorted;
    size_t capacity;
};

static void free_runs(struct runs *runs)
{
    free(runs->measured);
    free(runs->values);
    free(runs->costs);
    free(runs->campaigns);
    free(runs->rows);
}

static void free_runs_of_case(struct scratch *scratch)
{
    free_runs(&scratch->baseline);
    free_runs(&scratch->current);
    free(scratch->far);
    free(scratch->sorted);
    *scratch = (struct scratch){.works = scratch->works};
}

static void free_scratch(struct scratch *scratch)
{
    works_free(&scratch->works);
    free_runs_of_case(scratch);
}

static bool reserve_runs(struct runs *runs, size_t capacity)
{
    runs->measured = malloc(capacity * sizeof runs->measured[0]);
    runs->values = malloc(capacity * sizeof runs->values[0]);
    runs->costs = malloc(capacity * sizeof runs->costs[0]);
    runs->campaigns = malloc(capacity * sizeof runs->campaigns[0]);
    runs->rows = malloc(capacity * sizeof runs->rows[0]);
    return runs->measured && runs->values && runs->costs && runs->campaigns && runs->rows;
}

static bool reserve_scratch(struct scratch *scratch, size_t count)
{
    if (count <= scratch->capacity)
        return true;
    free_runs_of_case(scratch);
    scratch->capacity = 2 * count;
    scratch->far = malloc(scratch->capacity * sizeof scratch->far[0]);
    scratch->sorted = malloc(scratch->capacity * sizeof scratch->sorted[0]);
    return reserve_runs(&scratch->baseline, scratch->capacity) && reserve_runs(&scratch->current, scratch->capacity) &&
           scratch->far && scratch->sorted;
}

bool case_is_wanted(const struct settings *settings, const struct case_key *key)
{
    if (!settings->filter)
        return true;
    char *label = noted(case_label(key, NULL));
    int code = label ? regexec(settings->filter, label, 0, NULL, 0) : REG_NOMATCH;
    free(label);
    if (code != 0 && code != REG_NOMATCH)
        (void)noted(NULL); /* a case that nobody could look at must not be gone in silence */
    return code == 0;
}

double log_cost(const struct metric *metric, double value)
{
    return metric->bigger_is_better ? -log(value) : log(value);
}

static double metric_value(const struct metric *metric, double cost)
{
    return exp(metric->bigger_is_better ? -cost : cost);
}

struct ratio metric_ratio(const struct case_result *result, const struct metric *metric)
{
    const struct judgement *j = &result->judgement;
    struct ratio ratio = {metric_value(metric, j->log_ratio), metric_value(metric, j->low),
                          metric_value(metric, j->high)};
    if (metric->bigger_is_better) {
        double low = ratio.low;
        ratio.low = ratio.high;
        ratio.high = low;
    }
    return ratio;
}

static void collect(const struct metric *metric, struct row_span span, struct runs *runs)
{
    runs->count = 0;
    runs->throttled = 0;
    for (size_t i = 0; i < span.count; i++) {
        if (span.rows[i]->status != STATUS_OK)
            continue;
        if (span.rows[i]->throttled) {
            runs->throttled++;
            continue;
        }
        runs->measured[runs->count] = span.rows[i]->value;
        runs->values[runs->count] = value_without_constant(metric, span.rows[i]);
        runs->costs[runs->count] = log_cost(metric, runs->values[runs->count]);
        runs->campaigns[runs->count] = span.rows[i]->campaign;
        runs->rows[runs->count++] = span.rows[i];
    }
}

/* The mean cost of the campaign that a run belongs to. */
static double campaign_mean(const struct runs *runs, size_t run)
{
    double sum = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < runs->count; i++) {
        if (runs->campaigns[i] != runs->campaigns[run])
            continue;
        sum += runs->costs[i];
        count++;
    }
    return sum / (double)count;
}

/* How far the campaign of the latest run is from that of the earliest, as --oldest takes them. */
static double drift_of(const struct runs *runs)
{
    size_t earliest = 0, latest = 0;
    for (size_t i = 1; i < runs->count; i++) {
        if (runs->rows[i]->time_s < runs->rows[earliest]->time_s)
            earliest = i;
        if (runs->rows[i]->time_s >= runs->rows[latest]->time_s)
            latest = i;
    }
    return campaign_mean(runs, latest) - campaign_mean(runs, earliest);
}

static struct side side_of(const struct runs *runs)
{
    return (struct side){runs->costs, runs->campaigns, runs->count};
}

/* The median of the values that are not left out; outside may be NULL. */
static double median_value(const double *values, size_t count, const bool *outside, double *sorted)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!outside || !outside[i])
            sorted[kept++] = values[i];
    sort_values(sorted, kept);
    return sorted_quantile(sorted, kept, 0.5);
}

static bool note_far_run(struct comparison *comparison, struct far_run far)
{
    if (comparison->far_count == comparison->far_capacity) {
        size_t capacity = comparison->far_capacity ? 2 * comparison->far_capacity : 16;
        struct far_run *larger = realloc(comparison->far_runs, capacity * sizeof larger[0]);
        if (!larger)
            return false;
        comparison->far_runs = larger;
        comparison->far_capacity = capacity;
    }
    comparison->far_runs[comparison->far_count++] = far;
    return true;
}

static bool note_far_runs(struct comparison *comparison, size_t index, const struct runs *runs, const bool *far,
                          bool in_baseline, double median)
{
    for (size_t i = 0; i < runs->count; i++) {
        double change = runs->values[i] / median - 1.0;
        if (far[i] && !note_far_run(comparison, (struct far_run){runs->rows[i], index, in_baseline, change}))
            return false;
    }
    return true;
}

/* Current runs that stand far from their own median. They count, and explain
 * a wide interval. */
static void mark_far_current(const struct runs *runs, double median, bool *far)
{
    for (size_t i = 0; i < runs->count; i++)
        far[i] = runs->count > 2 && fabs(log(runs->values[i] / median)) > far_current;
}

static bool weigh_pair(struct comparison *comparison, size_t index, struct row_span baseline,
                       struct row_span current, struct scratch *scratch)
{
    const struct settings *settings = comparison->settings;
    struct case_result *result = &comparison->results[index];
    struct runs *old = &scratch->baseline;
    struct runs *new = &scratch->current;
    if (!reserve_scratch(scratch, baseline.count > current.count ? baseline.count : current.count))
        return false;
    collect(settings->metric, baseline, old);
    collect(settings->metric, current, new);
    result->baseline_throttled = old->throttled;
    result->current_throttled = new->throttled;
    if (old->count == 0 || new->count == 0) {
        result->outcome = OUTCOME_THROTTLED;
        result->problem = (struct problem){.row = old->count ? current.rows[0] : baseline.rows[0],
                                           .in_baseline = old->count == 0};
        return true;
    }
    result->drift = drift_of(old);
    struct rule rule = settings->rule;
    rule.campaigns_in_common = comparison->of_variants;
    if (!gather_evidence(side_of(old), side_of(new), &rule, scratch->far, &result->evidence))
        return false;
    result->baseline_median = median_value(old->values, old->count, scratch->far, scratch->sorted);
    result->current_median = median_value(new->values, new->count, NULL, scratch->sorted);
    double *sorted = scratch->sorted;
    result->measured_log_ratio =
        log_cost(settings->metric, median_value(new->measured, new->count, NULL, sorted)) -
        log_cost(settings->metric, median_value(old->measured, old->count, scratch->far, sorted));
    if (!note_far_runs(comparison, index, old, scratch->far, true, result->baseline_median))
        return false;
    mark_far_current(new, result->current_median, scratch->far);
    return note_far_runs(comparison, index, new, scratch->far, false, result->current_median);
}

/* Remembers the first row that ran elsewhere than the first row of its case,
 * or whose device is not known. */
static void check_devices(struct comparison *comparison, struct row_span baseline, struct row_span current)
{
    const struct row *first = baseline.rows[0];
    struct row_span spans[] = {baseline, current};
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < spans[side].count; i++) {
            const struct row *row = spans[side].rows[i];
            bool known = *intern_text(&comparison->catalogue->devices, row->device) != '\0';
            if (known && row->device == first->device)
                continue;
            if (comparison->device_cases++ == 0) {
                comparison->device_row = row;
                comparison->device_first = first;
                comparison->device_row_in_baseline = side == 0;
            }
            return;
        }
    }
}

static bool add_pair(struct comparison *comparison, uint32_t baseline_case, uint32_t current_case,
                     struct row_span baseline, struct row_span current, struct scratch *scratch)
{
    size_t index = comparison->count++;
    struct case_result *result = &comparison->results[index];
    *result = (struct case_result){.case_id = current_case, .baseline_case_id = baseline_case,
                                   .in_current = current.count > 0};
    result->baseline_median = result->current_median = (double)NAN;
    if (baseline.count > 0 && current.count > 0) {
        comparison->common++;
        check_devices(comparison, baseline, current);
    }
    result->outcome = outcome_of(comparison->settings->metric, &scratch->works, baseline, current, &result->problem);
    return result->outcome != OUTCOME_JUDGED || weigh_pair(comparison, index, baseline, current, scratch);
}

static bool is_alone(const struct case_result *result)
{
    return result->outcome == OUTCOME_MISSING || result->outcome == OUTCOME_NEW;
}

/* Cases that one side lacks and has behind another flush: see results.h. */
static bool note_other_flushes(struct comparison *comparison)
{
    const struct catalogue *catalogue = comparison->catalogue;
    size_t room = FLUSH_MODES * catalogue->modeless.count + 1;
    struct case_result **alone = calloc(room, sizeof alone[0]);
    for (size_t i = 0; alone && i < comparison->count; i++) {
        /* Every result has its case. NOLINTNEXTLINE(*-core.uninitialized.*) */
        const struct case_key *key = &catalogue->cases[comparison->results[i].case_id];
        if (key->flush < FLUSH_MODES && is_alone(&comparison->results[i]))
            alone[FLUSH_MODES * key->modeless + key->flush] = &comparison->results[i];
    }
    for (size_t i = 0; alone && i + 1 < room; i++) {
        const struct case_result *other = alone[i ^ 1];
        if (!alone[i] || !other || alone[i]->outcome == other->outcome)
            continue;
        alone[i]->other_flush = flush_mode_names[other_flush((enum flush_mode)(i % FLUSH_MODES))];
        comparison->other_flushes++;
    }
    free(alone);
    return alone != NULL;
}

static bool is_of_suite(const struct comparison *comparison, const struct case_result *result, const char *suite)
{
    return result->outcome == OUTCOME_JUDGED &&
           comparison->catalogue->cases[result->case_id].parts[KEY_SUITE] == suite;
}

static void screen(struct case_result *result, double limit)
{
    struct judgement *judgement = &result->judgement;
    if (limit > 0.0 && judgement->verdict == VERDICT_INCONCLUSIVE &&
        judgement->log_ratio <= log1p(limit))
        judgement->verdict = VERDICT_PASSED;
}

/* Gives the evidence of a suite's cases that can be judged to the rule. */
static bool judge_suite(struct comparison *comparison, const char *suite)
{
    const struct rule *rule = &comparison->settings->rule;
    size_t room = comparison->count + 1;
    struct evidence *evidence = malloc(room * sizeof evidence[0]);
    struct judgement *judgements = malloc(room * sizeof judgements[0]);
    size_t judged = 0;
    for (size_t i = 0; evidence && i < comparison->count; i++)
        if (is_of_suite(comparison, &comparison->results[i], suite))
            evidence[judged++] = comparison->results[i].evidence;
    bool complete = evidence && judgements && judge_family(evidence, judged, rule, judgements);
    size_t next = 0;
    for (size_t i = 0; complete && i < comparison->count; i++) {
        struct case_result *result = &comparison->results[i];
        if (!is_of_suite(comparison, result, suite))
            continue;
        result->judgement = judgements[next++];
        screen(result, comparison->settings->screen);
        result->smallest_change = smallest_change(&result->judgement, rule);
    }
    free(evidence);
    free(judgements);
    return complete;
}

/* Each suite is a comparison of its own: what it finds does not depend on which
 * other suites were measured beside it. */
static bool judge_pairs(struct comparison *comparison)
{
    const struct case_key *cases = comparison->catalogue->cases;
    bool complete = true;
    comparison->suites = 0;
    for (size_t i = 0; complete && i < comparison->count; i++) {
        /* Every result has its case. NOLINTNEXTLINE(*-core.uninitialized.*) */
        const char *suite = cases[comparison->results[i].case_id].parts[KEY_SUITE];
        size_t first = comparison->results[i].outcome == OUTCOME_JUDGED ? 0 : i;
        while (!is_of_suite(comparison, &comparison->results[first], suite) && first < i)
            first++;
        if (first < i || comparison->results[i].outcome != OUTCOME_JUDGED)
            continue;
        comparison->suites++;
        complete = judge_suite(comparison, suite);
    }
    return complete;
}

static bool start(struct comparison *comparison, const struct settings *settings,
                  const struct catalogue *catalogue, const struct results *baseline,
                  const struct results *current)
{
    *comparison = (struct comparison){
        .settings = settings, .catalogue = catalogue, .baseline = baseline, .current = current};
    comparison->results = malloc((catalogue->keys.count + 1) * sizeof comparison->results[0]);
    return comparison->results != NULL;
}

static bool pair_sides(struct comparison *comparison, const struct rows_by_case *baseline,
                       const struct rows_by_case *current, struct scratch *scratch)
{
    const struct catalogue *catalogue = comparison->catalogue;
    for (uint32_t id = 0; id < catalogue->keys.count; id++)
        if (case_is_wanted(comparison->settings, &catalogue->cases[id]) &&
            !add_pair(comparison, id, id, rows_of_case(baseline, id), rows_of_case(current, id), scratch))
            return false;
    return true;
}

bool compare_sides(struct comparison *comparison, const struct settings *settings,
                   const struct catalogue *catalogue, const struct results *baseline,
                   const struct results *current)
{
    struct rows_by_case old = {0};
    struct rows_by_case new = {0};
    struct scratch scratch = {0};
    bool complete = start(comparison, settings, catalogue, baseline, current) &&
                    works_make(&scratch.works, catalogue) &&
                    rows_by_case_build(&old, baseline, catalogue->keys.count) &&
                    rows_by_case_build(&new, current, catalogue->keys.count) &&
                    pair_sides(comparison, &old, &new, &scratch) && note_other_flushes(comparison) &&
                    note_other_hosts(comparison) && judge_pairs(comparison);
    rows_by_case_free(&old);
    rows_by_case_free(&new);
    free_scratch(&scratch);
    return complete;
}

/* Cases are numbered as they appear, so the first of a group is its first. */
static bool pair_variants(struct comparison *comparison, const struct rows_by_case *index, uint32_t *first_of_group,
                          struct scratch *scratch)
{
    const struct catalogue *catalogue = comparison->catalogue;
    comparison->of_variants = true;
    memset(first_of_group, 0xff, catalogue->groups.count * sizeof first_of_group[0]);
    for (uint32_t id = 0; id < catalogue->keys.count; id++) {
        if (!case_is_wanted(comparison->settings, &catalogue->cases[id]))
            continue;
        uint32_t *first = &first_of_group[catalogue->cases[id].group];
        if (*first == INTERN_NONE)
            *first = id;
        else if (!add_pair(comparison, *first, id, rows_of_case(index, *first), rows_of_case(index, id), scratch))
            return false;
    }
    return true;
}

bool compare_variants(struct comparison *comparison, const struct settings *settings,
                      const struct catalogue *catalogue, const struct results *results)
{
    struct rows_by_case index = {0};
    struct scratch scratch = {0};
    uint32_t *first_of_group = malloc((catalogue->groups.count + 1) * sizeof first_of_group[0]);
    bool complete = start(comparison, settings, catalogue, results, results) && first_of_group &&
                    works_make(&scratch.works, catalogue) &&
                    rows_by_case_build(&index, results, catalogue->keys.count) &&
                    pair_variants(comparison, &index, first_of_group, &scratch) && judge_pairs(comparison);
    free(first_of_group);
    rows_by_case_free(&index);
    free_scratch(&scratch);
    return complete;
}

void comparison_free(struct comparison *comparison)
{
    free(comparison->results);
    free(comparison->far_runs);
    *comparison = (struct comparison){0};
}

size_t count_outcomes(const struct comparison *comparison, enum outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++)
        count += comparison->results[i].outcome == outcome;
    return count;
}

size_t count_verdicts(const struct comparison *comparison, enum verdict verdict)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++)
        count += comparison->results[i].outcome == OUTCOME_JUDGED &&
                 comparison->results[i].judgement.verdict == verdict;
    return count;
}

int comparison_status(const struct comparison *comparison)
{
    size_t not_ok = count_outcomes(comparison, OUTCOME_NOT_OK);
    size_t slower = count_verdicts(comparison, VERDICT_SLOWER);
    size_t missing = comparison->settings->subset ? 0 : count_outcomes(comparison, OUTCOME_MISSING);
    size_t judged = count_outcomes(comparison, OUTCOME_JUDGED) + count_outcomes(comparison, OUTCOME_BELOW_CONSTANT);
    bool nothing = judged + not_ok == 0;
    if (nothing || count_outcomes(comparison, OUTCOME_INVALID) > 0 ||
        count_outcomes(comparison, OUTCOME_WORK_CHANGED) > 0)
        return EXIT_CANNOT_JUDGE;
    if (comparison->of_variants)
        return EXIT_FINE;
    return slower + missing + not_ok > 0 ? EXIT_WORSE : EXIT_FINE;
}
