/* What the tests of the table and of --json share: rows that are put in directly. */
#ifndef GPUBENCH_TESTS_TABLE_ROWS_H
#define GPUBENCH_TESTS_TABLE_ROWS_H

#include "gpubench.h"
#include "support.h"

#include <locale.h>

static inline gpb_row *add_row(gpubench *bench, const char *name, const char *variant,
                        const char *params, double median_us)
{
    gpb_row *row = gpb_new_row(bench);
    gpb_set_text(row, GPB_COLUMN_suite, "test");
    gpb_set_text(row, GPB_COLUMN_case, name);
    gpb_set_text(row, GPB_COLUMN_variant, variant);
    gpb_set_text(row, GPB_COLUMN_params, params);
    gpb_set_text(row, GPB_COLUMN_mode, "cold");
    gpb_set_text(row, GPB_COLUMN_device, "toy");
    gpb_set_count(row, GPB_COLUMN_run, 1);
    gpb_set_text(row, GPB_COLUMN_status, "ok");
    gpb_set_number(row, GPB_COLUMN_median_us, median_us);
    gpb_set_number(row, GPB_COLUMN_p95_us, median_us);
    return row;
}

static inline void fail_row(gpb_row *row, const char *status)
{
    gpb_set_text(row, GPB_COLUMN_status, status);
    gpb_set_text(row, GPB_COLUMN_median_us, "");
    gpb_set_text(row, GPB_COLUMN_p95_us, "");
}

#endif
