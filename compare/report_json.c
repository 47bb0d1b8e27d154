#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "race_report.h"
#include "report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of the UTF-8 character at text, or 0 where there is none: no start of one, a
 * cut one, one that is longer than it need be, a surrogate, or one beyond U+10FFFF
 * (RFC 3629). */
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xc2 ? 0
                    : text[0] < 0xe0 ? 2
                    : text[0] < 0xf0 ? 3
                                     : 4;
    if (text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* A string of RFC 8259. A byte that is no UTF-8 becomes the replacement character. */
static void print_string(FILE *out, const char *text)
{
    const unsigned char *next = (const unsigned char *)text;
    putc('"', out);
    while (*next) {
        size_t length = utf8_length(next);
        if (length == 0)
            fputs("\\ufffd", out);
        else if (*next < 0x20 || *next == 0x7f)
            fprintf(out, "\\u%04x", (unsigned)*next);
        else if (*next == '"' || *next == '\\')
            fprintf(out, "\\%c", *next);
        else
            fwrite(next, 1, length, out);
        next += length ? length : 1;
    }
    putc('"', out);
}

static void print_text_or_null(FILE *out, const char *text)
{
    if (text)
        print_string(out, text);
    else
        fputs("null", out);
}

/* RFC 8259 knows neither infinity nor NAN. */
static void print_number(FILE *out, double value)
{
    if (isfinite(value))
        print_csv_number(out, value);
    else
        fputs("null", out);
}

struct member {
    const char *name;
    double value;
};

/* The members of an object, separated by commas. */
static void print_members(FILE *out, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\"%s\":", i ? "," : "", members[i].name);
        print_number(out, members[i].value);
    }
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

/* The geometric mean of the costs of all judged cases over those of the baseline. */
static double mean_ratio(const struct comparison *comparison)
{
    double sum = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (comparison->results[i].outcome != OUTCOME_JUDGED)
            continue;
        sum += comparison->results[i].judgement.log_ratio;
        count++;
    }
    return count ? exp(sum / (double)count) : (double)NAN;
}

static void print_totals(FILE *out, const struct comparison *c)
{
    size_t unsure = count_verdicts(c, VERDICT_INCONCLUSIVE) +
                    count_outcomes(c, OUTCOME_BELOW_CONSTANT) +
                    count_outcomes(c, OUTCOME_THROTTLED);
    const struct member members[] = {
        {"cases", (double)c->count},
        {"slower", (double)count_verdicts(c, VERDICT_SLOWER)},
        {"faster", (double)count_verdicts(c, VERDICT_FASTER)},
        {"same", (double)count_verdicts(c, VERDICT_SAME)},
        {"inconclusive", (double)unsure},
        {"not_ok", (double)count_outcomes(c, OUTCOME_NOT_OK)},
        {"missing", (double)count_outcomes(c, OUTCOME_MISSING)},
        {"invalid", (double)count_outcomes(c, OUTCOME_INVALID)},
        {"work_changed", (double)count_outcomes(c, OUTCOME_WORK_CHANGED)},
        {"new", (double)count_outcomes(c, OUTCOME_NEW)},
        {"never_ok", (double)count_outcomes(c, OUTCOME_NEVER_OK)},
        {"no_value", (double)count_outcomes(c, OUTCOME_NOT_APPLICABLE)},
        {"cost_ratio", mean_ratio(c)},
    };
    fputs("\"totals\":{", out);
    print_members(out, members, sizeof members / sizeof members[0]);
    fputs("},\n", out);
}

static void print_settings(FILE *out, const struct comparison *comparison)
{
    const struct settings *settings = comparison->settings;
    const struct rule *rule = &settings->rule;
    const struct member members[] = {{"margin", rule->margin},
                                     {"confidence", rule->confidence},
                                     {"false_alarms", rule->false_alarms},
                                     {"threshold", rule->threshold}};
    fprintf(out, "\"settings\":{\"metric\":\"%s\",\"unit\":\"%s\",\"bigger_is_better\":%s,",
            settings->metric->column, settings->metric->unit,
            truth(settings->metric->bigger_is_better));
    print_members(out, members, sizeof members / sizeof members[0]);
    fprintf(out, ",\"variants\":%s,\"subset\":%s,\"ignore_device\":%s,\"keep_constant\":%s},\n",
            truth(comparison->of_variants), truth(settings->subset), truth(settings->ignore_device),
            truth(settings->keep_constant));
}

static void print_names(FILE *out, const struct intern_table *names, const bool *taken)
{
    const char *separator = "";
    putc('[', out);
    for (uint32_t id = 0; id < names->count; id++) {
        if (taken && !taken[id])
            continue;
        fputs(separator, out);
        print_string(out, intern_text(names, id));
        separator = ",";
    }
    putc(']', out);
}

/* The catalogue's devices are those of both sides. */
static void print_devices(FILE *out, const struct comparison *comparison,
                          const struct results *side)
{
    const struct intern_table *devices = &comparison->catalogue->devices;
    bool *taken = calloc(devices->count + 1, sizeof taken[0]);
    for (size_t i = 0; taken && i < side->count; i++)
        taken[side->rows[i].device] = true;
    fputs("\"devices\":", out);
    if (taken)
        print_names(out, devices, taken);
    else
        fputs("null", out);
    free(taken);
}

static void print_side(FILE *out, const struct comparison *comparison, const struct results *side,
                       const char *name)
{
    fprintf(out, "\"%s\":{\"files\":[", name);
    for (size_t i = 0; i < side->path_count; i++) {
        fputs(i ? "," : "", out);
        print_string(out, side->paths[i]);
    }
    fprintf(out, "],\"rows\":%zu,\"processes\":%zu,", side->count, side->run_count);
    print_devices(out, comparison, side);
    for (int column = 0; column < PROVENANCE_COLUMNS; column++) {
        fprintf(out, ",\"%s\":", provenance_column_names[column]);
        print_names(out, &side->provenance[column], NULL);
    }
    fputs("},\n", out);
}

static void print_constants(FILE *out, const struct constants *constants)
{
    fputs("\"host_constants\":[", out);
    for (size_t i = 0; constants && i < constants->count; i++) {
        const struct constant *constant = &constants->of_mode[i];
        const struct member members[] = {{"baseline_us", constant->baseline_us},
                                         {"current_us", constant->current_us},
                                         {"moved_rows", (double)constant->moved_rows}};
        fprintf(out, "%s{\"mode\":", i ? "," : "");
        print_string(out, constant->mode);
        putc(',', out);
        print_members(out, members, sizeof members / sizeof members[0]);
        putc('}', out);
    }
    fputs("],\n", out);
}

static void print_race(FILE *out, const struct race_summary *race)
{
    if (!race) {
        fputs("\"race\":null,\n", out);
        return;
    }
    const struct member members[] = {{"pairs", (double)race->pairs},
                                     {"processes", (double)race->processes},
                                     {"seconds", race->seconds},
                                     {"place_effect", expm1(race->place_effect)},
                                     {"open", (double)race->open}};
    fputs("\"race\":{\"old\":", out);
    print_string(out, race->programs[0]);
    fputs(",\"new\":", out);
    print_string(out, race->programs[1]);
    putc(',', out);
    print_members(out, members, sizeof members / sizeof members[0]);
    fputs("},\n", out);
}

/* Numbers that only a judged case has are null in the others. */
static void print_case_numbers(FILE *out, const struct comparison *comparison,
                               const struct case_result *result)
{
    static const struct evidence no_evidence;
    bool judged = result->outcome == OUTCOME_JUDGED;
    struct ratio ratio = {(double)NAN, (double)NAN, (double)NAN};
    if (judged)
        ratio = metric_ratio(result, comparison->settings->metric);
    const struct evidence *evidence = judged ? &result->evidence : &no_evidence;
    double unless_judged = judged ? 0.0 : (double)NAN;
    double unless_counted = evidence->campaigns_counted ? 0.0 : (double)NAN;
    const struct member members[] = {
        {"baseline", unless_judged + result->baseline_median},
        {"current", unless_judged + result->current_median},
        {"ratio", ratio.value},
        {"ratio_low", ratio.low},
        {"ratio_high", ratio.high},
        {"smallest_change", judged ? result->smallest_change : (double)NAN},
        {"baseline_runs", unless_judged + (double)evidence->baseline_runs},
        {"baseline_left_out", unless_judged + (double)evidence->baseline_outside},
        {"baseline_campaigns", unless_judged + (double)evidence->baseline_campaigns},
        {"baseline_throttled", (double)result->baseline_throttled},
        {"current_runs", unless_judged + (double)evidence->current_runs},
        {"current_campaigns", unless_judged + (double)evidence->current_campaigns},
        {"current_throttled", (double)result->current_throttled},
        {"run_spread", judged ? result->judgement.run_spread : (double)NAN},
        {"campaign_spread",
         judged ? unless_counted + result->judgement.campaign_spread : (double)NAN},
        {"degrees", judged ? result->judgement.degrees : (double)NAN}};
    print_members(out, members, sizeof members / sizeof members[0]);
}

/* The reason in words, as the text says it; null when memory ran out. */
static void print_reason_string(FILE *out, const struct comparison *comparison,
                                const struct case_result *result)
{
    char *reason = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&reason, &size);
    if (stream) {
        print_reason(stream, comparison, result);
        fclose(stream);
    }
    print_text_or_null(out, reason);
    free(reason);
}

static void print_case(FILE *out, const struct comparison *comparison,
                       const struct case_result *result)
{
    const struct case_key *cases = comparison->catalogue->cases;
    putc('{', out);
    for (int part = 0; part < KEY_PARTS; part++) {
        fprintf(out, "\"%s\":", key_column_names[part]);
        print_string(out, cases[result->case_id].parts[part]);
        putc(',', out);
    }
    fputs("\"baseline_variant\":", out);
    print_string(out, cases[result->baseline_case_id].parts[KEY_VARIANT]);
    fprintf(out, ",\"verdict\":\"%s\",\"reason\":", verdict_word(result));
    print_reason_string(out, comparison, result);
    fputs(",\"other_flush\":", out);
    print_text_or_null(out, result->other_flush);
    putc(',', out);
    print_case_numbers(out, comparison, result);
    putc('}', out);
}

void report_json(FILE *out, const struct comparison *comparison)
{
    fprintf(out, "{\"format\":1,\n\"status\":%d,\n", comparison_status(comparison));
    print_totals(out, comparison);
    print_settings(out, comparison);
    print_side(out, comparison, comparison->baseline, "baseline");
    print_side(out, comparison, comparison->current, "current");
    print_constants(out, comparison->settings->constants);
    print_race(out, comparison->race);
    fputs("\"cases\":[", out);
    for (size_t i = 0; i < comparison->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        print_case(out, comparison, &comparison->results[i]);
    }
    fputs("\n]}\n", out);
}
