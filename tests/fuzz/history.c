/* --history and --cards on any bytes: what the reader takes is written in every format. */
#define _GNU_SOURCE
#include "../../compare/report_cards.h"
#include "../../compare/report_history.h"
#include "rows.h"

static const enum format formats[] = {FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON};
static const struct listing listing = {.all = true};

static void write_history(const struct rows *rows)
{
    struct history history;
    FILE *nowhere = open_nowhere();
    require(find_history(&history, &rows->settings, &rows->catalogue, &rows->baseline));
    require(history.case_count <= rows->catalogue.keys.count);
    for (size_t i = 0; i < 3 && !history.invalid && history.case_count > 0; i++)
        report_history(nowhere, &history, &rows->settings, &rows->catalogue, &rows->baseline,
                       formats[i], &listing);
    history_free(&history);
    fclose(nowhere);
}

static void write_cards(const struct rows *rows)
{
    struct cards_result cards;
    FILE *nowhere = open_nowhere();
    require(find_odd_cards(&cards, &rows->settings, &rows->catalogue, &rows->baseline));
    for (size_t i = 0; i < 3 && !cards.invalid && cards.model_count > 0; i++)
        report_cards(nowhere, &cards, &rows->settings, &rows->catalogue, &rows->baseline,
                     formats[i], true);
    cards_free(&cards);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rows rows;
    if (rows_load(&rows, data, size, data, size)) {
        write_history(&rows);
        write_cards(&rows);
    }
    rows_free(&rows);
    return 0;
}
