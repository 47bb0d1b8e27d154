#include "precise.h"

#include "cards.h"

#include <math.h>
#include <stdlib.h>

/* One ok run, on its way to the median of its card and case. */
struct card_run {
    uint32_t device, case_id, card, pci, node;
    double log_cost;
};

struct card_runs {
    struct card_run *items;
    size_t count;
};

static bool take_row(struct cards_result *out, const struct settings *settings,
                     const struct row *row)
{
    const struct metric *metric = settings->metric;
    if (row->status != STATUS_OK || (!metric->is_time && isnan(row->value)))
        return false;
    if (!(row->value > 0.0) || isinf(row->value)) {
        out->invalid = out->invalid ? out->invalid : row;
        return false;
    }
    out->nameless += row->card == INTERN_NONE;
    out->throttled += row->throttled;
    return row->card != INTERN_NONE && !row->throttled && value_without_constant(metric, row) > 0.0;
}

static bool gather_runs(struct cards_result *out, struct card_runs *runs,
                        const struct settings *settings, const struct catalogue *catalogue,
                        const struct results *results)
{
    bool *wanted = malloc(catalogue->keys.count + 1);
    runs->items = malloc((results->count + 1) * sizeof runs->items[0]);
    for (uint32_t id = 0; wanted && id < catalogue->keys.count; id++)
        wanted[id] = case_is_wanted(settings, &catalogue->cases[id]);
    for (size_t i = 0; wanted && runs->items && i < results->count; i++) {
        const struct row *row = &results->rows[i];
        if (wanted[row->case_id] && take_row(out, settings, row))
            runs->items[runs->count++] = (struct card_run){
                row->device, row->case_id, row->card, row->pci, row->node,
                log_cost(settings->metric, value_without_constant(settings->metric, row))};
    }
    free(wanted);
    return wanted && runs->items;
}

static int order_of(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* By model, case and card, the runs of each from fast to slow. */
static int by_cell(const void *left, const void *right)
{
    const struct card_run *a = left;
    const struct card_run *b = right;
    if (a->device != b->device)
        return order_of(a->device, b->device);
    if (a->case_id != b->case_id)
        return order_of(a->case_id, b->case_id);
    if (a->card != b->card)
        return order_of(a->card, b->card);
    return (a->log_cost > b->log_cost) - (a->log_cost < b->log_cost);
}

static bool same_cell(const struct card_run *a, const struct card_run *b)
{
    return a->device == b->device && a->case_id == b->case_id && a->card == b->card;
}

static bool reserve_model(struct model *model, size_t runs, size_t cards)
{
    model->values = malloc((runs + 1) * sizeof model->values[0]);
    model->cards = malloc((cards + 1) * sizeof model->cards[0]);
    model->uuids = malloc((cards + 1) * sizeof model->uuids[0]);
    model->pcis = malloc((cards + 1) * sizeof model->pcis[0]);
    model->nodes = malloc((cards + 1) * sizeof model->nodes[0]);
    return model->values && model->cards && model->uuids && model->pcis && model->nodes;
}

/* The number of a card within its model; number has a place for each uuid, or
 * INTERN_NONE. The first place in a host that a card was seen at is its own. */
static uint32_t number_card(struct model *model, uint32_t *number, const struct card_run *run)
{
    if (number[run->card] == INTERN_NONE) {
        number[run->card] = (uint32_t)model->card_count++;
        model->uuids[number[run->card]] = run->card;
        model->pcis[number[run->card]] = run->pci;
        model->nodes[number[run->card]] = run->node;
    }
    return number[run->card];
}

static void fill_model(struct model *model, uint32_t *number, const struct card_run *runs,
                       size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && same_cell(&runs[end], &runs[first]); end++)
            continue;
        double lower = runs[first + (end - first - 1) / 2].log_cost;
        double upper = runs[first + (end - first) / 2].log_cost;
        model->values[model->value_count++] =
            (struct fleet_value){.card = number_card(model, number, &runs[first]),
                                 .case_id = runs[first].case_id,
                                 .runs = end - first,
                                 .log_cost = (lower + upper) / 2.0};
    }
}

static bool judge_model(struct model *model, const struct settings *settings,
                        const struct card_run *runs, size_t count, size_t uuids)
{
    uint32_t *number = malloc((uuids + 1) * sizeof number[0]);
    bool complete = reserve_model(model, count, uuids) && number;
    for (size_t i = 0; complete && i < uuids; i++)
        number[i] = INTERN_NONE;
    model->device = runs[0].device;
    if (complete)
        fill_model(model, number, runs, count);
    free(number);
    return complete && judge_fleet(model->values, model->value_count, &settings->rule, model->cards,
                                   model->card_count, &model->summary);
}

static bool judge_models(struct cards_result *out, const struct settings *settings,
                         const struct card_runs *runs, size_t devices, size_t uuids)
{
    out->models = calloc(devices + 1, sizeof out->models[0]);
    bool complete = out->models != NULL;
    for (size_t first = 0, end; complete && first < runs->count; first = end) {
        for (end = first; end < runs->count && runs->items[end].device == runs->items[first].device;
             end++)
            continue;
        complete = judge_model(&out->models[out->model_count++], settings, &runs->items[first],
                               end - first, uuids);
    }
    return complete;
}

bool find_odd_cards(struct cards_result *out, const struct settings *settings,
                    const struct catalogue *catalogue, const struct results *results)
{
    *out = (struct cards_result){0};
    struct card_runs runs = {0};
    bool complete = gather_runs(out, &runs, settings, catalogue, results);
    if (complete && runs.count > 0)
        qsort(runs.items, runs.count, sizeof runs.items[0], by_cell);
    complete =
        complete && (out->invalid || judge_models(out, settings, &runs, catalogue->devices.count,
                                                  results->provenance[PROVENANCE_UUID].count));
    free(runs.items);
    return complete;
}

bool card_is_odd(const struct fleet_card *card)
{
    return card->off || card->scattered;
}

int cards_status(const struct cards_result *result)
{
    int status = EXIT_CANNOT_JUDGE;
    for (size_t m = 0; m < result->model_count; m++) {
        const struct model *model = &result->models[m];
        if (!isinf(model->summary.reach) && status == EXIT_CANNOT_JUDGE)
            status = EXIT_FINE;
        for (size_t i = 0; i < model->card_count; i++)
            if (card_is_odd(&model->cards[i]))
                status = EXIT_WORSE;
    }
    return status;
}

void cards_free(struct cards_result *result)
{
    for (size_t m = 0; m < result->model_count; m++) {
        free(result->models[m].values);
        free(result->models[m].cards);
        free(result->models[m].uuids);
        free(result->models[m].pcis);
        free(result->models[m].nodes);
    }
    free(result->models);
    *result = (struct cards_result){0};
}
