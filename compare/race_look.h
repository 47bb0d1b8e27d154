/* What a race knows so far: the rows of both sides, their comparison, and which
 * cases are decided. */
#ifndef GPUBENCH_COMPARE_RACE_LOOK_H
#define GPUBENCH_COMPARE_RACE_LOOK_H

#include "comparison.h"
#include "race_files.h"
#include "race_judge.h"
#include "race_keys.h"
#include "race_report.h"

struct race_counts {
    size_t slower, faster, same, open;
    size_t pairs_outside;
};

struct race_standing {
    const struct settings *settings;
    struct race_keys only; /* the cases that take part; empty takes all */
    struct catalogue catalogue;
    const char *paths[2]; /* of the rows, as messages name them */
    struct results sides[2];
    struct comparison comparison;
    struct race_case *cases; /* those that were measured on both sides */
    uint32_t *case_ids;      /* their numbers in the catalogue */
    size_t count;
    size_t capacity;
    struct race_counts counts;
};

void race_standing_start(struct race_standing *standing, const struct settings *settings);
void race_standing_free(struct race_standing *standing);

/* Reads the rows of both sides and pairs their cases. False with a message. */
bool race_take_rows(struct race_standing *standing, const struct race_files *files,
                    char error[results_error_capacity]);

/* Judges the cases that are not decided, and puts what the race knows of each case
 * into the comparison. */
bool race_look(struct race_standing *standing, size_t look, char error[results_error_capacity]);

bool race_has_common(const struct race_standing *standing);

/* A uuid beside the first one in the rows of both sides, or NULL. */
const char *race_other_card(const struct race_standing *standing);

/* Adds the names of the cases that are not decided; false when memory ran out. */
bool race_open_keys(const struct race_standing *standing, struct race_keys *keys);

/* The median over the cases of the logarithm of first / second. */
double race_place_effect(const struct race_standing *standing);

#endif
