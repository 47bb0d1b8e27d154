/* A file of rows in memory, as one side that is looked at alone. */
#ifndef GPUBENCH_TESTS_COMPARE_ONE_SIDE_H
#define GPUBENCH_TESTS_COMPARE_ONE_SIDE_H

#include "cmocka_all.h"
#include "schema_text.h"

struct one_side {
    struct text text;
    struct catalogue catalogue;
    struct results results;
    struct settings settings;
    char error[results_error_capacity];
};

static inline struct one_side begin_side(void)
{
    struct one_side side = {.settings = usual_settings()};
    add_header(&side.text);
    return side;
}

/* Once the rows are there. */
static inline void load_side(struct one_side *side)
{
    static const char *const path = "T.csv";
    side->catalogue.metric = side->settings.metric;
    if (!results_load_bytes(&side->results, &side->catalogue, &path, side->text.bytes,
                            side->text.size, side->error))
        fail_msg("%s", side->error);
}

static inline const char *case_name(const struct one_side *side, uint32_t case_id)
{
    return side->catalogue.cases[case_id].parts[KEY_CASE];
}

static inline void end_side(struct one_side *side)
{
    results_free(&side->results);
    catalogue_free(&side->catalogue);
    free_text(&side->text);
}

#endif
