/* Which cards of one model are odd, as pure functions.
 *
 * A card has one value for each case: the median over all its runs, whatever their
 * campaign, as the logarithm of a cost. Its difference is that value less the
 * median over the cards; what such differences are among healthy cards says their
 * median absolute deviation. From a card's differences two figures are made:
 *
 *  - the mean: the card is slower or faster in everything. Odd where it stands too
 *    far from those of the other cards, and is beyond the margin. No case takes part
 *    with more than 4 deviations from the card's median one (a mean winsorized as in
 *    Huber 1981, "Robust statistics"): one process that took twice as long would move
 *    the mean of thirty cases by more than the margin.
 *  - the scatter: the logarithm of the mean size of the differences from the card's
 *    median one, in units of each case's deviation, 16 at most, without the farthest:
 *    one far case alone does not do. Odd where it is too large: some cases are off, and
 *    others are not. Only of cards with three runs of their cases or more.
 *
 * Too far is what mark_extremes says, so that healthy cards may differ among each
 * other, by the same in all cases or by case, and the cases need not be independent.
 * From 500 cards on the figure must also be beyond what its own tail promises of so
 * many (tail_reach): figures need not be normal then, and cards of a second group, such
 * as those of hosts with another cooling, are no odd ones as long as there are more of
 * them than one in fifty. They are counted, so that they are not passed over in silence.
 * Each figure gets half of the rate of false alarms, over all cards of the model. A
 * card with fewer runs than most is held to a wider limit. */
#ifndef GPUBENCH_COMPARE_FLEET_H
#define GPUBENCH_COMPARE_FLEET_H

#include "evidence.h"

enum { least_cards = 3 };

/* One card in one case; those of a case stand next to each other. */
struct fleet_value {
    uint32_t card; /* from 0 */
    uint32_t case_id;
    size_t runs;
    double log_cost;
    double difference; /* the last two are filled in; NAN with fewer than three cards */
    double deviations; /* the difference from the card's median one, in those of the case */
};

struct fleet_card {
    size_t cases; /* that three cards or more have; 0: not judged */
    size_t runs;
    double mean; /* of the winsorized differences; its bounds over cases; NAN of one case */
    double low;
    double high;
    double worst; /* the size of the largest difference from the median one */
    double scatter;
    bool off;       /* in everything */
    bool scattered; /* in some cases */
};

/* What is said of all cards of a model together. */
struct fleet_summary {
    /* The smallest difference in everything that would have been found odd; infinite
     * where no card can be judged. */
    double reach;
    /* Cards that no normal sample would hold, but so many alike that they pass. */
    size_t apart;
};

/* Fills the values' last two fields, one of cards for each card, and *summary. False
 * when memory ran out. */
bool judge_fleet(struct fleet_value *values, size_t value_count, const struct rule *rule,
                 struct fleet_card *cards, size_t card_count, struct fleet_summary *summary);

#endif
