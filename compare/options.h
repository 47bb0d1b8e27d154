/* The command line. */
#ifndef GPUBENCH_COMPARE_OPTIONS_H
#define GPUBENCH_COMPARE_OPTIONS_H

#include "report.h"

#include <regex.h>
#include <stdio.h>

enum mode { MODE_COMPARE, MODE_VARIANTS, MODE_SELF, MODE_CHECK, MODE_RACE, MODE_CARDS, MODE_HISTORY,
            MODE_KERNELS, MODE_HELP };

struct paths {
    const char *const *items; /* a stretch of argv */
    size_t count;
};

enum { options_error_capacity = 512 };

struct options {
    enum mode mode;
    struct paths baseline; /* the only side of --variants and --self */
    struct paths current;
    struct settings settings; /* without its filter */
    struct metric counter;    /* what the settings' metric is if it is no column */
    const char *filter;       /* NULL takes every case */
    enum format format;
    struct listing listing;
    bool oldest; /* only the oldest campaign of each case of the baseline */
    const char *output; /* NULL is standard output; of a race a folder for its rows */
    const char *verdicts; /* a file for them beside the report, or NULL */
    struct paths arguments; /* of a race's programs */
    const char *only;       /* a file with the names of the cases to race, or NULL */
    double timeout_s;       /* of one process of a race */
    double race_s;          /* after which no pair is begun; INFINITY: no end */
};

/* On false, error names the option and the value that cannot be. */
bool parse_options(struct options *options, int argc, const char *const *argv,
                   char error[options_error_capacity]);

void print_usage(FILE *out);

#endif
