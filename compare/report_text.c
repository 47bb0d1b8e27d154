#include "precise.h"

#include "report_parts.h"

#include "label.h"

#include <math.h>
#include <stdlib.h>

static const char *colour_of(enum urgency urgency)
{
    static const char *const codes[URGENCY_LEVELS] = {
        [URGENCY_BAD] = "\033[31m", [URGENCY_UNSURE] = "\033[33m", [URGENCY_GOOD] = "\033[32m", [URGENCY_CALM] = ""};
    return codes[urgency];
}

/* What a reader has to see: what changed, got lost or cannot be right. */
static bool is_news(const struct case_result *result)
{
    bool inconclusive = result->outcome == OUTCOME_JUDGED && result->judgement.verdict == VERDICT_INCONCLUSIVE;
    bool unchanged = result->outcome == OUTCOME_JUDGED && result->judgement.verdict == VERDICT_SAME;
    return !inconclusive && !unchanged && result->outcome != OUTCOME_NEVER_OK &&
           result->outcome != OUTCOME_NOT_APPLICABLE;
}

static void print_change(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    char text[64];
    if (result->outcome != OUTCOME_JUDGED) {
        fprintf(out, "  %9s %-20s %8s", "-", "", "-");
        return;
    }
    struct ratio ratio = metric_ratio(result, comparison->settings->metric);
    snprintf(text, sizeof text, "[%+.2f, %+.2f]", 100.0 * (ratio.low - 1.0), 100.0 * (ratio.high - 1.0));
    fprintf(out, "  %+7.2f %% %-20s %6.1f %%", 100.0 * (ratio.value - 1.0), isnan(ratio.low) ? "[unknown]" : text,
            100.0 * result->smallest_change);
}

static void print_case(FILE *out, const struct comparison *comparison, const struct case_result *result, bool colour)
{
    const char *code = colour ? colour_of(urgency_of(result)) : "";
    fprintf(out, "%s%-12s%s ", code, verdict_word(result), *code ? "\033[0m" : "");
    print_value(out, 11, result->baseline_median);
    print_value(out, 12, result->current_median);
    print_change(out, comparison, result);
    fprintf(out, "  ");
    print_label(out, comparison, result, print_plain);
    fprintf(out, "\n               ");
    print_reason(out, comparison, result);
    fprintf(out, "\n");
}

static void print_table(FILE *out, const struct comparison *comparison, const struct listing *listing, bool colour)
{
    char interval[32];
    size_t count = 0;
    /* The urgencies stand in order: bad, unsure, good, calm. */
    const struct case_result **cases = list_cases(comparison, listing, URGENCY_BAD, URGENCY_CALM, &count);
    size_t shown = 0;
    size_t left = 0;
    snprintf(interval, sizeof interval, "%g %% interval", interval_level(&comparison->settings->rule));
    for (size_t i = 0; cases && i < count; i++) {
        if (!listing->all && !is_news(cases[i]))
            continue;
        if (listing->limit > 0 && shown == listing->limit) {
            left++;
            continue;
        }
        if (shown++ == 0)
            fprintf(out, "\n%-12s %11s%12s  %9s %-20s %8s  %s\n", "verdict",
                    comparison->of_variants ? "first" : "baseline", comparison->of_variants ? "variant" : "current",
                    "change", interval, "findable", "case");
        print_case(out, comparison, cases[i], colour);
    }
    if (left > 0)
        fprintf(out, "and %zu more (--limit 0 lists them)\n", left);
    free(cases);
}

/* One screen: the totals first, then what changed, then what else to know. */
void report_text(FILE *out, const struct comparison *comparison, const struct listing *listing, bool colour)
{
    print_summary(out, comparison);
    fprintf(out, "\n");
    print_overview(out, comparison, "");
    print_rule(out, comparison->settings);
    fprintf(out, "\n");
    print_table(out, comparison, listing, colour);
    fprintf(out, "\n");
    print_notes(out, comparison, "");
    if (!listing->all)
        fprintf(out, "the same and the inconclusive cases: --all\n");
}
