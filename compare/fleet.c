#include "precise.h"

#include "fleet.h"

#include <math.h>
#include <stdlib.h>

/* Steps of a clock make equal values, between which nothing is known. */
static const double least_deviation = 0.0005;

static const double most_deviations = 10.0;

/* The median absolute deviation of normal values is this part of theirs. */
static const double mad_of_normal = 0.6745;

struct fleet {
    struct fleet_value *values;
    size_t value_count;
    struct fleet_card *cards;
    size_t card_count;
    double *deviation; /* of each value's case */
    double *scratch;   /* for the larger number of values and cards */
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
        card->mean += value->difference;
    }
    for (size_t i = 0; i < fleet->card_count; i++)
        fleet->cards[i].mean /= fmax(1.0, (double)fleet->cards[i].cases);
}

/* Fills the scatter and, for the time being, the squares into high. */
static void measure_scatter(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->value_count; i++) {
        struct fleet_value *value = &fleet->values[i];
        struct fleet_card *card = &fleet->cards[value->card];
        double distance = value->difference - card->mean;
        value->deviations = distance / fleet->deviation[i];
        if (isnan(distance))
            continue;
        card->high += distance * distance;
        card->worst = fmax(card->worst, fabs(distance));
        card->scatter += fmin(fabs(value->deviations), most_deviations);
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
        card->scatter = log(card->scatter / fmax(1.0, cases) + least_deviation);
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
static size_t list_judged(struct fleet *fleet, size_t least_cases)
{
    size_t count = 0;
    for (size_t i = 0; i < fleet->card_count; i++)
        if (fleet->cards[i].cases >= least_cases)
            fleet->judged[count++] = i;
    return count;
}

static bool find_off(struct fleet *fleet, const struct rule *rule, double *reach)
{
    size_t count = list_judged(fleet, 1);
    *reach = INFINITY;
    if (count < least_cards)
        return true;
    for (size_t i = 0; i < count; i++)
        fleet->figures[i] = fleet->cards[fleet->judged[i]].mean;
    narrow_by_runs(fleet, count);
    if (!mark_extremes(fleet->figures, count, rule->false_alarms / 2.0, true, least_deviation,
                       fleet->extreme, reach))
        return false;
    double margin = log1p(rule->margin);
    for (size_t i = 0; i < count; i++) {
        struct fleet_card *card = &fleet->cards[fleet->judged[i]];
        card->off = fleet->extreme[i] && fabs(card->mean) > margin;
    }
    *reach = fmax(*reach, margin);
    return true;
}

static bool find_scattered(struct fleet *fleet, const struct rule *rule)
{
    size_t count = list_judged(fleet, 2);
    double reach = 0.0;
    if (count < least_cards)
        return true;
    for (size_t i = 0; i < count; i++)
        fleet->figures[i] = fleet->cards[fleet->judged[i]].scatter;
    narrow_by_runs(fleet, count);
    if (!mark_extremes(fleet->figures, count, rule->false_alarms / 2.0, false, least_deviation,
                       fleet->extreme, &reach))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct fleet_card *card = &fleet->cards[fleet->judged[i]];
        card->scattered = fleet->extreme[i] && card->worst > log1p(rule->margin);
    }
    return true;
}

static bool reserve(struct fleet *fleet)
{
    size_t most =
        (fleet->value_count > fleet->card_count ? fleet->value_count : fleet->card_count) + 1;
    fleet->deviation = malloc((fleet->value_count + 1) * sizeof fleet->deviation[0]);
    fleet->scratch = malloc(most * sizeof fleet->scratch[0]);
    fleet->judged = malloc((fleet->card_count + 1) * sizeof fleet->judged[0]);
    fleet->figures = malloc((fleet->card_count + 1) * sizeof fleet->figures[0]);
    fleet->extreme = malloc((fleet->card_count + 1) * sizeof fleet->extreme[0]);
    return fleet->deviation && fleet->scratch && fleet->judged && fleet->figures && fleet->extreme;
}

static void release(struct fleet *fleet)
{
    free(fleet->deviation);
    free(fleet->scratch);
    free(fleet->judged);
    free(fleet->figures);
    free(fleet->extreme);
}

bool judge_fleet(struct fleet_value *values, size_t value_count, const struct rule *rule,
                 struct fleet_card *cards, size_t card_count, double *reach)
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
        measure_scatter(&fleet);
        bound_means(&fleet, rule);
        complete = find_off(&fleet, rule, reach) && find_scattered(&fleet, rule);
    }
    release(&fleet);
    return complete;
}
