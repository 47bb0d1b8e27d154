/* Which of the cards in some files is odd: see fleet.h for the rule. */
#ifndef GPUBENCH_COMPARE_CARDS_H
#define GPUBENCH_COMPARE_CARDS_H

#include "comparison.h"
#include "fleet.h"

/* The cards of one model, by the column device. */
struct model {
    uint32_t device;
    struct fleet_value *values; /* of a card, case by case */
    size_t value_count;
    struct fleet_card *cards;
    uint32_t *uuids; /* of each card: in provenance */
    uint32_t *pcis;
    uint32_t *nodes;
    size_t card_count;
    struct fleet_summary summary; /* its reach is infinite where the model cannot be judged */
};

struct cards_result {
    struct model *models;
    size_t model_count;
    size_t nameless;           /* ok rows without a uuid, left out */
    size_t throttled;          /* ok rows that are no evidence, left out */
    const struct row *invalid; /* an ok row without a value, or NULL: nothing is judged then */
};

/* False means that memory ran out; cards_free is due either way. */
bool find_odd_cards(struct cards_result *out, const struct settings *settings,
                    const struct catalogue *catalogue, const struct results *results);

bool card_is_odd(const struct fleet_card *card);

/* EXIT_WORSE where a card is odd, EXIT_CANNOT_JUDGE where no model can be judged. */
int cards_status(const struct cards_result *result);

void cards_free(struct cards_result *result);

#endif
