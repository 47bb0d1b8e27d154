/* Two files of rows in memory that are compared. */
#ifndef GPUBENCH_TESTS_COMPARE_TWO_SIDES_H
#define GPUBENCH_TESTS_COMPARE_TWO_SIDES_H

#include "cmocka_all.h"
#include "schema_text.h"

#include <string.h>

/* Two sides under construction; finish compares them. */
struct sides {
    struct text baseline;
    struct text current;
    struct compared compared;
};

static inline struct sides begin(void)
{
    struct sides sides = {.baseline = {0}};
    add_header(&sides.baseline);
    add_header(&sides.current);
    return sides;
}

static inline void finish_with(struct sides *sides, struct settings settings)
{
    compare_texts(&sides->compared, settings, &sides->baseline, &sides->current);
}

static inline void finish(struct sides *sides)
{
    finish_with(sides, usual_settings());
    if (!sides->compared.loaded)
        fail_msg("%s", sides->compared.error);
}

static inline void end(struct sides *sides)
{
    compared_free(&sides->compared);
    free_text(&sides->baseline);
    free_text(&sides->current);
}

static inline const struct case_result *result_of(const struct sides *sides, const char *name)
{
    const struct comparison *comparison = &sides->compared.comparison;
    for (size_t i = 0; i < comparison->count; i++)
        if (strcmp(comparison->catalogue->cases[comparison->results[i].case_id].parts[KEY_CASE], name) == 0)
            return &comparison->results[i];
    fail_msg("no case %s", name);
    return NULL;
}

static inline void assert_outcome(const struct sides *sides, const char *name, enum outcome outcome)
{
    assert_int_equal(result_of(sides, name)->outcome, outcome);
}

static inline void assert_verdict(const struct sides *sides, const char *name, enum verdict verdict)
{
    assert_outcome(sides, name, OUTCOME_JUDGED);
    assert_int_equal(result_of(sides, name)->judgement.verdict, verdict);
}

static inline int status_of(const struct sides *sides)
{
    return comparison_status(&sides->compared.comparison);
}

/* Ten steady baseline runs and three current ones of the case. */
static inline void add_both(struct sides *sides, const char *name, double baseline_us, double current_us)
{
    add_runs(&sides->baseline, (struct text_row){.name = name}, 10, baseline_us, 0.002);
    add_runs(&sides->current, (struct text_row){.name = name, .campaign = "new"}, 3, current_us, 0.002);
}

#endif
