#include "precise.h"

#include "report_parts.h"

#include <math.h>
#include <stdlib.h>
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

static void print_table(FILE *out, const struct comparison *comparison, const struct listing *listing,
                        enum urgency from, enum urgency to)
{
    size_t count = 0;
    const struct case_result **cases = list_cases(comparison, listing, from, to, &count);
    const char *unit = comparison->settings->metric->unit;
    fprintf(out, "| verdict | case | %s (%s) | %s (%s) | change | %g %% interval | findable | why |\n",
            comparison->of_variants ? "first" : "baseline", unit, comparison->of_variants ? "variant" : "current",
            unit, interval_level(&comparison->settings->rule));
    fprintf(out, "|---|---|---:|---:|---:|---:|---:|---|\n");
    size_t shown = listing->limit > 0 && listing->limit < count ? listing->limit : count;
    for (size_t i = 0; cases && i < shown; i++)
        print_case(out, comparison, cases[i]);
    if (shown < count)
        fprintf(out, "\nand %zu more (--limit 0 lists them)\n", count - shown);
    fprintf(out, "\n");
    free(cases);
}

/* What needs no reader is folded away: a pull request shows what changed. */
void report_markdown(FILE *out, const struct comparison *comparison, const struct listing *listing)
{
    size_t calm = count_urgency(comparison, true);
    fprintf(out, "### gpubench: ");
    print_summary(out, comparison);
    fprintf(out, "\n\n");
    print_overview(out, comparison, "- ");
    fprintf(out, "\n");
    if (count_urgency(comparison, false) > 0)
        print_table(out, comparison, listing, URGENCY_BAD, URGENCY_GOOD);
    if (calm > 0) {
        fprintf(out, "<details><summary>%zu without change</summary>\n\n", calm);
        print_table(out, comparison, listing, URGENCY_CALM, URGENCY_CALM);
        fprintf(out, "</details>\n\n");
    }
    print_notes(out, comparison, "- ");
    fprintf(out, "\n");
    print_rule(out, comparison->settings);
    fprintf(out, ".\n");
}
