#include "precise.h"

#include "race_judge.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

const size_t race_pairs_at[race_looks] = {5, 10, 20, 40};

static const double fence_reach = 0.1;
enum { fence_share = 10, least_pairs = 3 };

struct rule race_rule(const struct rule *rule, size_t look)
{
    size_t before = look > 0 ? race_pairs_at[look - 1] : 0;
    double share = (double)(race_pairs_at[look] - before) / race_most_pairs;
    struct rule at_look = *rule;
    at_look.confidence = 1.0 - share * (1.0 - rule->confidence);
    at_look.false_alarms = share * rule->false_alarms;
    return at_look;
}

static bool fence_pairs(struct race_case *one)
{
    double values[race_most_pairs];
    bool outside[race_most_pairs];
    for (size_t i = 0; i < one->count; i++)
        values[i] = one->pairs[i].log_ratio;
    size_t most = one->count < fence_share ? 1 : one->count / fence_share;
    one->evidence.baseline_outside =
        tukey_far_fence(values, one->count, log1p(fence_reach), most, outside);
    for (size_t i = 0; i < one->count; i++)
        one->pairs[i].outside = outside[i];
    return one->evidence.baseline_outside != SIZE_MAX;
}

/* The pairs of one order. */
struct order {
    double values[race_most_pairs];
    size_t count;
    double mean;
};

static struct order pairs_of_order(const struct race_case *one, bool new_first)
{
    struct order order = {.count = 0};
    for (size_t i = 0; i < one->count; i++)
        if (!one->pairs[i].outside && one->pairs[i].new_first == new_first)
            order.values[order.count++] = one->pairs[i].log_ratio;
    order.mean = order.count > 0 ? mean_of(order.values, order.count) : 0.0;
    return order;
}

static double median_without_place(struct order old_first, const struct order *new_first,
                                   double place)
{
    double *all = old_first.values;
    size_t count = old_first.count;
    for (size_t i = 0; i < count; i++)
        all[i] += place;
    for (size_t i = 0; i < new_first->count; i++)
        all[count++] = new_first->values[i] - place;
    sort_values(all, count);
    return sorted_quantile(all, count, 0.5);
}

/* Of both orders alike; where there is one only, of that. */
static double mean_of_orders(const struct order *one, const struct order *other)
{
    int orders = (one->count > 0) + (other->count > 0);
    return orders > 0 ? (one->mean + other->mean) / (double)orders : 0.0;
}

/* False where the pairs are too few to judge by; what they say on average is told. */
static bool weigh_pairs(struct race_case *one)
{
    struct order old_first = pairs_of_order(one, false);
    struct order new_first = pairs_of_order(one, true);
    size_t pairs = old_first.count + new_first.count;
    struct evidence *evidence = &one->evidence;
    evidence->paired = true;
    evidence->baseline_runs = evidence->current_runs = pairs;
    evidence->baseline_campaigns = evidence->current_campaigns = 1;
    evidence->log_ratio = mean_of_orders(&old_first, &new_first);
    if (pairs < least_pairs || old_first.count == 0 || new_first.count == 0)
        return false;
    one->place_effect = (new_first.mean - old_first.mean) / 2.0;
    evidence->median_log_ratio = median_without_place(old_first, &new_first, one->place_effect);
    evidence->run_variance.degrees = (double)(pairs - 2);
    evidence->run_variance.value = (squares_about_mean(old_first.values, old_first.count) +
                                    squares_about_mean(new_first.values, new_first.count)) /
                                   evidence->run_variance.degrees;
    evidence->run_factor = (1.0 / (double)old_first.count + 1.0 / (double)new_first.count) / 4.0;
    return true;
}

/* A case that was SAME stays in Holm's family, as one in which nothing is found. */
static struct evidence evidence_of(const struct race_case *one)
{
    struct evidence evidence = one->evidence;
    if (one->decided && one->judgement.verdict == VERDICT_SAME)
        evidence.log_ratio = evidence.median_log_ratio = 0.0;
    return evidence;
}

static void take_judgement(struct race_case *one, const struct judgement *judgement, size_t look)
{
    if (one->decided)
        return;
    one->judgement = *judgement;
    one->look = look;
    one->decided = judgement->verdict != VERDICT_INCONCLUSIVE;
}

static void leave_open(struct race_case *one, size_t look)
{
    one->look = look;
    one->judgement = (struct judgement){.verdict = VERDICT_INCONCLUSIVE,
                                        .reason = REASON_FEW_PAIRS,
                                        .log_ratio = one->evidence.log_ratio,
                                        .low = (double)NAN,
                                        .high = (double)NAN};
}

bool race_judge(struct race_case *cases, size_t count, const struct rule *rule, size_t look)
{
    struct evidence *evidence = calloc(count + 1, sizeof evidence[0]);
    struct judgement *judgements = malloc((count + 1) * sizeof judgements[0]);
    size_t *places = malloc((count + 1) * sizeof places[0]);
    struct rule at_look = race_rule(rule, look);
    bool complete = evidence && judgements && places;
    size_t judged = 0;
    for (size_t i = 0; complete && i < count; i++) {
        complete = cases[i].decided || fence_pairs(&cases[i]);
        if (cases[i].decided || (complete && weigh_pairs(&cases[i]))) {
            evidence[judged] = evidence_of(&cases[i]);
            places[judged++] = i;
        } else {
            leave_open(&cases[i], look);
        }
    }
    complete = complete && judge_family(evidence, judged, &at_look, judgements);
    for (size_t i = 0; complete && i < judged; i++)
        take_judgement(&cases[places[i]], &judgements[i], look);
    free(evidence);
    free(judgements);
    free(places);
    return complete;
}
