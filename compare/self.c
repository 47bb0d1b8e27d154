#include "precise.h"

#include "self.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { most_splits = 4000, least_runs = 4 };

static const double most_alarms = 0.01;

/* The ok runs of one case, in the order of the file. The first runs of all
 * cases are taken for one process, the second ones for the next, and so on:
 * so a split is as balanced in each of several suites, whose processes differ,
 * as it is in one. */
struct sample {
    double *costs;
    uint32_t *campaigns;
    uint32_t *sittings;
    size_t count;
};

/* Everything a split needs, allocated once. */
struct bench {
    struct works works;
    struct sample *samples;
    size_t sample_count;
    size_t run_count;  /* of the case with the most */
    bool *in_current;  /* of each run */
    uint32_t *sittings; /* of all samples, each once */
    size_t sitting_count;
    uint32_t current_sitting; /* instead of in_current, or INTERN_NONE */
    struct evidence *evidence;
    struct judgement *judgements;
    size_t *judged; /* the sample behind each of evidence */
    double *costs;  /* of a side's runs: baseline from the front, current from the back */
    uint32_t *campaigns;
    bool *outside;
};

static void free_bench(struct bench *bench)
{
    for (size_t i = 0; i < bench->sample_count; i++) {
        free(bench->samples[i].costs);
        free(bench->samples[i].campaigns);
        free(bench->samples[i].sittings);
    }
    works_free(&bench->works);
    free(bench->samples);
    free(bench->in_current);
    free(bench->sittings);
    free(bench->evidence);
    free(bench->judgements);
    free(bench->judged);
    free(bench->costs);
    free(bench->campaigns);
    free(bench->outside);
}

/* Adds the case's runs as a sample. *usable says whether it can be judged. */
static bool add_sample(struct bench *bench, const struct settings *settings, struct row_span span, bool *usable,
                       const struct row **invalid)
{
    struct problem problem;
    enum outcome outcome = outcome_of(settings->metric, &bench->works, span, span, &problem);
    *usable = outcome == OUTCOME_JUDGED && span.count >= least_runs;
    if (outcome == OUTCOME_INVALID && !*invalid)
        *invalid = problem.row;
    if (!*usable)
        return true;
    struct sample *sample = &bench->samples[bench->sample_count++];
    sample->count = span.count;
    sample->costs = malloc(span.count * sizeof sample->costs[0]);
    sample->campaigns = malloc(span.count * sizeof sample->campaigns[0]);
    sample->sittings = malloc(span.count * sizeof sample->sittings[0]);
    if (!sample->costs || !sample->campaigns || !sample->sittings)
        return false;
    if (span.count > bench->run_count)
        bench->run_count = span.count;
    for (size_t i = 0; i < span.count; i++) {
        sample->costs[i] = log_cost(settings->metric, value_without_constant(settings->metric, span.rows[i]));
        sample->campaigns[i] = span.rows[i]->campaign;
        sample->sittings[i] = span.rows[i]->sitting;
    }
    return true;
}

static bool reserve_cases(struct bench *bench, struct self_result *out, const struct catalogue *catalogue)
{
    size_t cases = catalogue->keys.count;
    bench->samples = calloc(cases + 1, sizeof bench->samples[0]);
    bench->evidence = malloc((cases + 1) * sizeof bench->evidence[0]);
    bench->judgements = malloc((cases + 1) * sizeof bench->judgements[0]);
    bench->judged = malloc((cases + 1) * sizeof bench->judged[0]);
    out->cases = calloc(cases + 1, sizeof out->cases[0]);
    return bench->samples && bench->evidence && bench->judgements && bench->judged && out->cases &&
           works_make(&bench->works, catalogue);
}

static bool list_sittings(struct bench *bench, const struct catalogue *catalogue)
{
    size_t most = catalogue->campaigns.count + 1;
    bool *listed = calloc(most, sizeof listed[0]);
    bench->sittings = calloc(most, sizeof bench->sittings[0]);
    for (size_t s = 0; listed && bench->sittings && s < bench->sample_count; s++)
        for (size_t i = 0; i < bench->samples[s].count; i++) {
            uint32_t sitting = bench->samples[s].sittings[i];
            if (!listed[sitting])
                bench->sittings[bench->sitting_count++] = sitting;
            listed[sitting] = true;
        }
    bool complete = listed && bench->sittings;
    free(listed);
    return complete;
}

/* Once the runs are counted. */
static bool reserve_runs(struct bench *bench)
{
    size_t runs = bench->run_count + 1;
    bench->in_current = calloc(runs, sizeof bench->in_current[0]);
    bench->costs = malloc(runs * sizeof bench->costs[0]);
    bench->campaigns = malloc(runs * sizeof bench->campaigns[0]);
    bench->outside = malloc(runs * sizeof bench->outside[0]);
    return bench->in_current && bench->costs && bench->campaigns && bench->outside;
}

static bool fill_bench(struct bench *bench, struct self_result *out, const struct settings *settings,
                       const struct catalogue *catalogue, const struct rows_by_case *index)
{
    for (uint32_t id = 0; id < catalogue->keys.count; id++) {
        if (!case_is_wanted(settings, &catalogue->cases[id]))
            continue;
        struct row_span span = rows_of_case(index, id);
        bool usable = false;
        if (!add_sample(bench, settings, span, &usable, &out->invalid))
            return false;
        if (usable)
            out->cases[out->case_count++] = (struct self_case){.case_id = id, .runs = span.count};
        else
            out->unusable++;
    }
    out->runs = bench->run_count;
    return reserve_runs(bench) && list_sittings(bench, catalogue);
}

static bool is_current(const struct bench *bench, const struct sample *sample, size_t run)
{
    return bench->current_sitting == INTERN_NONE ? bench->in_current[run]
                                                 : sample->sittings[run] == bench->current_sitting;
}

/* Gathers one case's evidence under the current split; false when memory ran
 * out. *complete says whether both sides have a run. */
static bool split_sample(struct bench *bench, const struct sample *sample, const struct rule *rule,
                         struct evidence *evidence, bool *complete)
{
    size_t front = 0;
    size_t back = sample->count;
    for (size_t i = 0; i < sample->count; i++) {
        size_t place = is_current(bench, sample, i) ? --back : front++;
        bench->costs[place] = sample->costs[i];
        bench->campaigns[place] = sample->campaigns[i];
    }
    *complete = front > 0 && back < sample->count;
    if (!*complete)
        return true;
    struct side baseline = {bench->costs, bench->campaigns, front};
    struct side current = {bench->costs + back, bench->campaigns + back, sample->count - back};
    return gather_evidence(baseline, current, rule, bench->outside, evidence);
}

/* Judges the current split, of *judged cases. *alarm says whether one came out SLOWER, and
 * out->cases count when count_cases asks for it. */
static bool judge_split(struct bench *bench, const struct rule *rule, struct self_result *out, bool count_cases,
                        size_t *judged_cases, bool *alarm)
{
    size_t judged = 0;
    for (size_t s = 0; s < bench->sample_count; s++) {
        bool complete = false;
        if (!split_sample(bench, &bench->samples[s], rule, &bench->evidence[judged], &complete))
            return false;
        if (complete)
            bench->judged[judged++] = s;
    }
    if (!judge_family(bench->evidence, judged, rule, bench->judgements))
        return false;
    *alarm = false;
    *judged_cases = judged;
    for (size_t i = 0; i < judged; i++) {
        bool slower = bench->judgements[i].verdict == VERDICT_SLOWER;
        *alarm = *alarm || slower;
        if (count_cases) {
            out->cases[bench->judged[i]].splits++;
            out->cases[bench->judged[i]].alarms += slower;
        }
    }
    return true;
}

/* n over k, or more than most_splits. */
static double ways(size_t n, size_t k)
{
    double product = 1.0;
    for (size_t i = 1; i <= k && product <= most_splits; i++)
        product = product * (double)(n - k + i) / (double)i;
    return product;
}

/* Steps to the next choice of as many runs, in the order in which the lowest
 * movable one moves up; false after the last. */
static bool next_choice(bool *chosen, size_t count)
{
    size_t ones = 0;
    size_t i = 0;
    while (i < count && !chosen[i])
        i++;
    for (; i < count && chosen[i]; i++)
        ones++;
    if (i == count)
        return false;
    chosen[i] = true;
    for (size_t j = 0; j < i; j++)
        chosen[j] = j < ones - 1;
    return true;
}

/* splitmix64, Steele, Lea and Flood (2014), "Fast splittable pseudorandom
 * number generators". */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Fisher and Yates's shuffle. */
static void shuffle_choice(bool *chosen, size_t count, uint64_t *state)
{
    for (size_t left = count; left > 1; left--) {
        size_t taken = (size_t)(next_random(state) % left);
        bool swapped = chosen[left - 1];
        chosen[left - 1] = chosen[taken];
        chosen[taken] = swapped;
    }
}

static bool split_runs(struct bench *bench, const struct rule *rule, struct self_result *out)
{
    uint64_t state = 1;
    size_t half = out->runs / 2, judged;
    bench->current_sitting = INTERN_NONE;
    out->every_split = ways(out->runs, half) <= most_splits;
    for (size_t i = 0; i < out->runs; i++)
        bench->in_current[i] = i < half;
    bool more = true;
    while (more) {
        if (!out->every_split)
            shuffle_choice(bench->in_current, out->runs, &state);
        bool alarm = false;
        if (!judge_split(bench, rule, out, true, &judged, &alarm))
            return false;
        out->splits++;
        out->alarms += alarm;
        more = out->every_split ? next_choice(bench->in_current, out->runs) : out->splits < most_splits;
    }
    return true;
}

/* Where but one sitting measured, no case has runs on both sides. */
static bool split_campaigns(struct bench *bench, const struct rule *rule, struct self_result *out)
{
    for (size_t i = 0; i < bench->sitting_count; i++) {
        size_t judged = 0;
        bool alarm = false;
        bench->current_sitting = bench->sittings[i];
        if (!judge_split(bench, rule, out, false, &judged, &alarm))
            return false;
        out->campaigns += judged > 0;
        out->campaign_alarms += alarm;
    }
    return true;
}

bool self_compare(struct self_result *out, const struct settings *settings, const struct catalogue *catalogue,
                  const struct results *results)
{
    *out = (struct self_result){0};
    struct bench bench = {0};
    struct rows_by_case index = {0};
    struct rule rule = settings->rule;
    rule.campaigns_in_common = true;
    bool complete = reserve_cases(&bench, out, catalogue) &&
                    rows_by_case_build(&index, results, catalogue->keys.count) &&
                    fill_bench(&bench, out, settings, catalogue, &index);
    if (complete && out->invalid)
        out->refusal = "a row that is ok has no value that a measurement can have";
    else if (complete && out->case_count == 0)
        out->refusal = "no case has four ok runs or more";
    else if (complete)
        complete = split_runs(&bench, &rule, out) && split_campaigns(&bench, &rule, out);
    rows_by_case_free(&index);
    free_bench(&bench);
    return complete;
}

int self_status(const struct self_result *result)
{
    if (result->refusal)
        return EXIT_CANNOT_JUDGE;
    double rate = (double)result->alarms / (double)result->splits;
    return rate > most_alarms ? EXIT_WORSE : EXIT_FINE;
}

void self_free(struct self_result *result)
{
    free(result->cases);
    *result = (struct self_result){0};
}
