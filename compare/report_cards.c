#include "precise.h"

#include "report_cards.h"

#include "json.h"
#include "label.h"
#include "report_parts.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>

enum { most_worst = 5 };

static const double percent = 100.0;

static void print_name(FILE *out, const struct intern_table *names, uint32_t id,
                       void (*print)(FILE *, const char *))
{
    if (id != INTERN_NONE)
        print(out, intern_text(names, id));
}

static const char *word_of(const struct fleet_card *card)
{
    if (card->cases == 0)
        return "not judged";
    return card->off ? "odd" : card->scattered ? "odd in some cases" : "as the others";
}

static int by_size(const void *left, const void *right)
{
    const struct fleet_value *a = *(const struct fleet_value *const *)left;
    const struct fleet_value *b = *(const struct fleet_value *const *)right;
    double a_size = fabs(a->difference);
    double b_size = fabs(b->difference);
    return (a_size < b_size) - (a_size > b_size);
}

/* The card's cases that are farthest from those of the other cards. */
static void print_worst(FILE *out, const struct model *model, uint32_t card,
                        const struct catalogue *catalogue)
{
    const struct fleet_value **worst = noted(malloc((model->value_count + 1) * sizeof worst[0]));
    size_t count = 0;
    for (size_t i = 0; worst && i < model->value_count; i++)
        if (model->values[i].card == card && !isnan(model->values[i].difference))
            worst[count++] = &model->values[i];
    if (count > 0)
        qsort(worst, count, sizeof worst[0], by_size);
    for (size_t i = 0; i < count && i < most_worst; i++) {
        fprintf(out, "    %+8.2f %%  ", percent * expm1(worst[i]->difference));
        print_case_label(out, &catalogue->cases[worst[i]->case_id], NULL, print_plain);
        putc('\n', out);
    }
    free(worst);
}

static void print_card(FILE *out, const struct model *model, uint32_t i,
                       const struct catalogue *catalogue, const struct results *results,
                       const struct rule *rule)
{
    const struct fleet_card *card = &model->cards[i];
    fprintf(out, "%-17s  ", word_of(card));
    print_name(out, &results->provenance[PROVENANCE_UUID], model->uuids[i], print_plain);
    if (model->pcis[i] != INTERN_NONE)
        fprintf(out, " at ");
    print_name(out, &results->pcis, model->pcis[i], print_plain);
    if (model->nodes[i] != INTERN_NONE)
        fprintf(out, " of ");
    print_name(out, &results->nodes, model->nodes[i], print_plain);
    fprintf(out, ": cost %+.2f %%", percent * expm1(card->mean));
    if (!isnan(card->low))
        fprintf(out, ", %g %% interval over cases [%+.2f, %+.2f]", interval_level(rule),
                percent * expm1(card->low), percent * expm1(card->high));
    fprintf(out, ", geometric mean of %zu case%s in %zu runs\n", card->cases,
            card->cases == 1 ? "" : "s", card->runs);
    if (card_is_odd(card))
        print_worst(out, model, i, catalogue);
}

static size_t count_odd(const struct model *model)
{
    size_t odd = 0;
    for (size_t i = 0; i < model->card_count; i++)
        odd += card_is_odd(&model->cards[i]);
    return odd;
}

/* The odd cards first. */
static void print_model(FILE *out, const struct model *model, const struct catalogue *catalogue,
                        const struct results *results, const struct settings *settings, bool all)
{
    print_name(out, &catalogue->devices, model->device, print_plain);
    fprintf(out, ": %zu card%s, ", model->card_count, model->card_count == 1 ? "" : "s");
    if (isinf(model->summary.reach)) {
        fprintf(out, "cannot be judged: it takes %d with a case in common\n", least_cards);
        return;
    }
    fprintf(out, "%zu odd; one that differed by %.2g %% in everything would have been found\n",
            count_odd(model), percent * expm1(model->summary.reach));
    if (model->summary.apart > 0)
        fprintf(out, "  %zu cards stand apart, too many to be odd ones: a group of its own, to be "
                     "judged in a file of its own\n", model->summary.apart);
    for (int odd = 1; odd >= 0; odd--)
        for (uint32_t i = 0; i < model->card_count; i++)
            if (card_is_odd(&model->cards[i]) == (odd == 1) && (odd == 1 || all))
                print_card(out, model, i, catalogue, results, &settings->rule);
}

static void print_left_out(FILE *out, size_t rows, const char *why)
{
    if (rows > 0)
        fprintf(out, "left out: %zu row%s %s\n", rows, rows == 1 ? "" : "s", why);
}

static void print_text(FILE *out, const struct cards_result *result,
                       const struct settings *settings, const struct catalogue *catalogue,
                       const struct results *results, bool all)
{
    fprintf(out,
            "cards against the median card of their model: %s; a cost above 0 is worse; margin %g %%; "
            "false alarms %g %% of fleets\n",
            settings->metric->column, percent * settings->rule.margin,
            percent * settings->rule.false_alarms);
    for (size_t m = 0; m < result->model_count; m++)
        print_model(out, &result->models[m], catalogue, results, settings, all);
    print_left_out(out, result->nameless, "without a uuid");
    print_left_out(out, result->throttled,
                   "of runs that were throttled (by more than the power cap)");
}

/* One line for each card and case; a card's own columns are repeated. */
static void print_csv(FILE *out, const struct model *model, const struct catalogue *catalogue,
                      const struct results *results)
{
    for (size_t i = 0; i < model->value_count; i++) {
        const struct fleet_value *value = &model->values[i];
        const struct fleet_card *card = &model->cards[value->card];
        print_name(out, &catalogue->devices, model->device, print_csv_name);
        putc(',', out);
        print_name(out, &results->provenance[PROVENANCE_UUID], model->uuids[value->card],
                   print_csv_name);
        putc(',', out);
        print_name(out, &results->pcis, model->pcis[value->card], print_csv_name);
        putc(',', out);
        print_name(out, &results->nodes, model->nodes[value->card], print_csv_name);
        fprintf(out, ",%s,%zu", word_of(card), card->cases);
        const double numbers[] = {exp(card->mean), exp(card->low), exp(card->high)};
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            putc(',', out);
            print_csv_number(out, card->cases ? numbers[n] : (double)NAN);
        }
        for (int part = 0; part < KEY_PARTS; part++) {
            putc(',', out);
            print_csv_name(out, catalogue->cases[value->case_id].parts[part]);
        }
        fprintf(out, ",%zu,", value->runs);
        print_csv_number(out, exp(value->difference));
        putc(',', out);
        print_csv_number(out, value->deviations);
        putc('\n', out);
    }
}

static void print_json_name(FILE *out, const char *name, const struct intern_table *names,
                            uint32_t id)
{
    fprintf(out, "\"%s\":", name);
    json_text_or_null(out, id == INTERN_NONE ? NULL : intern_text(names, id));
    putc(',', out);
}

static void print_json_cases(FILE *out, const struct model *model, uint32_t card,
                             const struct catalogue *catalogue)
{
    const char *separator = "\n";
    for (size_t i = 0; i < model->value_count; i++) {
        const struct fleet_value *value = &model->values[i];
        if (value->card != card)
            continue;
        const struct json_member members[] = {{"runs", (double)value->runs},
                                              {"cost_ratio", exp(value->difference)},
                                              {"deviations", value->deviations}};
        fprintf(out, "%s{", separator);
        json_key(out, &catalogue->cases[value->case_id]);
        putc(',', out);
        json_members(out, members, sizeof members / sizeof members[0]);
        putc('}', out);
        separator = ",\n";
    }
}

/* The numbers of a card that was not judged are null. */
static void print_json_card(FILE *out, const struct model *model, uint32_t i,
                            const struct catalogue *catalogue, const struct results *results)
{
    const struct fleet_card *card = &model->cards[i];
    double unless_judged = card->cases ? 0.0 : (double)NAN;
    const struct json_member members[] = {{"cases_judged", (double)card->cases},
                                          {"runs", (double)card->runs},
                                          {"cost_ratio", unless_judged + exp(card->mean)},
                                          {"cost_ratio_low", unless_judged + exp(card->low)},
                                          {"cost_ratio_high", unless_judged + exp(card->high)}};
    putc('{', out);
    print_json_name(out, "uuid", &results->provenance[PROVENANCE_UUID], model->uuids[i]);
    print_json_name(out, "pci", &results->pcis, model->pcis[i]);
    print_json_name(out, "node", &results->nodes, model->nodes[i]);
    fprintf(out, "\"verdict\":\"%s\",", word_of(card));
    json_members(out, members, sizeof members / sizeof members[0]);
    fputs(",\"cases\":[", out);
    print_json_cases(out, model, i, catalogue);
    fputs("\n]}", out);
}

static void print_json(FILE *out, const struct cards_result *result,
                       const struct settings *settings, const struct catalogue *catalogue,
                       const struct results *results)
{
    const struct json_member rows[] = {{"rows_without_uuid", (double)result->nameless},
                                       {"rows_throttled", (double)result->throttled}};
    fprintf(out, "{\"format\":1,\n\"status\":%d,\n\"settings\":{", cards_status(result));
    json_rule(out, settings);
    fputs("},\n", out);
    json_members(out, rows, sizeof rows / sizeof rows[0]);
    fputs(",\n\"models\":[", out);
    for (size_t m = 0; m < result->model_count; m++) {
        const struct model *model = &result->models[m];
        fputs(m ? ",\n{" : "\n{", out);
        print_json_name(out, "device", &catalogue->devices, model->device);
        fputs("\"findable\":", out);
        json_number(out, expm1(model->summary.reach));
        fprintf(out, ",\"apart\":%zu,\"cards\":[", model->summary.apart);
        for (uint32_t i = 0; i < model->card_count; i++) {
            fputs(i ? ",\n" : "\n", out);
            print_json_card(out, model, i, catalogue, results);
        }
        fputs("\n]}", out);
    }
    fputs("\n]}\n", out);
}

void report_cards(FILE *out, const struct cards_result *result, const struct settings *settings,
                  const struct catalogue *catalogue, const struct results *results,
                  enum format format, bool all)
{
    if (format == FORMAT_JSON) {
        print_json(out, result, settings, catalogue, results);
        return;
    }
    if (format != FORMAT_CSV) {
        print_text(out, result, settings, catalogue, results, all);
        return;
    }
    fprintf(out, "device,uuid,pci,node,verdict,cases,cost_ratio,cost_ratio_low,cost_ratio_high");
    for (int part = 0; part < KEY_PARTS; part++)
        fprintf(out, ",%s", key_column_names[part]);
    fprintf(out, ",runs,case_cost_ratio,deviations\n");
    for (size_t m = 0; m < result->model_count; m++)
        print_csv(out, &result->models[m], catalogue, results);
}
