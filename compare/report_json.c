#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "json.h"
#include "race_report.h"
#include "report_parts.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    const struct json_member members[] = {
        {"cases", (double)c->count},
        {"slower", (double)count_verdicts(c, VERDICT_SLOWER)},
        {"faster", (double)count_verdicts(c, VERDICT_FASTER)},
        {"same", (double)count_verdicts(c, VERDICT_SAME)},
        {"passed", (double)count_verdicts(c, VERDICT_PASSED)},
        {"inconclusive", (double)unsure},
        {"not_ok", (double)count_outcomes(c, OUTCOME_NOT_OK)},
        {"missing", (double)count_outcomes(c, OUTCOME_MISSING)},
        {"elsewhere", (double)count_outcomes(c, OUTCOME_ELSEWHERE)},
        {"invalid", (double)count_outcomes(c, OUTCOME_INVALID)},
        {"work_changed", (double)count_outcomes(c, OUTCOME_WORK_CHANGED)},
        {"new", (double)count_outcomes(c, OUTCOME_NEW)},
        {"never_ok", (double)count_outcomes(c, OUTCOME_NEVER_OK)},
        {"no_value", (double)count_outcomes(c, OUTCOME_NOT_APPLICABLE)},
        {"cost_ratio", mean_ratio(c)},
    };
    fputs("\"totals\":{", out);
    json_members(out, members, sizeof members / sizeof members[0]);
    fputs("},\n", out);
}

static void print_settings(FILE *out, const struct comparison *comparison)
{
    const struct settings *settings = comparison->settings;
    fputs("\"settings\":{", out);
    json_rule(out, settings);
    fprintf(out, ",\"variants\":%s,\"subset\":%s,\"ignore_device\":%s,\"keep_constant\":%s,\"host_params\":",
            json_truth(comparison->of_variants), json_truth(settings->subset), json_truth(settings->ignore_device),
            json_truth(settings->keep_constant));
    json_text_or_null(out, settings->host_params);
    fputs("},\n", out);
}

static void print_names(FILE *out, const struct intern_table *names, const bool *taken)
{
    const char *separator = "";
    putc('[', out);
    for (uint32_t id = 0; id < names->count; id++) {
        if (taken && !taken[id])
            continue;
        fputs(separator, out);
        json_string(out, intern_text(names, id));
        separator = ",";
    }
    putc(']', out);
}

/* The catalogue's devices are those of both sides. */
static void print_devices(FILE *out, const struct comparison *comparison,
                          const struct results *side)
{
    const struct intern_table *devices = &comparison->catalogue->devices;
    bool *taken = noted(calloc(devices->count + 1, sizeof taken[0]));
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
        json_string(out, side->paths[i]);
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
        const struct json_member members[] = {{"baseline_us", constant->baseline_us},
                                         {"current_us", constant->current_us},
                                         {"moved_rows", (double)constant->moved_rows}};
        fprintf(out, "%s{\"mode\":", i ? "," : "");
        json_string(out, constant->mode);
        putc(',', out);
        json_members(out, members, sizeof members / sizeof members[0]);
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
    const struct json_member members[] = {{"pairs", (double)race->pairs},
                                     {"processes", (double)race->processes},
                                     {"seconds", race->seconds},
                                     {"place_effect", expm1(race->place_effect)},
                                     {"open", (double)race->open}};
    fputs("\"race\":{\"old\":", out);
    json_string(out, race->programs[0]);
    fputs(",\"new\":", out);
    json_string(out, race->programs[1]);
    putc(',', out);
    json_members(out, members, sizeof members / sizeof members[0]);
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
    const struct json_member members[] = {
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
    json_members(out, members, sizeof members / sizeof members[0]);
}

/* The reason in words, as the text says it; null when memory ran out. */
static void print_reason_string(FILE *out, const struct comparison *comparison,
                                const struct case_result *result)
{
    char *reason = NULL;
    size_t size = 0;
    FILE *stream = noted(open_memstream(&reason, &size));
    if (stream) {
        print_reason(stream, comparison, &plain_style, result);
        end_memory(stream);
    }
    json_text_or_null(out, reason);
    free(reason);
}

static void print_case(FILE *out, const struct comparison *comparison,
                       const struct case_result *result)
{
    const struct case_key *cases = comparison->catalogue->cases;
    putc('{', out);
    json_key(out, &cases[result->case_id]);
    fputs(",\"baseline_variant\":", out);
    json_string(out, cases[result->baseline_case_id].parts[KEY_VARIANT]);
    fprintf(out, ",\"verdict\":\"%s\",\"reason\":", verdict_word(result));
    print_reason_string(out, comparison, result);
    fputs(",\"other_flush\":", out);
    json_text_or_null(out, result->other_flush);
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
