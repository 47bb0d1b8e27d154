#include "precise.h"

#include "report_parts.h"

#include "label.h"

#include <math.h>

static const char *colour_of(enum urgency urgency)
{
    static const char *const codes[URGENCY_LEVELS] = {
        [URGENCY_BAD] = "\033[31m", [URGENCY_UNSURE] = "\033[33m", [URGENCY_GOOD] = "\033[32m", [URGENCY_CALM] = ""};
    return codes[urgency];
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

void report_text(FILE *out, const struct comparison *comparison, bool colour)
{
    print_rule(out, comparison->settings);
    fprintf(out, "\n\n%-12s %11s%12s  %9s %-20s %8s  %s\n", "verdict", comparison->of_variants ? "first" : "baseline",
            comparison->of_variants ? "variant" : "current", "change", "interval", "findable", "case");
    for (int urgency = URGENCY_LEVELS - 1; urgency >= 0; urgency--)
        for (size_t i = 0; i < comparison->count; i++)
            if ((int)urgency_of(&comparison->results[i]) == urgency)
                print_case(out, comparison, &comparison->results[i], colour);
    fprintf(out, "\n");
    print_notes(out, comparison, "");
    print_summary(out, comparison);
    fprintf(out, "\n");
}
