/* gpubench-compare: see print_usage in options.c for what it does. */
#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "complain.h"
#include "kernels.h"
#include "options.h"
#include "output.h"
#include "race.h"
#include "report_cards.h"
#include "report_history.h"
#include "report_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int refuse(const char *message)
{
    complain("%s", message);
    return EXIT_CANNOT_JUDGE;
}

struct written_comparison {
    const struct comparison *comparison;
    const struct options *options;
};

static bool wants_colour(const struct options *options)
{
    return !options->output && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
}

static void write_comparison(FILE *out, const void *what)
{
    const struct written_comparison *written = what;
    report_comparison(out, written->comparison, written->options->format, &written->options->listing,
                      wants_colour(written->options));
}

static int refuse_device(const struct comparison *comparison)
{
    const struct row *row = comparison->device_row;
    const struct row *first = comparison->device_first;
    const struct results *side = comparison->device_row_in_baseline ? comparison->baseline : comparison->current;
    const struct intern_table *devices = &comparison->catalogue->devices;
    complain("cannot judge: %s:%zu: column 'device': '%s', but the baseline (%s:%zu) has '%s'; so in %zu case%s "
             "(--ignore-device compares all the same)",
             side->paths[row->file], row->line, intern_text(devices, row->device),
             comparison->baseline->paths[first->file], first->line, intern_text(devices, first->device),
             comparison->device_cases, comparison->device_cases == 1 ? "" : "s");
    return EXIT_CANNOT_JUDGE;
}

/* No case in common, because one side is of schema 1 or measured in mode dirty. */
static void explain_flushes(const struct comparison *comparison)
{
    const struct results *old = comparison->baseline->has_schema_1 ? comparison->baseline : comparison->current;
    complain("cannot judge: the two sides were measured behind different flushes, %zu case%s on "
             "each: one that writes, whose dirty lines are charged to the kernel (modes dirty and dirty-graph%s%s), "
             "and one that only reads (cold and graph). Measure the baseline again (make baseline-SUITE), or the "
             "current side with --mode dirty",
             comparison->other_flushes / 2, comparison->other_flushes == 2 ? "" : "s", old->has_schema_1 ? "; so is cold in schema 1, as in " : "",
             old->has_schema_1 ? old->paths[0] : "");
}

/* Says on standard error what keeps a comparison from being judged. */
static void explain_status(const struct comparison *comparison)
{
    size_t invalid = count_outcomes(comparison, OUTCOME_INVALID);
    size_t changed = count_outcomes(comparison, OUTCOME_WORK_CHANGED);
    if (comparison->count == 0)
        refuse("cannot judge: there is nothing to compare (no row, or no case that --filter takes)");
    else if (comparison->common == 0 && comparison->other_flushes > 0)
        explain_flushes(comparison);
    else if (comparison->common == 0)
        refuse("cannot judge: no case is on both sides");
    else if (invalid + changed > 0)
        complain("cannot judge %zu case%s: %zu with invalid values, %zu whose work changed", invalid + changed,
                 invalid + changed == 1 ? "" : "s", invalid, changed);
    else
        refuse("cannot judge: no case is ok on both sides and has a value");
}

static void write_csv(FILE *out, const void *what)
{
    report_csv(out, what);
}

/* For programs, beside the report for whoever reads it. */
static int write_verdicts(const struct options *options, int status, const struct comparison *comparison)
{
    struct options to_file = *options;
    to_file.output = options->verdicts;
    return options->verdicts ? write_output(&to_file, status, write_csv, comparison) : status;
}

static int finish_comparison(const struct options *options, const struct comparison *comparison)
{
    if (comparison->device_row && !options->settings.ignore_device)
        return refuse_device(comparison);
    int status = comparison_status(comparison);
    if (status == EXIT_CANNOT_JUDGE)
        explain_status(comparison);
    if (comparison->count == 0)
        return status;
    status = write_verdicts(options, status, comparison);
    struct written_comparison written = {comparison, options};
    if (options->format == FORMAT_CSV || options->format == FORMAT_JSON)
        print_notes(stderr, comparison, &plain_style, "gpubench-compare: ");
    return write_output(options, status, write_comparison, &written);
}

static int run_comparison(const struct options *options, const struct settings *settings,
                          const struct catalogue *catalogue, const struct results *baseline,
                          const struct results *current)
{
    struct comparison comparison;
    bool complete = options->mode == MODE_VARIANTS
                        ? compare_variants(&comparison, settings, catalogue, baseline)
                        : compare_sides(&comparison, settings, catalogue, baseline, current);
    int status = complete ? finish_comparison(options, &comparison) : refuse("not enough memory");
    comparison_free(&comparison);
    return status;
}

struct written_self {
    const struct self_result *result;
    const struct options *options;
    const struct catalogue *catalogue;
};

static void write_self(FILE *out, const void *what)
{
    const struct written_self *written = what;
    report_self(out, written->result, &written->options->settings, written->catalogue, written->options->format);
}

static void refuse_self(const struct options *options, const struct results *results, const struct self_result *result)
{
    const struct row *row = result->invalid;
    if (row)
        complain("cannot judge: %s:%zu: %s", results->paths[row->file], row->line, result->refusal);
    else
        complain("cannot judge '%s': %s", options->baseline.items[0], result->refusal);
}

static int run_self(const struct options *options, const struct settings *settings,
                    const struct catalogue *catalogue, const struct results *results)
{
    struct self_result result;
    int status = EXIT_CANNOT_JUDGE;
    if (!self_compare(&result, settings, catalogue, results)) {
        refuse("not enough memory");
    } else if (result.refusal) {
        refuse_self(options, results, &result);
    } else {
        struct written_self written = {&result, options, catalogue};
        status = write_output(options, self_status(&result), write_self, &written);
    }
    self_free(&result);
    return status;
}

static int refuse_value(const struct settings *settings, const struct results *results, const struct row *row)
{
    complain("cannot judge: %s:%zu: a row that is ok has no %s that a measurement can have",
             results->paths[row->file], row->line, settings->metric->column);
    return EXIT_CANNOT_JUDGE;
}

struct written_cards {
    const struct cards_result *result;
    const struct options *options;
    const struct catalogue *catalogue;
    const struct results *results;
};

static void write_cards(FILE *out, const void *what)
{
    const struct written_cards *written = what;
    report_cards(out, written->result, &written->options->settings, written->catalogue, written->results,
                 written->options->format, written->options->listing.all);
}

static int run_cards(const struct options *options, const struct settings *settings,
                     const struct catalogue *catalogue, const struct results *results)
{
    struct cards_result result;
    struct written_cards written = {&result, options, catalogue, results};
    int status = EXIT_CANNOT_JUDGE;
    if (!find_odd_cards(&result, settings, catalogue, results))
        refuse("not enough memory");
    else if (result.invalid)
        refuse_value(settings, results, result.invalid);
    else if (result.model_count == 0)
        refuse("cannot judge: no ok row that --filter takes has a uuid");
    else
        status = write_output(options, cards_status(&result), write_cards, &written);
    if (!result.invalid && result.model_count > 0 && cards_status(&result) == EXIT_CANNOT_JUDGE)
        refuse("cannot judge: no model has three cards with a case in common");
    cards_free(&result);
    return status;
}

struct written_history {
    const struct history *history;
    const struct options *options;
    const struct catalogue *catalogue;
    const struct results *results;
};

static void write_history(FILE *out, const void *what)
{
    const struct written_history *written = what;
    report_history(out, written->history, &written->options->settings, written->catalogue,
                   written->results, written->options->format, &written->options->listing);
}

static int refuse_mixed(const struct catalogue *catalogue, const struct results *results,
                        const struct row *row)
{
    complain("cannot judge: %s:%zu: column 'device': '%s' is not what its case was measured on before "
             "(--ignore-device takes them together)",
             results->paths[row->file], row->line, intern_text(&catalogue->devices, row->device));
    return EXIT_CANNOT_JUDGE;
}

static int run_history(const struct options *options, const struct settings *settings,
                       const struct catalogue *catalogue, const struct results *results)
{
    struct history history;
    struct written_history written = {&history, options, catalogue, results};
    int status;
    if (!find_history(&history, settings, catalogue, results))
        status = refuse("not enough memory");
    else if (history.invalid)
        status = refuse_value(settings, results, history.invalid);
    else if (history.device_row && !settings->ignore_device)
        status = refuse_mixed(catalogue, results, history.device_row);
    else if (history.case_count == 0)
        status = refuse("cannot judge: no case that --filter takes is ok in two campaigns");
    else
        status = write_output(options, EXIT_FINE, write_history, &written);
    history_free(&history);
    return status;
}

static int run_loaded(const struct options *options, struct settings settings, const struct catalogue *catalogue,
                      struct results *baseline, struct results *current)
{
    struct constants constants;
    if (!settings.keep_constant && !find_constants(&constants, catalogue, baseline, current))
        return refuse("not enough memory");
    if (!settings.keep_constant)
        settings.constants = &constants;
    if (options->mode == MODE_SELF)
        return run_self(options, &settings, catalogue, baseline);
    if (options->mode == MODE_CARDS)
        return run_cards(options, &settings, catalogue, baseline);
    if (options->mode == MODE_HISTORY)
        return run_history(options, &settings, catalogue, baseline);
    return run_comparison(options, &settings, catalogue, baseline, current);
}

/* Whether a case's oldest campaign is rather a's than b's: one that is ok, and the earlier one, of
 * those at the same time the first in the files. What has no time is older than what has. */
static bool is_older(const struct row *a, const struct row *b)
{
    if ((a->status == STATUS_OK) != (b->status == STATUS_OK))
        return a->status == STATUS_OK;
    return a->time_s < b->time_s;
}

/* Keeps, of each case, the rows of its oldest campaign. */
static bool keep_oldest(const struct catalogue *catalogue, struct results *baseline)
{
    size_t cases = catalogue->keys.count, kept = 0;
    struct row *oldest = calloc(cases + 1, sizeof oldest[0]);
    bool *known = calloc(cases + 1, sizeof known[0]);
    bool complete = oldest && known;
    for (size_t i = 0; complete && i < baseline->count; i++) {
        const struct row *row = &baseline->rows[i];
        if (!known[row->case_id] || is_older(row, &oldest[row->case_id]))
            oldest[row->case_id] = *row;
        known[row->case_id] = true;
    }
    for (size_t i = 0; complete && i < baseline->count; i++) {
        const struct row *row = &baseline->rows[i];
        if (oldest[row->case_id].campaign == row->campaign)
            baseline->rows[kept++] = *row;
    }
    if (complete)
        baseline->count = kept;
    free(oldest);
    free(known);
    return complete;
}

/* A name that no column has was taken for a counter of the cases'. */
static int refuse_metric(const struct metric *metric)
{
    complain("--metric: '%.100s' is none of %s, and no row has a counter of that name", metric->column,
             metric_names());
    return EXIT_CANNOT_JUDGE;
}

struct written_kernels {
    const struct kernels *kernels;
    size_t limit;
};

static void write_kernels(FILE *out, const void *what)
{
    const struct written_kernels *written = what;
    if (!kernels_report(out, written->kernels, written->limit))
        refuse("not enough memory");
}

static int run_kernels(const struct options *options, const struct settings *settings)
{
    char error[kernels_error_capacity];
    struct kernels kernels = {0};
    struct written_kernels written = {&kernels, options->listing.limit};
    int status;
    if (!kernels_load(&kernels, 0, options->baseline.items[0], settings->filter, error) ||
        !kernels_load(&kernels, 1, options->current.items[0], settings->filter, error))
        status = refuse(error);
    else if (kernels_common_cases(&kernels) == 0)
        status = refuse("no case is in both files");
    else
        status = write_output(options, EXIT_FINE, write_kernels, &written);
    kernels_free(&kernels);
    return status;
}

static int load_and_run(const struct options *options, const struct settings *settings)
{
    if (options->mode == MODE_RACE)
        return run_race(options, settings, finish_comparison);
    if (options->mode == MODE_KERNELS)
        return run_kernels(options, settings);
    char error[results_error_capacity];
    struct catalogue catalogue = {.metric = settings->metric};
    struct results baseline = {0};
    struct results current = {0};
    int status;
    if (!results_load(&baseline, &catalogue, options->baseline.items, options->baseline.count, error) ||
        !results_load(&current, &catalogue, options->current.items, options->current.count, error))
        status = refuse(error);
    else if (options->oldest && !keep_oldest(&catalogue, &baseline))
        status = refuse("not enough memory");
    else if (settings->metric->is_counter && results_lack_metric(&baseline) &&
             (current.count == 0 || results_lack_metric(&current)))
        status = refuse_metric(settings->metric);
    else if (options->mode == MODE_CHECK)
        status = EXIT_FINE;
    else
        status = run_loaded(options, *settings, &catalogue, &baseline, &current);
    results_free(&baseline);
    results_free(&current);
    catalogue_free(&catalogue);
    return status;
}

static int run_filtered(const struct options *options)
{
    struct settings settings = options->settings;
    if (!options->filter)
        return load_and_run(options, &settings);
    regex_t filter;
    char reason[128];
    int fault = regcomp(&filter, options->filter, REG_EXTENDED | REG_NOSUB);
    if (fault != 0) {
        regerror(fault, &filter, reason, sizeof reason);
        complain("--filter: '%s' is no regular expression: %s", options->filter, reason);
        return EXIT_CANNOT_JUDGE;
    }
    settings.filter = &filter;
    int status = load_and_run(options, &settings);
    regfree(&filter);
    return status;
}

int main(int argc, char **argv)
{
    char error[options_error_capacity];
    struct options options;
    if (!parse_options(&options, argc, (const char *const *)argv, error)) {
        refuse(error);
        fputs("Try gpubench-compare --help.\n", stderr);
        return EXIT_CANNOT_JUDGE;
    }
    if (options.mode == MODE_HELP) {
        print_usage(stdout);
        if (fflush(stdout) == 0 && !ferror(stdout))
            return EXIT_FINE;
        complain("cannot write the help: %s", strerror(errno));
        return EXIT_CANNOT_JUDGE;
    }
    return run_filtered(&options);
}
