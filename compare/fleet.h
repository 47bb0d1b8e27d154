/* Which cards of one model are odd, as pure functions.
 *
 * A card has one value for each case: the median over all its runs, whatever their
 * campaign, as the logarithm of a cost. Its difference is that value less the
 * median over the cards; what such differences are among healthy cards says their
 * median absolute deviation. From a card's differences two figures are made:
 *
 *  - the mean: the card is slower or faster in everything. Odd where it stands too
 *    far from those of the other cards, and is beyond the margin.
 *  - the scatter: the logarithm of the mean size of the differences from the card's
 *    own mean, in units of each case's deviation, 10 at most. Odd where it is too
 *    large: some cases are off, and others are not. One far case alone does not do.
 *
 * Too far is what mark_extremes says, so that healthy cards may differ among each
 * other, by the same in all cases or by case, and the cases need not be independent.
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
    double deviations; /* the difference from the card's mean, in those of the case */
};

struct fleet_card {
    size_t cases; /* that three cards or more have; 0: not judged */
    size_t runs;
    double mean; /* of the differences, and its bounds over cases; NAN of one case */
    double low;
    double high;
    double worst; /* the size of the largest difference from the mean */
    double scatter;
    bool off;       /* in everything */
    bool scattered; /* in some cases */
};

/* Fills the values' last two fields and one of cards for each card, and *reach with
 * the smallest difference in everything that would have been found odd, infinite
 * where no card can be judged. False when memory ran out. */
bool judge_fleet(struct fleet_value *values, size_t value_count, const struct rule *rule,
                 struct fleet_card *cards, size_t card_count, double *reach);

#endif
