#include "precise.h"

#include "report_parts.h"

#include <math.h>
#include <string.h>

void print_markdown(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<')
            fputs("&lt;", out);
        else if (c == '>')
            fputs("&gt;", out);
        else if (c == '&')
            fputs("&amp;", out);
        else if (strchr("\\`*_[]|~#", c))
            fprintf(out, "\\%c", c);
        else
            putc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

static void print_change(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    if (result->outcome != OUTCOME_JUDGED) {
        fprintf(out, "| | | ");
        return;
    }
    struct ratio ratio = metric_ratio(result, comparison->settings->metric);
    fprintf(out, "| %+.2f %% ", 100.0 * (ratio.value - 1.0));
    if (isnan(ratio.low))
        fprintf(out, "| unknown ");
    else
        fprintf(out, "| %+.2f to %+.2f %% ", 100.0 * (ratio.low - 1.0), 100.0 * (ratio.high - 1.0));
    fprintf(out, "| %.1f %% ", 100.0 * result->smallest_change);
}

static void print_case(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    bool urgent = urgency_of(result) == URGENCY_BAD;
    fprintf(out, urgent ? "| **%s** | " : "| %s | ", verdict_word(result));
    print_label(out, comparison, result, print_markdown);
    fprintf(out, " | ");
    print_value(out, 0, result->baseline_median);
    fprintf(out, " | ");
    print_value(out, 0, result->current_median);
    fprintf(out, " ");
    print_change(out, comparison, result);
    fprintf(out, "| ");
    print_reason(out, comparison, result);
    fprintf(out, " |\n");
}

static size_t count_urgency(const struct comparison *comparison, bool calm)
{
    size_t count = 0;
    for (size_t i = 0; i < comparison->count; i++)
        count += (urgency_of(&comparison->results[i]) == URGENCY_CALM) == calm;
    return count;
}

static void print_table(FILE *out, const struct comparison *comparison, enum urgency from, enum urgency to)
{
    const char *unit = comparison->settings->metric->unit;
    fprintf(out, "| verdict | case | %s (%s) | %s (%s) | change | interval | findable | why |\n",
            comparison->of_variants ? "first" : "baseline", unit, comparison->of_variants ? "variant" : "current",
            unit);
    fprintf(out, "|---|---|---:|---:|---:|---:|---:|---|\n");
    for (int urgency = (int)from; urgency <= (int)to; urgency++)
        for (size_t i = 0; i < comparison->count; i++)
            if ((int)urgency_of(&comparison->results[i]) == urgency)
                print_case(out, comparison, &comparison->results[i]);
    fprintf(out, "\n");
}

/* What needs no reader is folded away: a pull request shows what changed. */
void report_markdown(FILE *out, const struct comparison *comparison)
{
    size_t calm = count_urgency(comparison, true);
    fprintf(out, "### gpubench: ");
    print_summary(out, comparison);
    fprintf(out, "\n\n");
    if (count_urgency(comparison, false) > 0)
        print_table(out, comparison, URGENCY_BAD, URGENCY_GOOD);
    if (calm > 0) {
        fprintf(out, "<details><summary>%zu without change</summary>\n\n", calm);
        print_table(out, comparison, URGENCY_CALM, URGENCY_CALM);
        fprintf(out, "</details>\n\n");
    }
    print_notes(out, comparison, "- ");
    fprintf(out, "\n");
    print_rule(out, comparison->settings);
    fprintf(out, ".\n");
}
