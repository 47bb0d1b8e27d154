#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "report_parts.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Three tables of so many bytes, and what stands around them, stay below the 64 KiB
 * that a comment on GitHub may have, however long the names are. */
enum { most_table_bytes = 18000 };

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
        else if (strchr("\\`*_[]|~#$", c))
            fprintf(out, "\\%c", c);
        else if (c == '@')
            fputs("@<!-- -->", out); /* or GitHub tells whoever has that name */
        else
            putc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

/* Whose folders a file lies in is nobody's business where the report is read. */
static void print_file_name(FILE *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    print_markdown(out, slash ? slash + 1 : path);
}

static const struct style markdown_style = {print_markdown, print_file_name};

static void print_change(FILE *out, const struct comparison *comparison,
                         const struct case_result *result)
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
    if (isnan(result->smallest_change))
        fprintf(out, "| - ");
    else
        fprintf(out, "| %.1f %% ", 100.0 * result->smallest_change);
}

static void print_case(FILE *out, const struct comparison *comparison,
                       const struct case_result *result)
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
    print_reason(out, comparison, &markdown_style, result);
    fprintf(out, " |\n");
}

static char *case_line(const struct comparison *comparison, const struct case_result *result)
{
    char *line = NULL;
    size_t size = 0;
    FILE *stream = noted(open_memstream(&line, &size));
    if (stream) {
        print_case(stream, comparison, result);
        end_memory(stream);
    }
    return line;
}

static void print_table(FILE *out, const struct comparison *comparison,
                        const struct listing *listing, const struct case_result **cases,
                        size_t count)
{
    const char *unit = comparison->settings->metric->unit;
    size_t shown = 0;
    size_t bytes = 0;
    fprintf(out,
            "| verdict | case | %s (%s) | %s (%s) | change | %g %% interval | findable | why |\n",
            comparison->of_variants ? "first" : "baseline", unit,
            comparison->of_variants ? "variant" : "current", unit,
            interval_level(&comparison->settings->rule));
    fprintf(out, "|---|---|---:|---:|---:|---:|---:|---|\n");
    for (; shown < count && (listing->limit == 0 || shown < listing->limit); shown++) {
        char *line = case_line(comparison, cases[shown]);
        bytes += line ? strlen(line) : 0;
        if (!line || (listing->limit > 0 && bytes > most_table_bytes)) {
            free(line);
            break;
        }
        fputs(line, out);
        free(line);
    }
    if (shown < count)
        fprintf(out, "\nand %zu more (--limit 0 lists them)\n", count - shown);
    fprintf(out, "\n");
}

/* The cases of one kind; folded away under the title, if there is one. */
static void print_kind(FILE *out, const struct comparison *comparison,
                       const struct listing *listing, bool (*wanted)(const struct case_result *),
                       const char *folded)
{
    size_t count = 0;
    const struct case_result **cases = list_cases(comparison, listing, wanted, &count);
    if (cases && count > 0) {
        if (folded)
            fprintf(out, "<details><summary>%zu %s</summary>\n\n", count, folded);
        print_table(out, comparison, listing, cases, count);
        if (folded)
            fprintf(out, "</details>\n\n");
    }
    free(cases);
}

/* What needs no reader is folded away: a pull request shows what changed. */
void report_markdown(FILE *out, const struct comparison *comparison, const struct listing *listing)
{
    fprintf(out, "### gpubench: ");
    print_summary(out, comparison);
    fprintf(out, "\n\n");
    print_overview(out, comparison, &markdown_style, "- ");
    fprintf(out, "\n");
    print_kind(out, comparison, listing, is_news, NULL);
    print_kind(out, comparison, listing, is_inconclusive, "inconclusive");
    print_kind(out, comparison, listing, is_unchanged, "without change");
    print_notes(out, comparison, &markdown_style, "- ");
    fprintf(out, "\n");
    print_rule(out, comparison->settings);
    fprintf(out, ".\n");
}
