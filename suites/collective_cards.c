/*
 * collective_cards.c - who has which GPU: see collective_cards.h.
 */
#include "collective_cards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct seat {
    int host, isolated;
    char card[24]; /* its address on the host; empty: not known */
} seat;

static int is_shared(const seat *a, const seat *b)
{
    return a->host == b->host && *a->card && !strcmp(a->card, b->card);
}

static int judge(const seat *all, int count, int *isolated, char *message)
{
    *isolated = 0;
    for (int i = 0; i < count; i++) {
        *isolated |= all[i].isolated;
        for (int j = 0; j < i; j++) {
            if (!is_shared(&all[i], &all[j])) continue;
            snprintf(message, COLLECTIVE_MESSAGE,
                     "rank %d and rank %d have one GPU, %.23s: each needs its own "
                     "(CUDA_VISIBLE_DEVICES?)", j, i, all[i].card);
            return KERNEL_ERROR_ARGUMENT;
        }
    }
    return 0;
}

int cards_meet(const collective_library *library, const collective_ranks *ranks,
               const launch_place *place, int *isolated, char *message)
{
    const size_t count = (size_t)place->size;
    seat own = {.host = place->host}, *all = calloc(count, sizeof *all);
    int visible = library->card(ranks, own.card, sizeof own.card);
    int code = all ? 0 : KERNEL_ERROR_MEMORY;
    own.isolated = visible < place->local_size;
    if (code == 0) code = launch_gather(&own, all, sizeof own);
    if (code == 0) code = launch_broadcast(all, count * sizeof *all);
    if (code == 0) code = judge(all, place->size, isolated, message);
    free(all);
    return code;
}
