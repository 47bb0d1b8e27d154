#include "precise.h"

#include "fleet.h"

#include <math.h>
#include <stdlib.h>

/* Steps of a clock make equal values, between which nothing is known. */
static const double least_deviation = 0.0005;

static const double most_deviations = 16.0; /* in the scatter, and in the mean */
static const double most_of_mean = 4.0;

/* With fewer runs a card that is off in some cases and processes that went astray look
 * the same: of three runs the median is not one process's. */
enum { least_runs = 3 };

/* A fiftieth of fewer is too few to tell a tail from. */
enum { least_for_tail = 500 };

/* The median absolute deviation of normal values is this part of theirs. */
static const double mad_of_normal = 0.6745;

struct fleet {
    struct fleet_value *values;
    size_t value_count;
    struct fleet_card *cards;
    size_t card_count;
    double *deviation; /* of each value's case */
    double *scratch;   /* for the larger number of values and cards */
    double *by_card;   /* the differences, those of a card next to each other */
    double *middles;   /* of each card: its median difference, and what the scatter leaves out */
    double *farthest;
    size_t *judged;    /* the cards with a case, and one figure of each */
    double *figures;
    bool *extreme;
};

static size_t end_of_case(const struct fleet *fleet, size_t first)
{
    size_t end = first;
    while (end < fleet->value_count && fleet->values[end].case_id == fleet->values[first].case_id)
        end++;
    return end;
}

/* A median of fewer runs than most cards have stands farther off by chance. */
static void widen_by_runs(struct fleet *fleet, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        fleet->scratch[i - first] = (double)fleet->values[i].runs;
    double usual = median_by_sorting(fleet->scratch, end - first);
    for (size_t i = first; i < end; i++)
        fleet->deviation[i] *= sqrt(fmax(1.0, usual / (double)fleet->values[i].runs));
}

static void judge_case(struct fleet *fleet, size_t first, size_t end)
{
    struct fleet_value *values = fleet->values;
    for (size_t i = first; i < end; i++)
        fleet->scratch[i - first] = values[i].log_cost;
    double middle = median_by_sorting(fleet->scratch, end - first);
    for (size_t i = first; i < end; i++) {
        values[i].difference =
            end - first < least_cards ? (double)NAN : values[i].log_cost - middle;
        fleet->scratch[i - first] = fabs(values[i].log_cost - middle);
    }
    double deviation =
        fmax(median_by_sorting(fleet->scratch, end - first) / mad_of_normal, least_deviation);
    for (size_t i = first; i < end; i++)
        fleet->deviation[i] = deviation;
    widen_by_runs(fleet, first, end);
}

static void count_values(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->value_count; i++) {
        const struct fleet_value *value = &fleet->values[i];
        struct fleet_card *card = &fleet->cards[value->card];
        if (isnan(value->difference))
            continue;
        card->cases++;
        card->runs += value->runs;
    }
}

/* Of each card the median difference, into middles. by_card is filled card by card: `at`
 * runs from where a card's differences begin to where they end. */
static void find_middles(struct fleet *fleet)
{
    size_t *at = fleet->judged;
    size_t begin = 0;
    for (size_t i = 0; i < fleet->card_count; i++) {
        at[i] = begin;
        begin += fleet->cards[i].cases;
    }
    for (size_t i = 0; i < fleet->value_count; i++)
        if (!isnan(fleet->values[i].difference))
            fleet->by_card[at[fleet->values[i].card]++] = fleet->values[i].difference;
    for (size_t i = 0; i < fleet->card_count; i++) {
        size_t cases = fleet->cards[i].cases;
        if (cases > 0)
            fleet->middles[i] = median_by_sorting(fleet->by_card + at[i] - cases, cases);
    }
}

/* The difference, moved to within most_of_mean of its card's median one. */
static double winsorized(const struct fleet *fleet, size_t i)
{
    const struct fleet_value *value = &fleet->values[i];
    double reach = most_of_mean * fleet->deviation[i];
    double distance = value->difference - fleet->middles[value->card];
    return fleet->middles[value->card] + fmin(fmax(distance, -reach), reach);
}

static void find_means(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->value_count; i++)
        if (!isnan(fleet->values[i].difference))
            fleet->cards[fleet->values[i].card].mean += winsorized(fleet, i);
    for (size_t i = 0; i < fleet->card_count; i++)
        fleet->cards[i].mean /= fmax(1.0, (double)fleet->cards[i].cases);
}

/* Fills the scatter and, for the time being, the squares into high. */
static void measure_scatter(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->value_count; i++) {
        struct fleet_value *value = &fleet->values[i];
        struct fleet_card *card = &fleet->cards[value->card];
        double distance = value->difference - fleet->middles[value->card];
        value->deviations = distance / fleet->deviation[i];
        if (isnan(distance))
            continue;
        double near = winsorized(fleet, i) - card->mean;
        double counted = fmin(fabs(value->deviations), most_deviations);
        card->high += near * near;
        card->worst = fmax(card->worst, fabs(distance));
        card->scatter += counted;
        fleet->farthest[value->card] = fmax(fleet->farthest[value->card], counted);
    }
}

static void bound_means(struct fleet *fleet, const struct rule *rule)
{
    for (size_t i = 0; i < fleet->card_count; i++) {
        struct fleet_card *card = &fleet->cards[i];
        double cases = (double)card->cases;
        double reach = (double)NAN;
        if (card->cases > 1)
            reach = student_quantile(1.0 - rule->confidence, cases - 1.0) *
                    sqrt(card->high / (cases - 1.0) / cases);
        card->low = card->mean - reach;
        card->high = card->mean + reach;
        card->scatter = log((card->scatter - fleet->farthest[i]) / fmax(1.0, cases - 1.0) +
                            least_deviation);
    }
}

/* Moves the figures of cards with fewer runs than most towards the middle, by as
 * much as chance moves them farther out. */
static void narrow_by_runs(struct fleet *fleet, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fleet->scratch[i] = (double)fleet->cards[fleet->judged[i]].runs;
    double usual = median_by_sorting(fleet->scratch, count);
    for (size_t i = 0; i < count; i++)
        fleet->scratch[i] = fleet->figures[i];
    double middle = median_by_sorting(fleet->scratch, count);
    for (size_t i = 0; i < count; i++) {
        double share = (double)fleet->cards[fleet->judged[i]].runs / usual;
        fleet->figures[i] = middle + (fleet->figures[i] - middle) * sqrt(fmin(1.0, share));
    }
}

/* The scatter of a card with a single case is always 0. */
static size_t list_judged(struct fleet *fleet, size_t least_cases, size_t runs_of_case)
{
    size_t count = 0;
    for (size_t i = 0; i < fleet->card_count; i++) {
        const struct fleet_card *card = &fleet->cards[i];
        if (card->cases >= least_cases && card->runs >= runs_of_case * card->cases)
            fleet->judged[count++] = i;
    }
    return count;
}

/* Marks the figures that are too far, in extreme. From least_for_tail cards on the
 * figures' own tail has a say: what only a normal sample would not hold passes, and is
 * counted in *apart. */
static bool find_extremes(struct fleet *fleet, size_t count, double rate, bool both_sides,
                          struct fleet_summary *found)
{
    narrow_by_runs(fleet, count);
    if (!mark_extremes(fleet->figures, count, rate, both_sides, least_deviation, fleet->extreme,
                       &found->reach))
        return false;
    found->apart = 0;
    if (count < least_for_tail)
        return true;
    double middle = 0.0;
    double limit = tail_reach(fleet->figures, fleet->scratch, count, rate, both_sides,
                              least_deviation, &middle);
    for (size_t i = 0; i < count; i++) {
        if (!fleet->extreme[i] || fabs(fleet->figures[i] - middle) > limit)
            continue;
        fleet->extreme[i] = false;
        found->apart++;
    }
    found->reach = fmax(found->reach, limit);
    return true;
}

static bool find_off(struct fleet *fleet, const struct rule *rule, struct fleet_summary *summary)
{
    size_t count = list_judged(fleet, 1, 1);
    double margin = log1p(rule->margin);
    *summary = (struct fleet_summary){.reach = INFINITY};
    if (count < least_cards)
        return true;
    for (size_t i = 0; i < count; i++)
        fleet->figures[i] = fleet->cards[fleet->judged[i]].mean;
    if (!find_extremes(fleet, count, rule->false_alarms / 2.0, true, summary))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct fleet_card *card = &fleet->cards[fleet->judged[i]];
        card->off = fleet->extreme[i] && fabs(card->mean) > margin;
    }
    summary->reach = fmax(summary->reach, margin);
    return true;
}

static bool find_scattered(struct fleet *fleet, const struct rule *rule,
                           struct fleet_summary *summary)
{
    size_t count = list_judged(fleet, 2, least_runs);
    struct fleet_summary found = {0};
    if (count < least_cards)
        return true;
    for (size_t i = 0; i < count; i++)
        fleet->figures[i] = fleet->cards[fleet->judged[i]].scatter;
    if (!find_extremes(fleet, count, rule->false_alarms / 2.0, false, &found))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct fleet_card *card = &fleet->cards[fleet->judged[i]];
        card->scattered = fleet->extreme[i] && card->worst > log1p(rule->margin);
    }
    summary->apart = found.apart > summary->apart ? found.apart : summary->apart;
    return true;
}

static bool reserve(struct fleet *fleet)
{
    size_t most =
        (fleet->value_count > fleet->card_count ? fleet->value_count : fleet->card_count) + 1;
    fleet->deviation = malloc((fleet->value_count + 1) * sizeof fleet->deviation[0]);
    fleet->scratch = malloc(most * sizeof fleet->scratch[0]);
    fleet->by_card = malloc((fleet->value_count + 1) * sizeof fleet->by_card[0]);
    fleet->middles = malloc((fleet->card_count + 1) * sizeof fleet->middles[0]);
    fleet->farthest = calloc(fleet->card_count + 1, sizeof fleet->farthest[0]);
    fleet->judged = malloc((fleet->card_count + 1) * sizeof fleet->judged[0]);
    fleet->figures = malloc((fleet->card_count + 1) * sizeof fleet->figures[0]);
    fleet->extreme = malloc((fleet->card_count + 1) * sizeof fleet->extreme[0]);
    return fleet->deviation && fleet->scratch && fleet->by_card && fleet->middles &&
           fleet->farthest && fleet->judged && fleet->figures && fleet->extreme;
}

static void release(struct fleet *fleet)
{
    free(fleet->deviation);
    free(fleet->scratch);
    free(fleet->by_card);
    free(fleet->middles);
    free(fleet->farthest);
    free(fleet->judged);
    free(fleet->figures);
    free(fleet->extreme);
}

bool judge_fleet(struct fleet_value *values, size_t value_count, const struct rule *rule,
                 struct fleet_card *cards, size_t card_count, struct fleet_summary *summary)
{
    struct fleet fleet = {
        .values = values, .value_count = value_count, .cards = cards, .card_count = card_count};
    for (size_t i = 0; i < card_count; i++)
        cards[i] = (struct fleet_card){0};
    bool complete = reserve(&fleet);
    for (size_t first = 0, end; complete && first < value_count; first = end) {
        end = end_of_case(&fleet, first);
        judge_case(&fleet, first, end);
    }
    if (complete) {
        count_values(&fleet);
        find_middles(&fleet);
        find_means(&fleet);
        measure_scatter(&fleet);
        bound_means(&fleet, rule);
        complete = find_off(&fleet, rule, summary) && find_scattered(&fleet, rule, summary);
    }
    release(&fleet);
    return complete;
}
