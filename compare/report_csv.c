#include "precise.h"

#include "report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void print_csv_marked(FILE *out, const char *mark, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fprintf(out, "%s%s", mark, text);
        return;
    }
    fprintf(out, "\"%s", mark);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', out);
        putc(*text, out);
    }
    putc('"', out);
}

void print_csv_field(FILE *out, const char *text)
{
    print_csv_marked(out, "", text);
}

void print_csv_name(FILE *out, const char *text)
{
    const char *behind = text + strspn(text, "'");
    print_csv_marked(out, *behind && strchr("=+-@\t\r", *behind) ? "'" : "", text);
}

void print_csv_number(FILE *out, double value)
{
    char text[40];
    if (isnan(value))
        return;
    snprintf(text, sizeof text, "%.15g", value);
    double back = strtod(text, NULL);
    if (back < value || back > value)
        snprintf(text, sizeof text, "%.17g", value);
    fputs(text, out);
}

static void print_numbers(FILE *out, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        putc(',', out);
        print_csv_number(out, values[i]);
    }
}

static void print_judged(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    struct ratio ratio = metric_ratio(result, comparison->settings->metric);
    const struct evidence *evidence = &result->evidence;
    const double values[] = {result->baseline_median,
                             result->current_median,
                             ratio.value,
                             ratio.low,
                             ratio.high,
                             result->smallest_change,
                             (double)evidence->baseline_runs,
                             (double)evidence->baseline_outside,
                             (double)evidence->baseline_campaigns,
                             (double)evidence->current_runs,
                             (double)evidence->current_campaigns,
                             result->judgement.run_spread,
                             evidence->campaigns_counted ? result->judgement.campaign_spread : (double)NAN,
                             result->judgement.degrees};
    print_numbers(out, values, sizeof values / sizeof values[0]);
}

static const char number_columns[] = ",baseline,current,ratio,ratio_low,ratio_high,smallest_change,baseline_runs,"
                                     "baseline_left_out,baseline_campaigns,current_runs,current_campaigns,"
                                     "run_spread,campaign_spread,degrees";

static void print_empty_numbers(FILE *out)
{
    for (const char *c = number_columns; *c; c++)
        if (*c == ',')
            putc(',', out);
}

static void print_case(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    const struct case_key *key = &comparison->catalogue->cases[result->case_id];
    for (int part = 0; part < KEY_PARTS; part++) {
        print_csv_name(out, key->parts[part]);
        putc(',', out);
    }
    print_csv_name(out, comparison->catalogue->cases[result->baseline_case_id].parts[KEY_VARIANT]);
    fprintf(out, ",%s,%s", comparison->settings->metric->column, verdict_word(result));
    if (result->outcome == OUTCOME_JUDGED)
        print_judged(out, comparison, result);
    else
        print_empty_numbers(out);
    putc('\n', out);
}

/* In the order of the files, for programs: no reason in words. */
void report_csv(FILE *out, const struct comparison *comparison)
{
    for (int part = 0; part < KEY_PARTS; part++)
        fprintf(out, "%s,", key_column_names[part]);
    fprintf(out, "against,metric,verdict%s\n", number_columns);
    for (size_t i = 0; i < comparison->count; i++)
        print_case(out, comparison, &comparison->results[i]);
}
