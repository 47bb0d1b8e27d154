/*
 * collective_cards.h - which GPUs the processes of a job take: each its own, and whether
 * they see those of the others.
 */
#ifndef COLLECTIVE_CARDS_H
#define COLLECTIVE_CARDS_H

#include "../kernels/collective/collective.h"
#include "launch.h"

/* Called by every process of a job before it opens the library, and the same everywhere: 0,
 * or a code and a message that names two ranks with one GPU. *isolated: a process sees fewer
 * GPUs than its host has ranks, so that the library may not use the links between them. */
int cards_meet(const collective_library *library, const collective_ranks *ranks,
               const launch_place *place, int *isolated, char *message);

#endif
