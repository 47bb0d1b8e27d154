/* The parts of RFC 8259 that the reports in JSON are made of. */
#ifndef GPUBENCH_COMPARE_JSON_H
#define GPUBENCH_COMPARE_JSON_H

#include "comparison.h"

#include <stdio.h>

/* A string. A byte that is no UTF-8 becomes the replacement character. */
void json_string(FILE *out, const char *text);
void json_text_or_null(FILE *out, const char *text);

/* null for what RFC 8259 does not know: infinity and NAN. */
void json_number(FILE *out, double value);

struct json_member {
    const char *name;
    double value;
};

/* The members of an object, separated by commas. */
void json_members(FILE *out, const struct json_member *members, size_t count);

const char *json_truth(bool value);

/* The members of an object that say which case it is about, separated by commas. */
void json_key(FILE *out, const struct case_key *key);

/* The members that say what was compared and by which rule. */
void json_rule(FILE *out, const struct settings *settings);

#endif
