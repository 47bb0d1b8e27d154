/* The command line of a race's programs. */
#ifndef GPUBENCH_COMPARE_RACE_ARGUMENTS_H
#define GPUBENCH_COMPARE_RACE_ARGUMENTS_H

#include "options.h"
#include "race_files.h"

/* What the user wrote behind --, without the --filter in it. */
struct race_arguments {
    const char **items;
    size_t count;
    const char *filter; /* the user's, or NULL */
    bool no_verify;     /* the user wants none verified */
    uint64_t seed;      /* of the first pair; the others count on from it */
};

/* Takes the arguments apart. Those by which a race itself steers its programs are
 * refused with a message. race_arguments_free is due either way. */
bool race_arguments_take(struct race_arguments *out, const struct paths *given,
                         char error[race_error_capacity]);

void race_arguments_free(struct race_arguments *arguments);

/* What one process is for. */
struct race_turn {
    unsigned pair; /* from 1; 0 is the warm-up, which measures as briefly as can be */
    bool verify;
};

/* The words of one process, NULL behind them; filter may be NULL, seed_text is room
 * for the seed. To be freed, the words themselves not; NULL when memory ran out. */
const char **race_arguments_words(const struct race_arguments *arguments, const char *program,
                                  const char *csv, const char *filter, struct race_turn turn,
                                  char seed_text[32]);

#endif
