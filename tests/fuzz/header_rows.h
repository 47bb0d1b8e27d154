/* The rows that another process of a program left, of any bytes: they are taken over, shown as
 * text in a table, narrow or not, written as JSON and as CSV, and read back the same. */
#ifndef GPUBENCH_TESTS_FUZZ_HEADER_ROWS_H
#define GPUBENCH_TESTS_FUZZ_HEADER_ROWS_H

#include "fuzz.h"

static gpubench *take_over(const char *bytes, size_t size)
{
    gpubench *bench = gpb_must(calloc(1, sizeof *bench));
    char slot[GPB_SLOT_BYTES] = {0};
    bench->suite = gpb_duplicate("fuzz");
    bench->restart.environment = gpb_must(calloc(1, sizeof *bench->restart.environment));
    bench->journal.file = bench->journal.old = -1;
    bench->rows_file = memfd_create("rows", MFD_CLOEXEC);
    gpb_default_settings(&bench->settings);
    require(write(bench->rows_file, slot, sizeof slot) == sizeof slot);
    require(write(bench->rows_file, bytes, size) == (ssize_t)size);
    gpb_import_rows(bench);
    return bench;
}

static void give_up(gpubench *bench)
{
    close(bench->rows_file);
    bench->rows_file = -1;
    gpb_free(bench);
}

static void show(const gpubench *bench)
{
    const int columns[] = {0, 40, 100};
    struct shown_report report;
    for (size_t i = 0; i < 3; i++) {
        shown_report_open(&report);
        gpb_print_fitted(bench, report.file, columns[i]);
        shown_report_close(&report, true);
    }
    shown_report_open(&report);
    for (size_t i = 0; i < bench->row_count; i++)
        gpb_write_json_row(report.file, &bench->rows[i]);
    shown_report_close(&report, true);
}

static void read_back(const gpubench *bench)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    for (size_t i = 0; i < bench->row_count; i++)
        gpb_write_row(file, &bench->rows[i], GPB_COLUMN_COUNT);
    fclose(file);
    gpubench *again = take_over(text, size);
    require(again->row_count == bench->row_count);
    for (size_t i = 0; i < bench->row_count; i++)
        for (int column = 0; column < GPB_COLUMN_COUNT; column++)
            require(!strcmp(gpb_text(&bench->rows[i], column), gpb_text(&again->rows[i], column)));
    give_up(again);
    free(text);
}

static void fuzz_rows(const uint8_t *data, size_t size)
{
    gpubench *bench = take_over((const char *)data, size);
    show(bench);
    read_back(bench);
    give_up(bench);
}

#endif
