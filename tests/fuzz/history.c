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
    require(find_history(&history, &rows->settings, &rows->catalogue, &rows->baseline));
    require(history.case_count <= rows->catalogue.keys.count);
    for (size_t i = 0; i < 3 && !history.invalid && history.case_count > 0; i++) {
        struct shown_report report;
        shown_report_open(&report);
        report_history(report.file, &history, &rows->settings, &rows->catalogue, &rows->baseline,
                       formats[i], &listing);
        shown_report_close(&report, formats[i] != FORMAT_CSV);
    }
    history_free(&history);
}

static void write_cards(const struct rows *rows)
{
    struct cards_result cards;
    require(find_odd_cards(&cards, &rows->settings, &rows->catalogue, &rows->baseline));
    for (size_t i = 0; i < 3 && !cards.invalid && cards.model_count > 0; i++) {
        struct shown_report report;
        shown_report_open(&report);
        report_cards(report.file, &cards, &rows->settings, &rows->catalogue, &rows->baseline,
                     formats[i], true);
        shown_report_close(&report, formats[i] != FORMAT_CSV);
    }
    cards_free(&cards);
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
