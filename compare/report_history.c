#include "precise.h"

#include "report_history.h"

#include "json.h"
#include "label.h"
#include "report_parts.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double percent = 100.0;

/* A level that so many campaigns have will hardly turn out to be one bad sitting. */
enum { sure_campaigns = 3 };

/* What a report is written from. */
struct telling {
    FILE *out;
    const struct history *history;
    const struct settings *settings;
    const struct catalogue *catalogue;
    const struct results *results;
};

/* The metric whose cost has this logarithm. */
static double value_of(const struct telling *telling, double cost)
{
    return exp(telling->settings->metric->bigger_is_better ? -cost : cost);
}

/* False where the time is not known. */
static bool format_time(int64_t time_s, char text[32])
{
    time_t seconds = (time_t)time_s;
    const struct tm *utc = time_s == 0 ? NULL : gmtime(&seconds);
    return utc && strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", utc) > 0;
}

static void print_time(FILE *out, int64_t time_s)
{
    char text[32];
    if (format_time(time_s, text))
        fputs(text, out);
}

static const char *revision_of(const struct telling *telling, const struct history_point *point)
{
    if (point->revision == INTERN_NONE)
        return "";
    return intern_text(&telling->results->revisions, point->revision);
}

static const char *campaign_of(const struct telling *telling, const struct history_point *point)
{
    return intern_text(&telling->catalogue->campaigns, point->campaign);
}

/* "2026-11-28T04:39:32Z, revision b3db9d7, campaign 'x'", without what is not known. */
static void print_sitting(const struct telling *telling, const struct history_point *point)
{
    if (point->time_s != 0) {
        print_time(telling->out, point->time_s);
        fputs(", ", telling->out);
    }
    if (*revision_of(telling, point)) {
        fputs("revision ", telling->out);
        print_plain(telling->out, revision_of(telling, point));
        fputs(", ", telling->out);
    }
    fputs("campaign '", telling->out);
    print_plain(telling->out, campaign_of(telling, point));
    putc('\'', telling->out);
}

/* A bar for each campaign; the lowest and the highest are at least twice the margin
 * apart, so that a steady case looks steady. */
static void print_bars(const struct telling *telling, const struct history_case *one)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < one->trend.count; i++) {
        low = fmin(low, one->trend.points[i].level);
        high = fmax(high, one->trend.points[i].level);
    }
    double range = fmax(high - low, fmax(2.0 * log1p(telling->settings->rule.margin), 1e-6));
    double bottom = (low + high - range) / 2.0;
    for (size_t i = 0; i < one->trend.count; i++) {
        double height = (one->trend.points[i].level - bottom) / range;
        fputs(bars[(int)fmin(7.0, 8.0 * height)], telling->out);
    }
}

static void print_range(const struct telling *telling, const struct history_case *one)
{
    const struct history_point *points = telling->history->points + one->first;
    double fastest = INFINITY, slowest = -INFINITY;
    for (size_t i = 0; i < one->trend.count; i++) {
        fastest = fmin(fastest, points[i].fastest);
        slowest = fmax(slowest, points[i].slowest);
    }
    fprintf(telling->out, " %zu campaigns, runs from ", one->trend.count);
    print_value(telling->out, 0, value_of(telling, fastest));
    fputs(" to ", telling->out);
    print_value(telling->out, 0, value_of(telling, slowest));
    fprintf(telling->out, " %s\n", telling->settings->metric->unit);
}

static void print_change(const struct telling *telling, const struct history_case *one,
                         size_t level)
{
    const struct history_point *points = telling->history->points + one->first;
    const struct history_point *at = &points[one->trend.starts[level]];
    fprintf(telling->out, "    cost %+.2f %%, ", percent * (change_of(&one->trend, level) - 1.0));
    print_value(telling->out, 0, value_of(telling, level_of(&one->trend, level - 1)));
    fputs(" -> ", telling->out);
    print_value(telling->out, 0, value_of(telling, level_of(&one->trend, level)));
    fprintf(telling->out, " %s\n      at    ", telling->settings->metric->unit);
    print_sitting(telling, at);
    fputs("\n      after ", telling->out);
    const struct history_point *before = at - 1;
    while (one->trend.lone[before - points])
        before--;
    print_sitting(telling, before);
    size_t held = points_of(&one->trend, level);
    if (level + 1 == one->trend.level_count && held < sure_campaigns)
        fprintf(telling->out, "\n      not yet sure: %zu campaign%s since", held, held == 1 ? "" : "s");
    putc('\n', telling->out);
}

static void print_lone(const struct telling *telling, const struct history_case *one, size_t i)
{
    fputs("    alone: ", telling->out);
    print_value(telling->out, 0, value_of(telling, one->trend.points[i].level));
    fprintf(telling->out, " %s in ", telling->settings->metric->unit);
    print_sitting(telling, &telling->history->points[one->first + i]);
    fputs(", unlike those before and after\n", telling->out);
}

static bool has_news(const struct history_case *one)
{
    for (size_t i = 0; i < one->trend.count; i++)
        if (one->trend.lone[i])
            return true;
    return one->trend.level_count > 1;
}

static void print_case(const struct telling *telling, const struct history_case *one)
{
    const struct trend_point *points = one->trend.points;
    double total = points[one->trend.count - 1].level - points[0].level;
    print_case_label(telling->out, &telling->catalogue->cases[one->case_id], NULL, print_plain);
    fprintf(telling->out, "\n    ");
    print_bars(telling, one);
    fprintf(telling->out, "  cost %+.2f %% from first to last,", percent * expm1(total));
    print_range(telling, one);
    for (size_t level = 1; level < one->trend.level_count; level++)
        print_change(telling, one, level);
    for (size_t i = 0; i < one->trend.count; i++)
        if (one->trend.lone[i])
            print_lone(telling, one, i);
}

/* The size of the case's largest change. */
static double largest_change(const struct history_case *one)
{
    double largest = 0.0;
    for (size_t level = 1; level < one->trend.level_count; level++)
        largest = fmax(largest, fabs(log(change_of(&one->trend, level))));
    return largest;
}

static const struct catalogue *sorting; /* qsort takes no context */

static int by_change(const void *left, const void *right)
{
    const struct history_case *a = *(const struct history_case *const *)left;
    const struct history_case *b = *(const struct history_case *const *)right;
    double a_size = largest_change(a);
    double b_size = largest_change(b);
    if (a_size != b_size)
        return a_size > b_size ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_name(const void *left, const void *right)
{
    const struct history_case *a = *(const struct history_case *const *)left;
    const struct history_case *b = *(const struct history_case *const *)right;
    int order = 0;
    for (int part = 0; part < KEY_PARTS && order == 0; part++)
        order =
            strcmp(sorting->cases[a->case_id].parts[part], sorting->cases[b->case_id].parts[part]);
    return order;
}

static void print_cases(const struct telling *telling, const struct listing *listing)
{
    const struct history *history = telling->history;
    const struct history_case **listed = noted(malloc((history->case_count + 1) * sizeof listed[0]));
    size_t count = 0;
    for (size_t i = 0; listed && i < history->case_count; i++)
        if (listing->all || has_news(&history->cases[i]))
            listed[count++] = &history->cases[i];
    sorting = telling->catalogue;
    if (count > 0 && listing->sort != SORT_FILE)
        qsort(listed, count, sizeof listed[0], listing->sort == SORT_NAME ? by_name : by_change);
    size_t limit = listing->limit && listing->limit < count ? listing->limit : count;
    for (size_t i = 0; i < limit; i++)
        print_case(telling, listed[i]);
    if (limit < count)
        fprintf(telling->out, "and %zu more (--limit 0 lists all)\n", count - limit);
    free(listed);
}

static void print_note(FILE *out, const char *what, size_t count)
{
    if (count > 0)
        fprintf(out, "note: %s: %zu\n", what, count);
}

static void print_text(const struct telling *telling, const struct listing *listing)
{
    const struct history *history = telling->history;
    const struct rule *rule = &telling->settings->rule;
    size_t changed = 0, changes = 0;
    for (size_t i = 0; i < history->case_count; i++) {
        changed += history->cases[i].trend.level_count > 1;
        changes += history->cases[i].trend.level_count - 1;
    }
    fprintf(telling->out, "history: %s; a cost above 0 is worse; margin %g %%; false alarms %g %% of histories\n",
            telling->settings->metric->column, percent * rule->margin,
            percent * rule->false_alarms);
    fprintf(telling->out,
            "cases of two campaigns or more: %zu; changed: %zu; changes in all: %zu\n",
            history->case_count, changed, changes);
    print_cases(telling, listing);
    print_note(telling->out, "cases with but one campaign", history->single);
    print_note(
        telling->out,
        "cases with fewer than five campaigns, too few to tell what a sitting or a card does "
        "to a time from what a change does",
        history->few);
    print_note(telling->out, "cases in the order of the files, for lack of a timestamp",
               history->undated);
    print_note(telling->out, "rows left out, throttled by more than the power cap",
               history->throttled);
}

static void print_csv_point(const struct telling *telling, const struct history_case *one, size_t i,
                            size_t level)
{
    FILE *out = telling->out;
    const struct history_point *point = &telling->history->points[one->first + i];
    bool starts = level > 0 && one->trend.starts[level] == i;
    const double numbers[] = {value_of(telling, one->trend.points[i].level),
                              value_of(telling, point->fastest), value_of(telling, point->slowest),
                              value_of(telling, level_of(&one->trend, level)),
                              starts ? change_of(&one->trend, level) : (double)NAN};
    for (int part = 0; part < KEY_PARTS; part++) {
        print_csv_name(out, telling->catalogue->cases[one->case_id].parts[part]);
        putc(',', out);
    }
    print_csv_name(out, campaign_of(telling, point));
    putc(',', out);
    print_time(out, point->time_s);
    putc(',', out);
    print_csv_name(out, revision_of(telling, point));
    fprintf(out, ",%s,%zu", telling->settings->metric->column, one->trend.points[i].runs);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        fprintf(out, isnan(numbers[n]) ? "," : ",%.12g", numbers[n]);
    fprintf(out, ",%d\n", one->trend.lone[i]);
}

/* One line for each case and campaign. */
static void print_csv(const struct telling *telling)
{
    for (int part = 0; part < KEY_PARTS; part++)
        fprintf(telling->out, "%s,", key_column_names[part]);
    fprintf(telling->out,
            "campaign,timestamp,git,metric,runs,median,best,worst,level,cost_change,lone\n");
    for (size_t c = 0; c < telling->history->case_count; c++) {
        const struct history_case *one = &telling->history->cases[c];
        size_t level = 0;
        for (size_t i = 0; i < one->trend.count; i++) {
            if (level + 1 < one->trend.level_count && one->trend.starts[level + 1] == i)
                level++;
            print_csv_point(telling, one, i, level);
        }
    }
}

/* The time as text, or null where it is not known. */
static void print_json_time(FILE *out, int64_t time_s)
{
    char text[32];
    json_text_or_null(out, format_time(time_s, text) ? text : NULL);
}

static void print_json_point(const struct telling *telling, const struct history_case *one,
                             size_t i)
{
    FILE *out = telling->out;
    const struct history_point *point = &telling->history->points[one->first + i];
    const struct json_member members[] = {{"runs", (double)one->trend.points[i].runs},
                                          {"median", value_of(telling, one->trend.points[i].level)},
                                          {"best", value_of(telling, point->fastest)},
                                          {"worst", value_of(telling, point->slowest)}};
    fputs("{\"campaign\":", out);
    json_string(out, campaign_of(telling, point));
    fputs(",\"timestamp\":", out);
    print_json_time(out, point->time_s);
    fputs(",\"git\":", out);
    json_text_or_null(out, *revision_of(telling, point) ? revision_of(telling, point) : NULL);
    putc(',', out);
    json_members(out, members, sizeof members / sizeof members[0]);
    putc('}', out);
}

/* Of a change: the place of its campaign in the list, from 0, and the levels. */
static void print_json_change(const struct telling *telling, const struct history_case *one,
                              size_t level)
{
    const struct json_member members[] = {
        {"at", (double)one->trend.starts[level]},
        {"cost_ratio", change_of(&one->trend, level)},
        {"before", value_of(telling, level_of(&one->trend, level - 1))},
        {"after", value_of(telling, level_of(&one->trend, level))}};
    putc('{', telling->out);
    json_members(telling->out, members, sizeof members / sizeof members[0]);
    putc('}', telling->out);
}

static void print_json_case(const struct telling *telling, const struct history_case *one)
{
    FILE *out = telling->out;
    putc('{', out);
    json_key(out, &telling->catalogue->cases[one->case_id]);
    fputs(",\"changes\":[", out);
    for (size_t level = 1; level < one->trend.level_count; level++) {
        fputs(level > 1 ? "," : "", out);
        print_json_change(telling, one, level);
    }
    fputs("],\"campaigns\":[", out);
    for (size_t i = 0; i < one->trend.count; i++) {
        fputs(i ? ",\n" : "\n", out);
        print_json_point(telling, one, i);
    }
    fputs("\n]}", out);
}

static void print_json(const struct telling *telling)
{
    FILE *out = telling->out;
    const struct history *history = telling->history;
    const struct json_member left_out[] = {{"cases_of_one_campaign", (double)history->single},
                                           {"cases_of_few_campaigns", (double)history->few},
                                           {"cases_undated", (double)history->undated},
                                           {"rows_throttled", (double)history->throttled}};
    fputs("{\"format\":1,\n\"status\":0,\n\"settings\":{", out);
    json_rule(out, telling->settings);
    fputs("},\n", out);
    json_members(out, left_out, sizeof left_out / sizeof left_out[0]);
    fputs(",\n\"cases\":[", out);
    for (size_t i = 0; i < history->case_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        print_json_case(telling, &history->cases[i]);
    }
    fputs("\n]}\n", out);
}

void report_history(FILE *out, const struct history *history, const struct settings *settings,
                    const struct catalogue *catalogue, const struct results *results,
                    enum format format, const struct listing *listing)
{
    struct telling telling = {out, history, settings, catalogue, results};
    if (format == FORMAT_CSV)
        print_csv(&telling);
    else if (format == FORMAT_JSON)
        print_json(&telling);
    else
        print_text(&telling, listing);
}
