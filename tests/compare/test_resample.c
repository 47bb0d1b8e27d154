/* The tool on real medians: variance-h100.csv holds 12 cases in 40 processes on
 * three H100 cards, same binary, nothing changed between runs. Each family
 * draws 10 baseline runs from two cards and 3 new ones from the third, with
 * the card as campaign, and goes through the whole tool from the CSV on. Prints
 * the figures it judges. */
#include "../../compare/csv.h"
#include "../../compare/number.h"

#include "cmocka_all.h"
#include "random.h"
#include "schema_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { families = 1500, cards = 3, cases = 12, most_runs = 20, baseline_per_card = 5, current_runs = 3 };

static const char *data_path = "tests/compare/data/variance-h100.csv";

struct measured {
    char card_names[cards][16];
    char case_names[cases][16];
    double median_us[cards][most_runs][cases];
    size_t runs[cards];
};

/* The index of the name, which is added at the end of the known ones. */
static size_t index_of(char names[][16], size_t capacity, const char *name)
{
    for (size_t i = 0; i < capacity; i++) {
        if (names[i][0] == '\0')
            snprintf(names[i], sizeof names[i], "%.15s", name);
        if (strcmp(names[i], name) == 0)
            return i;
    }
    fail_msg("one name too many: %s", name);
    return 0;
}

static void read_measured(struct measured *measured)
{
    struct csv_reader reader;
    memset(measured, 0, sizeof *measured);
    if (!csv_open(&reader, data_path))
        fail_msg("%s", reader.error);
    int run_column = csv_column(&reader, "run");
    int card_column = csv_column(&reader, "card");
    int case_column = csv_column(&reader, "case");
    int median_column = csv_column(&reader, "median_us");
    while (csv_next(&reader) == CSV_RECORD) {
        uint64_t run = 0;
        double median_us = 0.0;
        assert_true(parse_whole(reader.fields[run_column], &run) && run >= 1 && run <= most_runs);
        assert_true(parse_decimal(reader.fields[median_column], &median_us));
        size_t card = index_of(measured->card_names, cards, reader.fields[card_column]);
        size_t case_index = index_of(measured->case_names, cases, reader.fields[case_column]);
        measured->median_us[card][run - 1][case_index] = median_us;
        if (run > measured->runs[card])
            measured->runs[card] = run;
    }
    csv_close(&reader);
}

/* Draws without replacement, Fisher and Yates's first steps. */
static void draw_runs(size_t available, size_t wanted, size_t *chosen, uint64_t *random)
{
    size_t all[most_runs];
    for (size_t i = 0; i < available; i++)
        all[i] = i;
    for (size_t i = 0; i < wanted; i++) {
        size_t j = i + random_below(random, available - i);
        size_t drawn = all[j];
        all[j] = all[i];
        all[i] = drawn;
        chosen[i] = drawn;
    }
}

struct family {
    size_t card_of_current;
    size_t chosen[cards][most_runs];
};

static void draw_family(const struct measured *measured, size_t number, struct family *family, uint64_t *random)
{
    family->card_of_current = number % cards;
    for (size_t card = 0; card < cards; card++)
        draw_runs(measured->runs[card], card == family->card_of_current ? current_runs : baseline_per_card,
                  family->chosen[card], random);
}

static void write_card(struct text *text, const struct measured *measured, const struct family *family, size_t card,
                       size_t runs, const double *factors)
{
    for (size_t i = 0; i < runs; i++) {
        size_t run = family->chosen[card][i];
        for (size_t c = 0; c < cases; c++) {
            char median[40];
            snprintf(median, sizeof median, "%.17g", measured->median_us[card][run][c] * factors[c]);
            add_row(text, (struct text_row){.name = measured->case_names[c],
                                            .campaign = measured->card_names[card],
                                            .run = (unsigned)run + 1,
                                            .median_us = median});
        }
    }
}

/* Compares one family whose current times are multiplied by factors, and says
 * which cases came out SLOWER. */
static void judge_planted(const struct measured *measured, const struct family *family, const double *factors,
                          bool *slower)
{
    static const double unchanged[cases] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct text baseline = {0};
    struct text current = {0};
    struct compared compared;
    add_header(&baseline);
    add_header(&current);
    for (size_t card = 0; card < cards; card++)
        if (card != family->card_of_current)
            write_card(&baseline, measured, family, card, baseline_per_card, unchanged);
    write_card(&current, measured, family, family->card_of_current, current_runs, factors);
    compare_texts(&compared, usual_settings(), &baseline, &current);
    if (!compared.loaded)
        fail_msg("%s", compared.error);
    assert_int_equal(compared.comparison.count, cases);
    for (size_t c = 0; c < cases; c++)
        slower[c] = compared.comparison.results[c].judgement.verdict == VERDICT_SLOWER;
    compared_free(&compared);
    free_text(&baseline);
    free_text(&current);
}

struct counts {
    size_t alarms;
    size_t found_all[cases];    /* every case made slower */
    size_t found_single[cases]; /* one case made slower, the others as they were */
};

static void plant_everywhere(const struct measured *measured, const struct family *family, double factor,
                             struct counts *counts)
{
    double factors[cases];
    bool slower[cases];
    for (size_t c = 0; c < cases; c++)
        factors[c] = factor;
    judge_planted(measured, family, factors, slower);
    for (size_t c = 0; c < cases; c++)
        counts->found_all[c] += slower[c];
}

static void plant_one_by_one(const struct measured *measured, const struct family *family, double factor,
                             struct counts *counts)
{
    double factors[cases];
    bool slower[cases];
    for (size_t planted = 0; planted < cases; planted++) {
        for (size_t c = 0; c < cases; c++)
            factors[c] = c == planted ? factor : 1.0;
        judge_planted(measured, family, factors, slower);
        counts->found_single[planted] += slower[planted];
    }
}

static bool any(const bool *flags)
{
    for (size_t c = 0; c < cases; c++)
        if (flags[c])
            return true;
    return false;
}

static double percent_of(const size_t *found)
{
    size_t sum = 0;
    for (size_t c = 0; c < cases; c++)
        sum += found[c];
    return 100.0 * (double)sum / families / cases;
}

static void print_cases(const struct measured *measured, const struct counts *five, const struct counts *ten)
{
    for (size_t c = 0; c < cases; c++)
        printf("  %-12s +5 %%: %6.2f %% (alone %6.2f %%)   +10 %%: %6.2f %% (alone %6.2f %%)\n", measured->case_names[c],
               100.0 * (double)five->found_all[c] / families, 100.0 * (double)five->found_single[c] / families,
               100.0 * (double)ten->found_all[c] / families, 100.0 * (double)ten->found_single[c] / families);
}

static void real_medians_across_cards(void **state)
{
    (void)state;
    static const double unchanged[cases] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static struct measured measured;
    struct counts five = {0};
    struct counts ten = {0};
    size_t alarms = 0;
    uint64_t random = 20261127;
    read_measured(&measured);
    for (size_t number = 0; number < families; number++) {
        struct family family;
        bool slower[cases];
        draw_family(&measured, number, &family, &random);
        judge_planted(&measured, &family, unchanged, slower);
        alarms += any(slower);
        plant_everywhere(&measured, &family, 1.05, &five);
        plant_everywhere(&measured, &family, 1.10, &ten);
        plant_one_by_one(&measured, &family, 1.05, &five);
        plant_one_by_one(&measured, &family, 1.10, &ten);
    }
    double alarm_rate = 100.0 * (double)alarms / families;
    print_cases(&measured, &five, &ten);
    printf("  %d families of %d cases: false alarm in %.2f %%\n", families, cases, alarm_rate);
    printf("  every case slower: +5 %% found %.2f %%, +10 %% found %.2f %%\n", percent_of(five.found_all),
           percent_of(ten.found_all));
    printf("  one case slower:   +5 %% found %.2f %%, +10 %% found %.2f %%\n", percent_of(five.found_single),
           percent_of(ten.found_single));
    /* Before a baseline of two campaigns was judged as that: 0.73 % alarmed, and
     * 74 % and 70 % of +5 % found, as these three cards happen to be. */
    assert_true(alarm_rate <= 1.0);
    assert_true(percent_of(five.found_all) >= 60.0);
    assert_true(percent_of(ten.found_all) >= 92.0);
    assert_true(percent_of(five.found_single) >= 53.0);
    assert_true(percent_of(ten.found_single) >= 80.0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        data_path = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(real_medians_across_cards)};
    return cmocka_run_group_tests_name("compare: resampled medians", tests, NULL, NULL);
}
