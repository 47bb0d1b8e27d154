#include "precise.h"

#include "json.h"

#include "report_parts.h"
#include "utf8.h"

#include <math.h>
#include <string.h>

void json_string(FILE *out, const char *text)
{
    const unsigned char *next = (const unsigned char *)text;
    putc('"', out);
    while (*next) {
        size_t length = utf8_length(next);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (*next < 0x20 || *next == 0x7f)
            fprintf(out, "\\u%04x", (unsigned)*next);
        else if (*next == 0xc2 && next[1] < 0xa0) /* a control character in two bytes */
            fprintf(out, "\\u%04x", (unsigned)next[1]);
        else if (*next == '#' && next[1] == '#') /* "##[error]" is a command in a CI's log */
            fputs("\\u0023", out);
        else if (*next == '"' || *next == '\\')
            fprintf(out, "\\%c", *next);
        else
            fwrite(next, 1, length, out);
        next += length ? length : 1;
    }
    putc('"', out);
}

void json_text_or_null(FILE *out, const char *text)
{
    if (text)
        json_string(out, text);
    else
        fputs("null", out);
}

void json_number(FILE *out, double value)
{
    if (isfinite(value))
        print_csv_number(out, value);
    else
        fputs("null", out);
}

void json_members(FILE *out, const struct json_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\"%s\":", i ? "," : "", members[i].name);
        json_number(out, members[i].value);
    }
}

const char *json_truth(bool value)
{
    return value ? "true" : "false";
}

void json_key(FILE *out, const struct case_key *key)
{
    for (int part = 0; part < KEY_PARTS; part++) {
        fprintf(out, "%s\"%s\":", part ? "," : "", key_column_names[part]);
        json_string(out, key->parts[part]);
    }
}

void json_rule(FILE *out, const struct settings *settings)
{
    const struct rule *rule = &settings->rule;
    const struct json_member members[] = {{"margin", rule->margin},
                                          {"confidence", rule->confidence},
                                          {"false_alarms", rule->false_alarms},
                                          {"threshold", rule->threshold}};
    fprintf(out, "\"metric\":\"%s\",\"unit\":\"%s\",\"bigger_is_better\":%s,",
            settings->metric->column, settings->metric->unit,
            json_truth(settings->metric->bigger_is_better));
    json_members(out, members, sizeof members / sizeof members[0]);
}
