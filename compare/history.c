#include "precise.h"

#include "history.h"

#include <math.h>
#include <stdlib.h>

/* What the cases are gathered with. */
struct gathering {
    struct history *history;
    const struct settings *settings;
    const struct row **rows; /* the usable ones of the case at hand */
    double *costs;           /* of a campaign */
};

static bool is_usable(struct gathering *gathering, const struct row *row)
{
    const struct metric *metric = gathering->settings->metric;
    struct history *history = gathering->history;
    if (row->status != STATUS_OK || (!metric->is_time && isnan(row->value)))
        return false;
    if (!(row->value > 0.0) || isinf(row->value)) {
        history->invalid = history->invalid ? history->invalid : row;
        return false;
    }
    history->throttled += row->throttled;
    return !row->throttled && value_without_constant(metric, row) > 0.0;
}

/* By campaign, in the order of the file; rows of one case point into one array. */
static int by_campaign(const void *left, const void *right)
{
    const struct row *a = *(const struct row *const *)left;
    const struct row *b = *(const struct row *const *)right;
    if (a->campaign != b->campaign)
        return a->campaign < b->campaign ? -1 : 1;
    return (a > b) - (a < b);
}

/* A point and its level move together. */
struct dated_point {
    struct history_point point;
    struct trend_point level;
};

static int by_time(const void *left, const void *right)
{
    const struct dated_point *a = left;
    const struct dated_point *b = right;
    if (a->point.time_s != b->point.time_s)
        return a->point.time_s < b->point.time_s ? -1 : 1;
    return (a->point.campaign > b->point.campaign) - (a->point.campaign < b->point.campaign);
}

static struct dated_point make_point(struct gathering *gathering, const struct row *const *rows,
                                     size_t count)
{
    const struct metric *metric = gathering->settings->metric;
    struct dated_point made = {.point = {.campaign = rows[0]->campaign,
                                         .revision = rows[0]->revision,
                                         .time_s = rows[0]->time_s}};
    for (size_t i = 0; i < count; i++) {
        gathering->costs[i] = log_cost(metric, value_without_constant(metric, rows[i]));
        if (rows[i]->time_s < made.point.time_s) {
            made.point.time_s = rows[i]->time_s;
            made.point.revision = rows[i]->revision;
        }
    }
    made.level.runs = count;
    made.level.squares = squares_about_mean(gathering->costs, count);
    made.level.level = median_by_sorting(gathering->costs, count);
    made.point.fastest = gathering->costs[0];
    made.point.slowest = gathering->costs[count - 1];
    return made;
}

/* Campaigns without a time leave those of their case in the order of the files, in
 * which campaigns are numbered. */
static void order_points(struct history *history, struct dated_point *points, size_t count)
{
    bool undated = false;
    for (size_t i = 0; i < count; i++)
        undated = undated || points[i].point.time_s == 0;
    if (!undated)
        qsort(points, count, sizeof points[0], by_time);
    history->undated += undated && count > 1;
}

static void keep_case(struct history *history, uint32_t case_id, const struct dated_point *points,
                      size_t count)
{
    size_t first = history->point_count;
    history->single += count == 1;
    if (count < 2)
        return;
    history->few += count < least_steady_campaigns;
    for (size_t i = 0; i < count; i++) {
        history->points[first + i] = points[i].point;
        history->levels[first + i] = points[i].level;
    }
    history->point_count += count;
    history->cases[history->case_count++] = (struct history_case){
        .case_id = case_id,
        .first = first,
        .trend = {
            .points = history->levels + first, .count = count, .starts = history->starts + first,
            .lone = history->lone + first}};
}

static bool gather_case(struct gathering *gathering, uint32_t case_id, struct row_span span)
{
    struct history *history = gathering->history;
    size_t usable = 0, count = 0;
    const struct row *first_row = NULL;
    for (size_t i = 0; i < span.count; i++) {
        const struct row *row = span.rows[i];
        if (!is_usable(gathering, row))
            continue;
        first_row = first_row ? first_row : row;
        if (row->device != first_row->device && !history->device_row)
            history->device_row = row;
        gathering->rows[usable++] = row;
    }
    struct dated_point *points = malloc((usable + 1) * sizeof points[0]);
    if (!points)
        return false;
    if (usable > 0)
        qsort(gathering->rows, usable, sizeof gathering->rows[0], by_campaign);
    for (size_t first = 0, end; first < usable; first = end) {
        end = first;
        while (end < usable && gathering->rows[end]->campaign == gathering->rows[first]->campaign)
            end++;
        points[count++] = make_point(gathering, &gathering->rows[first], end - first);
    }
    order_points(history, points, count);
    keep_case(history, case_id, points, count);
    free(points);
    return true;
}

static bool reserve(struct gathering *gathering, size_t cases, size_t rows)
{
    struct history *history = gathering->history;
    history->cases = malloc((cases + 1) * sizeof history->cases[0]);
    history->points = malloc((rows + 1) * sizeof history->points[0]);
    history->levels = malloc((rows + 1) * sizeof history->levels[0]);
    history->starts = malloc((rows + 1) * sizeof history->starts[0]);
    history->lone = malloc((rows + 1) * sizeof history->lone[0]);
    gathering->rows = malloc((rows + 1) * sizeof gathering->rows[0]);
    gathering->costs = malloc((rows + 1) * sizeof gathering->costs[0]);
    return history->cases && history->points && history->levels && history->starts &&
           history->lone && gathering->rows && gathering->costs;
}

/* The rule wants the trends next to each other. */
static bool judge(struct history *history, const struct rule *rule)
{
    struct trend *trends = malloc((history->case_count + 1) * sizeof trends[0]);
    for (size_t i = 0; trends && i < history->case_count; i++)
        trends[i] = history->cases[i].trend;
    bool complete = trends && find_changes(trends, history->case_count, rule);
    for (size_t i = 0; complete && i < history->case_count; i++)
        history->cases[i].trend = trends[i];
    free(trends);
    return complete;
}

bool find_history(struct history *out, const struct settings *settings,
                  const struct catalogue *catalogue, const struct results *results)
{
    *out = (struct history){0};
    struct gathering gathering = {.history = out, .settings = settings};
    struct rows_by_case index = {0};
    bool complete = reserve(&gathering, catalogue->keys.count, results->count) &&
                    rows_by_case_build(&index, results, catalogue->keys.count);
    for (uint32_t id = 0; complete && id < catalogue->keys.count; id++)
        if (case_is_wanted(settings, &catalogue->cases[id]))
            complete = gather_case(&gathering, id, rows_of_case(&index, id));
    rows_by_case_free(&index);
    free(gathering.rows);
    free(gathering.costs);
    return complete && judge(out, &settings->rule);
}

double change_of(const struct trend *trend, size_t level)
{
    return exp(level_of(trend, level) - level_of(trend, level - 1));
}

void history_free(struct history *history)
{
    free(history->cases);
    free(history->points);
    free(history->levels);
    free(history->starts);
    free(history->lone);
    *history = (struct history){0};
}
