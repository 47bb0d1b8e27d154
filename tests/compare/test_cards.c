/* What is gathered of cards before they are judged; the rule is test_fleet.c's. */
#define _XOPEN_SOURCE 700

#include "../../compare/cards.h"

#include "one_side.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct cards_result cards_of(struct one_side *side)
{
    struct cards_result result;
    load_side(side);
    assert_true(find_odd_cards(&result, &side->settings, &side->catalogue, &side->results));
    return result;
}

static void end(struct one_side *side, struct cards_result *result)
{
    cards_free(result);
    end_side(side);
}

static void add(struct one_side *side, const char *device, const char *uuid, const char *name,
                unsigned run, const char *median_us)
{
    add_row(&side->text, (struct text_row){.name = name,
                                           .device = device,
                                           .uuid = uuid,
                                           .run = run,
                                           .campaign = uuid,
                                           .median_us = median_us,
                                           .node = uuid});
}

static bool is_near(double value, double wanted)
{
    return fabs(value - wanted) < 1e-12;
}

/* Rows in any order: the values are by model, case and card, each the median of its runs'
 * logarithms: of 1, 2 and 16 us it is that of 2, of 1, 2, 8 and 16 that of 4. */
static void values_are_medians_of_a_card(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    add(&side, "B", "b1", "y", 1, "2");
    add(&side, "A", "a1", "x", 1, "16");
    add(&side, "A", "a2", "x", 1, "8");
    add(&side, "B", "b1", "x", 1, "32");
    add(&side, "A", "a1", "y", 1, "16");
    add(&side, "A", "a1", "x", 2, "1");
    add(&side, "A", "a1", "y", 2, "1");
    add(&side, "A", "a1", "x", 3, "2");
    add(&side, "A", "a1", "y", 3, "2");
    add(&side, "A", "a1", "y", 4, "8");
    struct cards_result result = cards_of(&side);
    assert_int_equal(result.model_count, 2);
    static const struct {
        size_t model;
        const char *device, *uuid, *name;
        size_t runs;
        double level; /* of base 2 */
    } values[] = {
        {0, "B", "b1", "y", 1, 1}, {0, "B", "b1", "x", 1, 5}, {1, "A", "a1", "y", 4, 2},
        {1, "A", "a1", "x", 3, 1}, {1, "A", "a2", "x", 1, 3},
    };
    size_t at = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++, at++) {
        const struct model *model = &result.models[values[i].model];
        if (i > 0 && values[i].model != values[i - 1].model)
            at = 0;
        const struct fleet_value *value = &model->values[at];
        const struct intern_table *uuids = &side.results.provenance[PROVENANCE_UUID];
        assert_string_equal(intern_text(&side.catalogue.devices, model->device), values[i].device);
        assert_string_equal(intern_text(uuids, model->uuids[value->card]), values[i].uuid);
        assert_string_equal(intern_text(&side.results.nodes, model->nodes[value->card]),
                            values[i].uuid);
        assert_string_equal(intern_text(&side.results.pcis, model->pcis[value->card]),
                            "0000:01:00.0");
        assert_string_equal(case_name(&side, value->case_id), values[i].name);
        assert_int_equal(value->runs, values[i].runs);
        assert_true(is_near(value->log_cost, values[i].level * M_LN2));
    }
    assert_int_equal(result.models[0].value_count, 2);
    assert_int_equal(result.models[0].card_count, 1);
    assert_int_equal(result.models[1].value_count, 3);
    assert_int_equal(result.models[1].card_count, 2);
    assert_int_equal(cards_status(&result), EXIT_CANNOT_JUDGE);
    end(&side, &result);
}

/* Rows without a name of their card, throttled ones, those that failed and those of other
 * cases are no evidence; the first two are counted. */
static void rows_that_are_no_evidence(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    add(&side, "A", "a1", "x", 1, "100");
    add(&side, "A", "", "x", 2, "100");
    add(&side, "A", "", "x", 3, "100");
    add_row(&side.text,
            (struct text_row){.name = "x", .uuid = "a1", .run = 4, .flags = "throttle=sw-thermal"});
    add_row(&side.text, (struct text_row){
                            .name = "x", .uuid = "a1", .run = 5, .status = "oom", .median_us = ""});
    add_row(
        &side.text,
        (struct text_row){.name = "other", .uuid = "a1", .run = 6, .flags = "throttle=sw-thermal"});
    regex_t filter;
    assert_int_equal(regcomp(&filter, "^suite x", REG_EXTENDED | REG_NOSUB), 0);
    side.settings.filter = &filter;
    struct cards_result result = cards_of(&side);
    assert_int_equal(result.nameless, 2);
    assert_int_equal(result.throttled, 1);
    assert_null(result.invalid);
    assert_int_equal(result.model_count, 1);
    assert_int_equal(result.models[0].value_count, 1);
    assert_int_equal(result.models[0].values[0].runs, 1);
    regfree(&filter);
    end(&side, &result);
}

/* The first is named, and nothing is judged. */
static void invalid_values(void **state)
{
    (void)state;
    static const char *const bad[] = {"0", "-1", ""};
    for (int i = 0; i <= 3; i++) {
        struct one_side side = begin_side();
        add(&side, "A", "a1", "x", 1, "100");
        add(&side, "A", "a1", "x", 2, i < 3 ? bad[i] : "100");
        add(&side, "A", "a1", "x", 3, i < 3 ? bad[i] : "100");
        load_side(&side);
        if (i == 3)
            side.results.rows[1].value = side.results.rows[2].value = INFINITY;
        struct cards_result result;
        assert_true(find_odd_cards(&result, &side.settings, &side.catalogue, &side.results));
        assert_non_null(result.invalid);
        assert_int_equal(result.invalid->line, 3);
        assert_int_equal(result.model_count, 0);
        end(&side, &result);
    }
}

/* A case may have no throughput; of two where one has none that one does not count. A time
 * loses what its host's empty kernel takes more, and is none where that is all of it. */
static void other_metrics_and_constants(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    side.settings.metric = find_metric("gb_per_s");
    add_row(&side.text, (struct text_row){.run = 1, .gb_per_s = "0.25"});
    add_row(&side.text, (struct text_row){.run = 2});
    struct cards_result result = cards_of(&side);
    assert_null(result.invalid);
    assert_int_equal(result.models[0].values[0].runs, 1);
    assert_true(is_near(result.models[0].values[0].log_cost, 2 * M_LN2));
    end(&side, &result);

    side = begin_side();
    for (unsigned run = 1; run <= 2; run++)
        add(&side, "A", "a1", "x", run, "4");
    load_side(&side);
    side.results.rows[0].shift_us = 2.0f;
    side.results.rows[1].shift_us = 4.0f;
    assert_true(find_odd_cards(&result, &side.settings, &side.catalogue, &side.results));
    assert_null(result.invalid);
    assert_int_equal(result.models[0].values[0].runs, 1);
    assert_true(is_near(result.models[0].values[0].log_cost, M_LN2));
    end(&side, &result);
}

/* A model that can be judged makes it fine, an odd card in any of them worse. */
static void the_status_is_the_worst_model_s(void **state)
{
    (void)state;
    struct fleet_card cards[3] = {{.runs = 1}, {.runs = 1}, {.runs = 1}};
    struct model models[2] = {
        {.cards = cards, .card_count = 2, .summary = {.reach = INFINITY}},
        {.cards = cards + 2, .card_count = 1, .summary = {.reach = INFINITY}}};
    struct cards_result result = {.models = models, .model_count = 0};
    assert_int_equal(cards_status(&result), EXIT_CANNOT_JUDGE);
    result.model_count = 2;
    assert_int_equal(cards_status(&result), EXIT_CANNOT_JUDGE);
    models[1].summary.reach = 0.01;
    assert_int_equal(cards_status(&result), EXIT_FINE);
    for (int i = 0; i < 6; i++) {
        struct fleet_card *card = &cards[i / 2];
        *(i % 2 ? &card->off : &card->scattered) = true;
        assert_true(card_is_odd(card));
        assert_int_equal(cards_status(&result), EXIT_WORSE);
        card->off = card->scattered = false;
        assert_false(card_is_odd(card));
    }
}

static void a_file_without_rows_has_no_model(void **state)
{
    (void)state;
    struct one_side side = begin_side();
    struct cards_result result = cards_of(&side);
    assert_int_equal(result.model_count, 0);
    assert_null(result.invalid);
    end(&side, &result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_medians_of_a_card),
        cmocka_unit_test(rows_that_are_no_evidence),
        cmocka_unit_test(invalid_values),
        cmocka_unit_test(other_metrics_and_constants),
        cmocka_unit_test(the_status_is_the_worst_model_s),
        cmocka_unit_test(a_file_without_rows_has_no_model),
    };
    return cmocka_run_group_tests_name("compare: cards", tests, NULL, NULL);
}
