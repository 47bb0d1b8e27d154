/*
 * scaling_reference.h - what one rank's step of the whole batch leaves, for scaling_check.c.
 */
#ifndef SCALING_REFERENCE_H
#define SCALING_REFERENCE_H

#include "scaling_train.h"

/* On the host, as it is stored: all elements, also those between tensors. */
typedef struct train_reference {
    void *before, *after, *gradients; /* parameters before and after the update */
    void *found; /* as much room, for what a rank left */
    float loss;
} train_reference;

/* With these AdamW moves a parameter by its gradient times the learning rate, nearly: a large
 * epsilon and no decay. With the usual ones it moves by the rate whatever the gradient's size,
 * and its sign where that is nothing but rounding. */
extern const optimizer_adamw train_linear;

/* Of the whole batch of set's ranks; the work is done by this process's first one, on its
 * device. It stays for the next work whose ranks share the same batch: other variants, other
 * sizes of buckets. NULL and a's code where it cannot be had. */
const train_reference *train_reference_of(train_set *set, ranks_answer *a);

/* Gives back what stays; harmless where nothing does. */
void train_forget_reference(void);

#endif
