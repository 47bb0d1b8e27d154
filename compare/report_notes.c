#include "precise.h"

#include "report_parts.h"

#include <math.h>

enum { most_far_runs = 3, most_short_runs = 3 };

static const double percent = 100.0;

/* Cards of one model differ by less, even in empty kernels. */
static const double far_drift = 0.1;

static void print_far_run(FILE *out, const struct comparison *comparison, const struct style *style,
                          const struct far_run *far)
{
    fprintf(out, "note: a run of %s, %+.1f %% from the median of its case: ",
            far->in_baseline ? "the baseline is left out"
                             : "the current results is far off and counts all the same",
            percent * far->change);
    print_place(out, comparison, style, far->row, far->in_baseline);
    fprintf(out, ": ");
    print_label(out, comparison, &comparison->results[far->result], style->print);
    fprintf(out, "\n");
}

/* How many judged cases of a mode are further than the margin from the baseline,
 * by their medians as measured and without the constant. */
struct beyond {
    size_t cases, measured, without;
};

static struct beyond count_beyond(const struct comparison *comparison, const char *mode)
{
    struct beyond count = {0};
    double margin = log1p(comparison->settings->rule.margin);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct case_result *result = &comparison->results[i];
        if (result->outcome != OUTCOME_JUDGED ||
            comparison->catalogue->cases[result->case_id].parts[KEY_MODE] != mode)
            continue;
        count.cases++;
        count.measured += fabs(result->measured_log_ratio) > margin;
        count.without += fabs(log(result->current_median / result->baseline_median)) > margin;
    }
    return count;
}

static void print_constants(FILE *out, const struct comparison *comparison,
                            const struct style *style, const char *prefix)
{
    const struct constants *constants = comparison->settings->constants;
    for (size_t i = 0; constants && i < constants->count; i++) {
        const struct constant *constant = &constants->of_mode[i];
        struct beyond beyond = count_beyond(comparison, constant->mode);
        fprintf(out, "%snote: mode ", prefix);
        style->print(out, constant->mode);
        fprintf(out,
                ": an empty kernel takes %.2f us in the current results, %.2f us in the baseline: "
                "the host's "
                "constant is taken out of every time; of %zu case%s %zu are beyond %g %% as "
                "measured, %zu without "
                "it (--keep-constant compares as measured)\n",
                constant->current_us, constant->baseline_us, beyond.cases,
                beyond.cases == 1 ? "" : "s", beyond.measured,
                percent * comparison->settings->rule.margin, beyond.without);
    }
}

static void print_drift(FILE *out, const struct comparison *comparison, const char *prefix)
{
    size_t cases = 0;
    size_t far = 0;
    double sum = 0.0;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct case_result *result = &comparison->results[i];
        if (result->outcome != OUTCOME_JUDGED || result->evidence.baseline_campaigns < 2)
            continue;
        cases++;
        sum += result->drift;
        far += fabs(result->drift) > log1p(far_drift);
    }
    double drift = cases ? sum / (double)cases : 0.0;
    if (fabs(drift) > log1p(comparison->settings->rule.margin) || far > 0)
        fprintf(
            out,
            "%swarning: the baseline drifts: its newest campaign takes %+.1f %% against its oldest "
            "(geometric mean of %zu cases), %zu of them moved by more than %g %%; --oldest judges "
            "against "
            "the oldest\n",
            prefix, percent * expm1(drift), cases, far, percent * far_drift);
}

/* What the baseline's campaigns cannot tell, or tell of each other. */
static void print_campaigns(FILE *out, const struct comparison *comparison, const char *prefix)
{
    size_t most = 0;
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->results[i].outcome == OUTCOME_JUDGED &&
            comparison->results[i].evidence.baseline_runs > 1 &&
            comparison->results[i].evidence.baseline_campaigns > most)
            most = comparison->results[i].evidence.baseline_campaigns;
    if (comparison->of_variants)
        return;
    if (most == 1 || most == 2)
        fprintf(out,
                "%snote: the baseline holds %zu campaign%s: how much another sitting or card moves "
                "a case is not known from it; slower and faster count a spread of %g %% for it\n",
                prefix, most, most == 1 ? "" : "s",
                percent * comparison->settings->rule.campaign_spread);
    if (comparison->suites > 1)
        fprintf(out,
                "%snote: each of the %zu suites is judged by itself, with its own chance of a "
                "false alarm\n",
                prefix, comparison->suites);
    print_drift(out, comparison, prefix);
}

/* A file that was cut at a row's end has runs without some cases. */
static void print_short_runs(FILE *out, const struct comparison *comparison,
                             const struct style *style, const struct results *side,
                             const char *prefix)
{
    size_t printed = 0;
    for (size_t i = 0; i < side->run_count && printed < most_short_runs; i++) {
        const struct process_run *run = &side->runs[i];
        if (run->rows == run->most_rows)
            continue;
        printed++;
        fprintf(out, "%swarning: ", prefix);
        style->print_path(out, side->paths[run->file]);
        fprintf(out, ":%zu: run %llu of campaign '", run->line, (unsigned long long)run->run);
        style->print(out, intern_text(&comparison->catalogue->campaigns, run->campaign));
        fprintf(out,
                "' ends after %zu of the %zu rows that another run of its campaign has: was the "
                "file cut?\n",
                run->rows, run->most_rows);
    }
}

static void print_provenance(FILE *out, const struct comparison *comparison,
                             const struct style *style, const char *prefix)
{
    static const char *const titles[PROVENANCE_COLUMNS] = {
        [PROVENANCE_UUID] = "card",
        [PROVENANCE_DRIVER] = "driver",
        [PROVENANCE_CUDA_RUNTIME] = "CUDA runtime",
        [PROVENANCE_CPU] = "host processor",
        [PROVENANCE_GPUBENCH_VERSION] = "gpubench.h",
        [PROVENANCE_SETTINGS] = "settings",
    };
    for (int column = 0; column < PROVENANCE_COLUMNS; column++) {
        const char *other =
            provenance_only_in(comparison->current, comparison->baseline, (enum provenance)column);
        if (!other)
            continue;
        fprintf(out, "%swarning: %s differ%s: current has '", prefix, titles[column],
                column == PROVENANCE_SETTINGS ? "" : "s");
        style->print(out, other);
        fprintf(out, "', the baseline '");
        style->print(out, intern_text(&comparison->baseline->provenance[column], 0));
        fprintf(out, "'\n");
    }
}

void print_notes(FILE *out, const struct comparison *comparison, const struct style *style,
                 const char *prefix)
{
    print_constants(out, comparison, style, prefix);
    if (!comparison->race) /* whose sides share card and sitting */
        print_campaigns(out, comparison, prefix);
    print_short_runs(out, comparison, style, comparison->baseline, prefix);
    if (comparison->current != comparison->baseline)
        print_short_runs(out, comparison, style, comparison->current, prefix);
    print_provenance(out, comparison, style, prefix);
    for (size_t i = 0; i < comparison->far_count && i < most_far_runs; i++) {
        fprintf(out, "%s", prefix);
        print_far_run(out, comparison, style, &comparison->far_runs[i]);
    }
    if (comparison->far_count > most_far_runs)
        fprintf(out, "%snote: and %zu more such runs\n", prefix,
                comparison->far_count - most_far_runs);
}
