#include "precise.h"

#include "report.h"

#include "json.h"
#include "label.h"
#include "report_parts.h"

static double share(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_self_csv(FILE *out, const struct self_result *result, const struct catalogue *catalogue)
{
    for (int part = 0; part < KEY_PARTS; part++)
        fprintf(out, "%s,", key_column_names[part]);
    fprintf(out, "runs,splits,alarms\n");
    for (size_t i = 0; i < result->case_count; i++) {
        const struct self_case *one = &result->cases[i];
        for (int part = 0; part < KEY_PARTS; part++) {
            print_csv_name(out, catalogue->cases[one->case_id].parts[part]);
            putc(',', out);
        }
        fprintf(out, "%zu,%zu,%zu\n", one->runs, one->splits, one->alarms);
    }
}

static void print_self_json(FILE *out, const struct self_result *result,
                            const struct settings *settings, const struct catalogue *catalogue)
{
    const struct json_member members[] = {{"runs", (double)result->runs},
                                          {"cases_left_out", (double)result->unusable},
                                          {"splits", (double)result->splits},
                                          {"alarms", (double)result->alarms},
                                          {"campaigns", (double)result->campaigns},
                                          {"campaign_alarms", (double)result->campaign_alarms}};
    fprintf(out, "{\"format\":1,\n\"status\":%d,\n\"settings\":{", self_status(result));
    json_rule(out, settings);
    fprintf(out, "},\n\"every_split\":%s,", json_truth(result->every_split));
    json_members(out, members, sizeof members / sizeof members[0]);
    fputs(",\n\"cases\":[", out);
    for (size_t i = 0; i < result->case_count; i++) {
        const struct self_case *one = &result->cases[i];
        const struct json_member counts[] = {{"runs", (double)one->runs},
                                             {"splits", (double)one->splits},
                                             {"alarms", (double)one->alarms}};
        fputs(i ? ",\n{" : "\n{", out);
        json_key(out, &catalogue->cases[one->case_id]);
        putc(',', out);
        json_members(out, counts, sizeof counts / sizeof counts[0]);
        putc('}', out);
    }
    fputs("\n]}\n", out);
}

/* Of all splits together, as a family of many cases has more chances to be wrong. */
static void print_self_verdicts(FILE *out, const struct self_result *result)
{
    size_t verdicts = 0, alarms = 0;
    for (size_t i = 0; i < result->case_count; i++) {
        verdicts += result->cases[i].splits;
        alarms += result->cases[i].alarms;
    }
    fprintf(out, "verdicts on single cases in them: %zu; false alarms: %zu (%.3f %%)\n", verdicts, alarms,
            share(alarms, verdicts));
}

static void print_self_totals(FILE *out, const struct self_result *result)
{
    fprintf(out, "%zu cases, %zu process runs", result->case_count, result->runs);
    if (result->unusable > 0)
        fprintf(out, ", %zu cases left out (not ok, invalid, or fewer than four runs)", result->unusable);
    fprintf(out, "\n%s: %zu; with a false alarm: %zu (%.2f %%)\n",
            result->every_split ? "balanced splits, every one" : "balanced splits, drawn at random", result->splits,
            result->alarms, share(result->alarms, result->splits));
    print_self_verdicts(out, result);
    if (result->campaigns > 0)
        fprintf(out, "campaigns, each against the others: %zu; with a false alarm: %zu (%.2f %%)\n",
                result->campaigns, result->campaign_alarms, share(result->campaign_alarms, result->campaigns));
}

static void print_self_cases(FILE *out, const struct self_result *result, const struct catalogue *catalogue,
                             bool markdown)
{
    for (size_t i = 0; i < result->case_count; i++) {
        const struct self_case *one = &result->cases[i];
        if (one->alarms == 0)
            continue;
        fprintf(out, markdown ? "- %.2f %% of splits: " : "%6.2f %%  ", share(one->alarms, one->splits));
        print_case_label(out, &catalogue->cases[one->case_id], NULL, markdown ? print_markdown : print_plain);
        fprintf(out, "\n");
    }
}

void report_self(FILE *out, const struct self_result *result, const struct settings *settings,
                 const struct catalogue *catalogue, enum format format)
{
    if (format == FORMAT_CSV) {
        print_self_csv(out, result, catalogue);
        return;
    }
    if (format == FORMAT_JSON) {
        print_self_json(out, result, settings, catalogue);
        return;
    }
    fprintf(out, format == FORMAT_MARKDOWN ? "### gpubench: A/A\n\n" : "A/A: ");
    print_rule(out, settings);
    fprintf(out, "\n\n");
    print_self_cases(out, result, catalogue, format == FORMAT_MARKDOWN);
    print_self_totals(out, result);
}
