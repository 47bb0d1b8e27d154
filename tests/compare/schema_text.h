/* Builds files of schema 2 in memory, and compares them. */
#ifndef GPUBENCH_TESTS_COMPARE_SCHEMA_TEXT_H
#define GPUBENCH_TESTS_COMPARE_SCHEMA_TEXT_H

#include "../../compare/comparison.h"

struct text {
    char *bytes;
    size_t size;
    size_t capacity;
};

/* One row; what is NULL or 0 gets a usual value. */
struct text_row {
    const char *schema;
    const char *suite;
    const char *name; /* of the case, as it stands in the file */
    const char *variant;
    const char *backend;
    const char *params;
    const char *mode;
    const char *campaign;
    unsigned run;
    const char *status;
    const char *flags;
    const char *median_us;
    const char *overhead_us;
    const char *gb_per_s;
    const char *bytes;
    const char *flops;
    const char *seed;
    const char *device;
    const char *uuid;
    const char *node;
    const char *git;
    const char *timestamp;
    const char *counters;
};

void add_text(struct text *text, const char *format, ...);
void add_header(struct text *text);
void add_row(struct text *text, struct text_row row);

/* runs rows of one case and campaign, whose medians alternate by spread (a
 * fraction) around median_us. */
void add_runs(struct text *text, struct text_row row, unsigned runs, double median_us, double spread);

void free_text(struct text *text);

/* Two files that were read and compared. */
struct compared {
    struct catalogue catalogue;
    struct results baseline;
    struct results current;
    struct settings settings;
    struct constants constants;
    struct comparison comparison;
    char error[results_error_capacity];
    bool loaded; /* or error says why not */
};

struct settings usual_settings(void);

/* Fails the test when memory runs out. compared_free is due. */
void compare_texts(struct compared *compared, struct settings settings, const struct text *baseline,
                   const struct text *current);

void compared_free(struct compared *compared);

#endif
