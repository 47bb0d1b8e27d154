/* A libFuzzer target: the CSV reader and the reading of schema 1 on any bytes
 * must end with rows or with a message, and every row must be whole. */
#define _GNU_SOURCE
#include "../../compare/csv.h"
#include "../../compare/results.h"
#include "fuzz.h"

static void read_as_table(const char *bytes, size_t size)
{
    struct csv_reader reader;
    if (csv_open_bytes(&reader, "fuzz.csv", bytes, size)) {
        enum csv_outcome outcome;
        size_t total = 0;
        while ((outcome = csv_next(&reader)) == CSV_RECORD) {
            require(reader.field_count == reader.column_count);
            for (size_t i = 0; i < reader.field_count; i++)
                total += strlen(reader.fields[i]);
        }
        require(total <= size);
        require(outcome == CSV_END || reader.error[0] != '\0');
    } else {
        require(reader.error[0] != '\0');
    }
    csv_close(&reader);
}

static void read_as_results(const char *bytes, size_t size)
{
    const char *path = "fuzz.csv";
    char error[results_error_capacity] = "";
    struct catalogue catalogue = {.metric = find_metric("median_us")};
    struct results results;
    bool loaded = results_load_bytes(&results, &catalogue, &path, bytes, size, error);
    require(loaded == (error[0] == '\0'));
    for (size_t i = 0; i < results.count; i++)
        require(results.rows[i].case_id < catalogue.keys.count && results.rows[i].line > 1);
    results_free(&results);
    catalogue_free(&catalogue);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as_table((const char *)data, size);
    read_as_results((const char *)data, size);
    return 0;
}
