#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "report_parts.h"

#include "label.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>

/* The head is what stands above the first case, and the line that counts the rest. */
enum { lines_of_screen = 50, lines_of_head = 8, lines_of_case = 2, fewest_cases = 3 };

static const char *colour_of(enum urgency urgency)
{
    static const char *const codes[URGENCY_LEVELS] = {[URGENCY_BAD] = "\033[31m",
                                                      [URGENCY_UNSURE] = "\033[33m",
                                                      [URGENCY_GOOD] = "\033[32m",
                                                      [URGENCY_CALM] = ""};
    return codes[urgency];
}

static void print_change(FILE *out, const struct comparison *comparison,
                         const struct case_result *result)
{
    char text[64];
    if (result->outcome != OUTCOME_JUDGED) {
        fprintf(out, "  %9s %-20s %8s", "-", "", "-");
        return;
    }
    struct ratio ratio = metric_ratio(result, comparison->settings->metric);
    snprintf(text, sizeof text, "[%+.2f, %+.2f]", 100.0 * (ratio.low - 1.0),
             100.0 * (ratio.high - 1.0));
    fprintf(out, "  %+7.2f %% %-20s", 100.0 * (ratio.value - 1.0),
            isnan(ratio.low) ? "[unknown]" : text);
    if (isnan(result->smallest_change))
        fprintf(out, " %8s", "-");
    else
        fprintf(out, " %6.1f %%", 100.0 * result->smallest_change);
}

static void print_case(FILE *out, const struct comparison *comparison,
                       const struct case_result *result, bool colour)
{
    const char *code = colour ? colour_of(urgency_of(result)) : "";
    fprintf(out, "%s%-12s%s ", code, verdict_word(result), *code ? "\033[0m" : "");
    print_value(out, 11, result->baseline_median);
    print_value(out, 12, result->current_median);
    print_change(out, comparison, result);
    fprintf(out, "  ");
    print_label(out, comparison, result, print_plain);
    fprintf(out, "\n               ");
    print_reason(out, comparison, &plain_style, result);
    fprintf(out, "\n");
}

/* Returns how many cases are left. */
static size_t print_table(FILE *out, const struct comparison *comparison,
                          const struct listing *listing, size_t limit, bool colour)
{
    char interval[32];
    size_t count = 0;
    const struct case_result **cases =
        list_cases(comparison, listing, listing->all ? is_any : is_news, &count);
    size_t shown = limit > 0 && limit < count ? limit : count;
    snprintf(interval, sizeof interval, "%g %% interval",
             interval_level(&comparison->settings->rule));
    if (cases && shown > 0)
        fprintf(out, "\n%-12s %11s%12s  %9s %-20s %8s  %s\n", "verdict",
                comparison->of_variants ? "first" : "baseline",
                comparison->of_variants ? "variant" : "current", "change", interval, "findable",
                "case");
    for (size_t i = 0; cases && i < shown; i++)
        print_case(out, comparison, cases[i], colour);
    free(cases);
    return count - shown;
}

/* What follows the table. */
static void print_rest(FILE *out, const struct comparison *comparison,
                       const struct listing *listing)
{
    fprintf(out, "\n");
    print_notes(out, comparison, &plain_style, "");
    print_next(out, comparison);
    if (count_verdicts(comparison, VERDICT_SLOWER) + count_verdicts(comparison, VERDICT_FASTER) > 0)
        fprintf(out, "findable: the smallest change that such data shows 9 times in 10\n");
    if (!listing->all)
        fprintf(out, "the same and the inconclusive cases: --all\n");
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; text && *text; text++)
        lines += *text == '\n';
    return lines;
}

/* So many cases that all of the report fits a screen. */
static size_t limit_of(const struct listing *listing, const char *rest)
{
    size_t taken = lines_of_head + count_lines(rest);
    size_t room = taken < lines_of_screen ? (lines_of_screen - taken) / lines_of_case : 0;
    if (!listing->screen || listing->limit == 0 || room >= listing->limit)
        return listing->limit;
    return room < fewest_cases ? fewest_cases : room;
}

/* One screen: the totals first, then what changed, then what else to know. */
void report_text(FILE *out, const struct comparison *comparison, const struct listing *listing,
                 bool colour)
{
    char *rest = NULL;
    size_t size = 0;
    FILE *stream = noted(open_memstream(&rest, &size));
    if (stream) {
        print_rest(stream, comparison, listing);
        end_memory(stream);
    }
    print_summary(out, comparison);
    fprintf(out, "\n");
    print_overview(out, comparison, &plain_style, "");
    print_rule(out, comparison->settings);
    fprintf(out, "\n");
    size_t left = print_table(out, comparison, listing, limit_of(listing, rest), colour);
    if (left > 0)
        fprintf(out, "and %zu more (--limit 0 lists them)\n", left);
    fputs(rest ? rest : "\n(not enough memory for the notes)\n", out);
    free(rest);
}
