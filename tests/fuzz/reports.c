/* A comparison of any bytes: two files, a form feed between them, or one with itself. What
 * the reader takes is judged, and written in every format. */
#define _GNU_SOURCE
#include "rows.h"

#include "../../compare/report.h"

static const enum format formats[] = {FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_CSV, FORMAT_GITHUB,
                                      FORMAT_JSON};

static void write_as(const struct comparison *comparison, enum format format, const struct listing *listing)
{
    struct shown_report report;
    bool is_coloured = listing->screen;
    shown_report_open(&report);
    report_comparison(report.file, comparison, format, listing, is_coloured);
    shown_report_close(&report, !is_coloured && format != FORMAT_CSV && format != FORMAT_GITHUB);
}

static void write_comparison(const struct comparison *comparison)
{
    const struct listing listing = {.limit = 15, .screen = true},
                         all = {.sort = SORT_NAME, .all = true};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        write_as(comparison, formats[i], &listing);
        write_as(comparison, formats[i], &all);
    }
}

static void compare(const struct rows *rows)
{
    struct comparison comparison;
    require(compare_sides(&comparison, &rows->settings, &rows->catalogue, &rows->baseline,
                          &rows->current));
    int status = comparison_status(&comparison);
    require(status == EXIT_FINE || status == EXIT_WORSE || status == EXIT_CANNOT_JUDGE);
    if (comparison.count > 0)
        write_comparison(&comparison);
    comparison_free(&comparison);
    require(compare_variants(&comparison, &rows->settings, &rows->catalogue, &rows->baseline));
    if (comparison.count > 0)
        write_comparison(&comparison);
    comparison_free(&comparison);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rows rows;
    const uint8_t *cut = size > 0 ? memchr(data, '\f', size) : NULL;
    size_t first = cut ? (size_t)(cut - data) : size;
    if (rows_load(&rows, data, first, cut ? cut + 1 : data, cut ? size - first - 1 : size))
        compare(&rows);
    rows_free(&rows);
    return 0;
}
