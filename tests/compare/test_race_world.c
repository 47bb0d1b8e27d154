/* The world of the committed baselines, resampled: how often does each way of
 * judging raise an alarm, and how many slowdowns does it find?
 *
 * Every suite's baseline in baselines/nvidia-h100-80gb-hbm3/ holds R runs in each of
 * C campaigns (other cards, hosts and sittings). Of each case's logarithm of the
 * median, its mean over campaigns is taken out; what is left is the campaign's
 * effect (its mean) and the residuals of the runs in it, widened by
 * sqrt(C / (C - 1)) and sqrt(R / (R - 1)) for the means that were estimated. A
 * sitting is drawn as ONE campaign, a process as ONE run of one campaign, for all
 * cases of the suite at once: what cases have in common stays in common. A family
 * is a comparison of one suite: as many campaigns and runs as were committed,
 * drawn anew, are its baseline, and another campaign with three runs is its
 * current side. Both sides of a race are in the same sitting, so a pair is the
 * difference of two processes' residuals. Planted are +3, +5 and +10 % in 5 % of the
 * cases, drawn at random.
 *
 *   test_race_world [FAMILIES [FOLDER]]   families a suite (else few: a minute)
 */
#include "../../compare/race_judge.h"
#include "../../compare/results.h"

#include "cmocka_all.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    suite_count = 9,
    most_campaigns = 8,
    most_runs = 40,
    current_runs = 3,
    plants = 3,
    slices = 20
};

static const char *const suites[suite_count] = {
    "attention", "block", "ceilings", "embedding", "ffn", "loss", "memcpy", "norm", "optimizer"};
static const double planted[plants] = {0.03, 0.05, 0.10};
static const double screen = 0.02; /* the margin: a median above it is raced */
static const double doubt = 0.01;  /* one process above it is followed by the others */

static const char *folder = "baselines/nvidia-h100-80gb-hbm3";
static size_t families_of_suite = 0;

/* One suite: effects[campaign][case] and residuals[run][case]. */
struct world {
    size_t cases;
    size_t campaigns;
    size_t runs;
    size_t runs_of[most_campaigns];
    double *effects;
    double *residuals;
    size_t *trials; /* of a case, and how often +5 % was found by screen and race */
    size_t *found;
};

/* ---- reading */

struct cell {
    double sum;
    size_t count;
};

static size_t run_index(struct world *world, uint64_t *names, const struct row *row)
{
    uint64_t name = (uint64_t)row->campaign << 32 | row->run;
    for (size_t i = 0; i < world->runs; i++)
        if (names[i] == name)
            return i;
    assert_true(world->runs < most_runs);
    names[world->runs] = name;
    return world->runs++;
}

/* values[run][case] of the cases that are ok in every run, campaigns in order. */
static double *complete_cases(struct world *world, const struct results *results, size_t keys,
                              size_t *campaign_of)
{
    uint64_t names[most_runs];
    double *all = calloc(most_runs * keys, sizeof all[0]);
    size_t *seen = calloc(keys, sizeof seen[0]);
    assert_true(all && seen);
    for (size_t i = 0; i < results->count; i++) {
        const struct row *row = &results->rows[i];
        size_t run = run_index(world, names, row);
        if (row->status != STATUS_OK)
            continue;
        all[run * keys + row->case_id] = log(row->value);
        seen[row->case_id]++;
    }
    double *values = malloc(world->runs * keys * sizeof values[0]);
    assert_non_null(values);
    for (size_t id = 0; id < keys; id++) {
        if (seen[id] < world->runs)
            continue;
        for (size_t run = 0; run < world->runs; run++)
            values[run * keys + world->cases] = all[run * keys + id];
        world->cases++;
    }
    for (size_t run = 0; run < world->runs; run++) {
        campaign_of[run] = (size_t)(names[run] >> 32);
        if (campaign_of[run] + 1 > world->campaigns)
            world->campaigns = campaign_of[run] + 1;
        world->runs_of[campaign_of[run]]++;
    }
    free(all);
    free(seen);
    return values;
}

/* Splits one case's values into effects and residuals. */
static void split_case(struct world *world, const double *values, size_t stride, size_t index,
                       const size_t *campaign_of)
{
    double means[most_campaigns] = {0};
    double mean = 0.0;
    for (size_t run = 0; run < world->runs; run++)
        means[campaign_of[run]] +=
            values[run * stride + index] / (double)world->runs_of[campaign_of[run]];
    for (size_t c = 0; c < world->campaigns; c++)
        mean += means[c] / (double)world->campaigns;
    double wider = sqrt((double)world->campaigns / (double)(world->campaigns - 1));
    for (size_t c = 0; c < world->campaigns; c++)
        world->effects[c * world->cases + index] = wider * (means[c] - mean);
    for (size_t run = 0; run < world->runs; run++) {
        double runs = (double)world->runs_of[campaign_of[run]];
        world->residuals[run * world->cases + index] =
            sqrt(runs / (runs - 1.0)) * (values[run * stride + index] - means[campaign_of[run]]);
    }
}

static void read_world(struct world *world, const char *suite)
{
    char path[512];
    char error[results_error_capacity];
    const char *const paths[] = {path};
    struct catalogue catalogue = {.metric = find_metric("median_us")};
    struct results results = {0};
    size_t campaign_of[most_runs];
    snprintf(path, sizeof path, "%s/%s.csv", folder, suite);
    if (!results_load(&results, &catalogue, paths, 1, error))
        fail_msg("%s", error);
    size_t keys = catalogue.keys.count;
    double *values = complete_cases(world, &results, keys, campaign_of);
    world->effects = malloc(world->campaigns * world->cases * sizeof(double));
    world->residuals = malloc(world->runs * world->cases * sizeof(double));
    world->trials = calloc(world->cases, sizeof(size_t));
    world->found = calloc(world->cases, sizeof(size_t));
    assert_true(world->effects && world->residuals && world->trials && world->found);
    for (size_t i = 0; i < world->cases; i++)
        split_case(world, values, keys, i, campaign_of);
    free(values);
    results_free(&results);
    catalogue_free(&catalogue);
}

static void free_world(struct world *world)
{
    free(world->effects);
    free(world->residuals);
    free(world->trials);
    free(world->found);
}

/* ---- drawing */

/* One family: which campaigns and runs it was dealt. */
struct deal {
    const double *baseline_campaign[most_campaigns];
    const double *baseline_run[most_runs];
    uint32_t baseline_campaign_of[most_runs];
    size_t baseline_runs;
    const double *current_campaign;
    const double *current_run[current_runs];
    const double *race_run[2 * race_most_pairs];
    size_t *slice; /* of each case: slice 0, 1, ... is planted together */
};

static const double *draw_campaign(const struct world *world, uint64_t *random)
{
    return &world->effects[random_below(random, world->campaigns) * world->cases];
}

static const double *draw_run(const struct world *world, uint64_t *random)
{
    return &world->residuals[random_below(random, world->runs) * world->cases];
}

static void deal_family(const struct world *world, struct deal *deal, uint64_t *random)
{
    deal->baseline_runs = 0;
    for (size_t c = 0; c < world->campaigns; c++) {
        deal->baseline_campaign[c] = draw_campaign(world, random);
        for (size_t run = 0; run < world->runs_of[c]; run++) {
            deal->baseline_campaign_of[deal->baseline_runs] = (uint32_t)c;
            deal->baseline_run[deal->baseline_runs++] = draw_run(world, random);
        }
    }
    deal->current_campaign = draw_campaign(world, random);
    for (size_t run = 0; run < current_runs; run++)
        deal->current_run[run] = draw_run(world, random);
    for (size_t run = 0; run < 2 * race_most_pairs; run++)
        deal->race_run[run] = draw_run(world, random);
    for (size_t i = 0; i < world->cases; i++)
        deal->slice[i] = random_below(random, slices);
}

static void baseline_of(const struct deal *deal, size_t index, double *values)
{
    for (size_t run = 0; run < deal->baseline_runs; run++)
        values[run] = deal->baseline_campaign[deal->baseline_campaign_of[run]][index] +
                      deal->baseline_run[run][index];
}

static void current_of(const struct deal *deal, size_t index, double plant, double *values)
{
    for (size_t run = 0; run < current_runs; run++)
        values[run] = deal->current_campaign[index] + deal->current_run[run][index] + plant;
}

/* ---- judging: each fills slower[case] */

static void judge_against_baseline(const struct world *world, const struct deal *deal,
                                   const double *plant, bool *slower)
{
    static const uint32_t current_campaigns[current_runs] = {most_campaigns, most_campaigns,
                                                             most_campaigns};
    struct evidence *evidence = malloc(world->cases * sizeof evidence[0]);
    struct judgement *judgements = malloc(world->cases * sizeof judgements[0]);
    struct rule rule = default_rule();
    assert_true(evidence && judgements);
    for (size_t i = 0; i < world->cases; i++) {
        double old[most_runs];
        double new[current_runs];
        bool outside[most_runs];
        baseline_of(deal, i, old);
        current_of(deal, i, plant[i], new);
        struct side baseline = {old, deal->baseline_campaign_of, deal->baseline_runs};
        struct side current = {new, current_campaigns, current_runs};
        assert_true(gather_evidence(baseline, current, &rule, outside, &evidence[i]));
    }
    assert_true(judge_family(evidence, world->cases, &rule, judgements));
    for (size_t i = 0; i < world->cases; i++)
        slower[i] = judgements[i].verdict == VERDICT_SLOWER;
    free(evidence);
    free(judgements);
}

static bool all_decided(const struct race_case *race, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!race[i].decided)
            return false;
    return true;
}

static void add_pairs(const struct deal *deal, struct race_case *one, size_t index, double plant,
                      size_t until)
{
    for (size_t pair = one->count; pair < until && !one->decided; pair++) {
        double old = deal->race_run[2 * pair][index];
        double new = deal->race_run[2 * pair + 1][index];
        one->pairs[one->count++] =
            (struct race_pair){.log_ratio = new + plant - old, .new_first = pair % 2 == 1};
    }
}

/* Returns how many pairs were run, of all cases together. */
static size_t race(const struct world *world, const struct deal *deal, const bool *raced,
                   const double *plant, bool *slower)
{
    struct race_case *cases = calloc(world->cases, sizeof cases[0]);
    size_t *index = malloc(world->cases * sizeof index[0]);
    size_t count = 0;
    size_t pairs = 0;
    struct rule rule = default_rule();
    assert_true(cases && index);
    for (size_t i = 0; i < world->cases; i++) {
        slower[i] = false;
        if (raced[i])
            index[count++] = i;
    }
    for (size_t look = 0; look < race_looks && !all_decided(cases, count); look++) {
        for (size_t i = 0; i < count; i++)
            add_pairs(deal, &cases[i], index[i], plant[index[i]], race_pairs_at[look]);
        assert_true(race_judge(cases, count, &rule, look));
    }
    for (size_t i = 0; i < count; i++) {
        slower[index[i]] = cases[i].judgement.verdict == VERDICT_SLOWER;
        pairs += cases[i].count;
    }
    free(cases);
    free(index);
    return pairs;
}

/* By how much the median of the first runs is above the baseline's. */
static double change_of(const struct deal *deal, size_t index, double plant, size_t runs)
{
    double old[most_runs];
    double new[current_runs];
    baseline_of(deal, index, old);
    current_of(deal, index, plant, new);
    sort_values(old, deal->baseline_runs);
    sort_values(new, runs);
    return sorted_quantile(new, runs, 0.5) - sorted_quantile(old, deal->baseline_runs, 0.5);
}

/* Returns how many cases were measured by more than one process. */
static size_t screen_cases(const struct world *world, const struct deal *deal, const double *plant,
                           bool sequential, bool *raced)
{
    size_t further = 0;
    for (size_t i = 0; i < world->cases; i++) {
        bool doubtful = !sequential || change_of(deal, i, plant[i], 1) > log1p(doubt);
        further += doubtful;
        raced[i] = doubtful && change_of(deal, i, plant[i], current_runs) > log1p(screen);
    }
    return further;
}

/* ---- the table */

enum protocol { AGAINST_BASELINE, SCREEN_AND_RACE, RACE_OF_ALL, SEQUENTIAL_SCREEN, PROTOCOLS };

struct counts {
    size_t families;
    size_t alarmed;
    size_t trials;
    size_t found[plants];
    size_t pairs;
    size_t raced;
    size_t further;
    size_t cases;
};

static void judge(enum protocol protocol, const struct world *world, const struct deal *deal,
                  const double *plant, bool *slower, struct counts *counts)
{
    bool *raced = malloc(world->cases * sizeof raced[0]);
    assert_non_null(raced);
    for (size_t i = 0; i < world->cases; i++)
        raced[i] = true;
    if (protocol == SCREEN_AND_RACE || protocol == SEQUENTIAL_SCREEN)
        counts->further += screen_cases(world, deal, plant, protocol == SEQUENTIAL_SCREEN, raced);
    counts->cases += world->cases;
    if (protocol == AGAINST_BASELINE)
        judge_against_baseline(world, deal, plant, slower);
    else
        counts->pairs += race(world, deal, raced, plant, slower);
    for (size_t i = 0; i < world->cases; i++)
        counts->raced += raced[i];
    free(raced);
}

static void count_alarm(enum protocol protocol, const struct world *world, const struct deal *deal,
                        struct counts *counts)
{
    double *plant = calloc(world->cases, sizeof plant[0]);
    bool *slower = malloc(world->cases * sizeof slower[0]);
    bool alarmed = false;
    assert_true(plant && slower);
    judge(protocol, world, deal, plant, slower, counts);
    for (size_t i = 0; i < world->cases; i++)
        alarmed |= slower[i];
    counts->families++;
    counts->alarmed += alarmed;
    free(plant);
    free(slower);
}

static void count_found(enum protocol protocol, struct world *world, const struct deal *deal,
                        size_t slice, struct counts *counts)
{
    struct counts ignored = {0};
    double *plant = malloc(world->cases * sizeof plant[0]);
    bool *slower = malloc(world->cases * sizeof slower[0]);
    assert_true(plant && slower);
    for (size_t p = 0; p < plants; p++) {
        for (size_t i = 0; i < world->cases; i++)
            plant[i] = deal->slice[i] == slice ? log1p(planted[p]) : 0.0;
        judge(protocol, world, deal, plant, slower, &ignored);
        for (size_t i = 0; i < world->cases; i++) {
            bool found = deal->slice[i] == slice && slower[i];
            counts->trials += p == 0 && deal->slice[i] == slice;
            counts->found[p] += found;
            if (p != 1 || protocol != SCREEN_AND_RACE)
                continue;
            world->trials[i] += deal->slice[i] == slice;
            world->found[i] += found;
        }
    }
    free(plant);
    free(slower);
}

/* families[protocol] without a slowdown, and as many slices with one, of protocols from first
 * to before end. */
static void run_suite(struct world *world, int first, int end, const size_t *families,
                      const size_t *planted_slices, struct counts *counts, uint64_t *random)
{
    struct deal deal = {.slice = malloc(world->cases * sizeof deal.slice[0])};
    assert_non_null(deal.slice);
    for (int protocol = first; protocol < end; protocol++) {
        for (size_t family = 0; family < families[protocol]; family++) {
            deal_family(world, &deal, random);
            count_alarm((enum protocol)protocol, world, &deal, &counts[protocol]);
        }
        for (size_t slice = 0; slice < planted_slices[protocol]; slice++) {
            if (slice % slices == 0)
                deal_family(world, &deal, random);
            count_found((enum protocol)protocol, world, &deal, slice % slices, &counts[protocol]);
        }
    }
    free(deal.slice);
}

static double percent(size_t part, size_t whole)
{
    return 100.0 * (double)part / (double)(whole ? whole : 1);
}

static void print_line(const char *name, const struct counts *c)
{
    printf("  %-44s %6.2f %% of %zu   %5.1f / %5.1f / %5.1f %% of %zu   %5.1f cases, %4.1f pairs "
           "each\n",
           name, percent(c->alarmed, c->families), c->families, percent(c->found[0], c->trials),
           percent(c->found[1], c->trials), percent(c->found[2], c->trials), c->trials,
           (double)c->raced / (double)c->families,
           (double)c->pairs / (double)(c->raced ? c->raced : 1));
}

/* How many cases have a slowdown of 5 % found nine times in ten. */
static double percent_with_power(const struct world *worlds)
{
    size_t cases = 0;
    size_t powerful = 0;
    for (size_t s = 0; s < suite_count; s++) {
        for (size_t i = 0; i < worlds[s].cases; i++)
            powerful += 10 * worlds[s].found[i] >= 9 * worlds[s].trials[i];
        cases += worlds[s].cases;
    }
    printf("  +5 %% is found nine times in ten in %zu of %zu cases\n", powerful, cases);
    return percent(powerful, cases);
}

static void the_world_of_the_baselines(void **state)
{
    (void)state;
    static struct world worlds[suite_count];
    struct counts counts[PROTOCOLS] = {{0}};
    size_t families[PROTOCOLS] = {60, 600, 60, 600};
    size_t planted_slices[PROTOCOLS] = {20, 1000, 20, 200};
    uint64_t random = 20261128;
    uint64_t later = 20261129;
    for (int protocol = 0; families_of_suite > 0 && protocol < PROTOCOLS; protocol++)
        families[protocol] = planted_slices[protocol] = families_of_suite;
    for (size_t s = 0; s < suite_count; s++) {
        read_world(&worlds[s], suites[s]);
        run_suite(&worlds[s], 0, SEQUENTIAL_SCREEN, families, planted_slices, counts, &random);
        run_suite(&worlds[s], SEQUENTIAL_SCREEN, PROTOCOLS, families, planted_slices, counts, &later);
    }
    printf("  %-44s %s\n", "protocol", "families alarmed   +3 / +5 / +10 % found");
    print_line("3 runs against the baseline", &counts[AGAINST_BASELINE]);
    print_line("screen by the baseline, race what it flags", &counts[SCREEN_AND_RACE]);
    print_line("the same, of one process and what it doubts", &counts[SEQUENTIAL_SCREEN]);
    print_line("race of every case", &counts[RACE_OF_ALL]);
    const struct counts *sequential = &counts[SEQUENTIAL_SCREEN];
    printf("  one process doubts %.1f %% of cases\n", percent(sequential->further, sequential->cases));
    double powerful = percent_with_power(worlds);
    for (size_t s = 0; s < suite_count; s++)
        free_world(&worlds[s]);
    const struct counts *both = &counts[SCREEN_AND_RACE];
    assert_true(percent(both->alarmed, both->families) <= 1.0);
    assert_true(percent(both->found[1], both->trials) >= 95.0);
    assert_true(powerful >= 90.0);
    assert_true(percent(sequential->alarmed, sequential->families) <= 1.0);
    assert_true(percent(sequential->found[1], sequential->trials) >= 95.0);
    assert_true(percent(counts[RACE_OF_ALL].alarmed, counts[RACE_OF_ALL].families) <= 1.0);
    assert_true(percent(counts[RACE_OF_ALL].found[1], counts[RACE_OF_ALL].trials) >= 95.0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        families_of_suite = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        folder = argv[2];
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_world_of_the_baselines)};
    return cmocka_run_group_tests_name("compare: the world of the baselines", tests, NULL, NULL);
}
