#include "precise.h"

#include "report_parts.h"

#include "label.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { most_far_runs = 3, most_short_runs = 3 };

static const double percent = 100.0;

/* Cards of one model differ by less, even in empty kernels. */
static const double far_drift = 0.1;

enum urgency urgency_of(const struct case_result *result)
{
    switch (result->outcome) {
    case OUTCOME_NOT_OK:
    case OUTCOME_MISSING:
    case OUTCOME_INVALID:
        return URGENCY_BAD;
    case OUTCOME_WORK_CHANGED:
    case OUTCOME_BELOW_CONSTANT:
    case OUTCOME_THROTTLED:
        return URGENCY_UNSURE;
    case OUTCOME_NEW:
    case OUTCOME_NEVER_OK:
    case OUTCOME_NOT_APPLICABLE:
        return URGENCY_CALM;
    case OUTCOME_JUDGED:
        break;
    }
    static const enum urgency of_verdict[] = {
        [VERDICT_SAME] = URGENCY_CALM,
        [VERDICT_INCONCLUSIVE] = URGENCY_UNSURE,
        [VERDICT_FASTER] = URGENCY_GOOD,
        [VERDICT_SLOWER] = URGENCY_BAD,
    };
    return of_verdict[result->judgement.verdict];
}

const char *verdict_word(const struct case_result *result)
{
    static const char *const of_outcome[] = {
        [OUTCOME_JUDGED] = "",
        [OUTCOME_NOT_OK] = "not ok",
        [OUTCOME_MISSING] = "missing",
        [OUTCOME_INVALID] = "invalid",
        [OUTCOME_WORK_CHANGED] = "work changed",
        [OUTCOME_BELOW_CONSTANT] = "inconclusive",
        [OUTCOME_THROTTLED] = "inconclusive",
        [OUTCOME_NEW] = "new",
        [OUTCOME_NEVER_OK] = "never ok",
        [OUTCOME_NOT_APPLICABLE] = "no value",
    };
    static const char *const of_verdict[] = {
        [VERDICT_SAME] = "same",
        [VERDICT_INCONCLUSIVE] = "inconclusive",
        [VERDICT_FASTER] = "FASTER",
        [VERDICT_SLOWER] = "SLOWER",
    };
    return result->outcome == OUTCOME_JUDGED ? of_verdict[result->judgement.verdict] : of_outcome[result->outcome];
}

static const char *path_of(const struct comparison *comparison, const struct row *row, bool in_baseline)
{
    const struct results *side = in_baseline ? comparison->baseline : comparison->current;
    return side->paths[row->file];
}

static void print_place(FILE *out, const struct comparison *comparison, const struct row *row, bool in_baseline)
{
    print_plain(out, path_of(comparison, row, in_baseline));
    fprintf(out, ":%zu", row->line);
}

static void print_runs(FILE *out, size_t runs, size_t campaigns)
{
    fprintf(out, "%zu run%s", runs, runs == 1 ? "" : "s");
    if (campaigns > 1)
        fprintf(out, " in %zu campaigns", campaigns);
}

static void print_pairs(FILE *out, const struct evidence *evidence, const struct judgement *judgement)
{
    fprintf(out, "spread %.2g %% between pairs; %zu pairs", percent * judgement->run_spread, evidence->baseline_runs);
    if (evidence->baseline_outside > 0)
        fprintf(out, ", %zu left out", evidence->baseline_outside);
}

static void print_spread(FILE *out, const struct evidence *evidence, const struct judgement *judgement)
{
    fprintf(out, "spread %.2g %% between runs", percent * judgement->run_spread);
    if (evidence->campaigns_counted)
        fprintf(out, ", %.2g %% between campaigns", percent * judgement->campaign_spread);
}

static void print_throttled(FILE *out, const struct case_result *result)
{
    if (result->baseline_throttled + result->current_throttled > 0)
        fprintf(out, "; throttled and left out: %zu of the baseline's, %zu of the current ones", result->baseline_throttled,
                result->current_throttled);
}

static void print_judged_reason(FILE *out, const struct rule *rule, const struct case_result *result)
{
    const struct evidence *evidence = &result->evidence;
    const struct judgement *judgement = &result->judgement;
    switch (judgement->reason) {
    case REASON_BEYOND_THRESHOLD:
    case REASON_WITHIN_THRESHOLD:
        fprintf(out, "%s the plain threshold of %g %%: the baseline has one run, so its noise is unknown",
                judgement->reason == REASON_BEYOND_THRESHOLD ? "beyond" : "within", percent * rule->threshold);
        print_throttled(out, result);
        return;
    case REASON_BEYOND_MARGIN:
        fprintf(out, "all of the interval is beyond the margin");
        break;
    case REASON_WITHIN_MARGIN:
        fprintf(out, "all of the interval is within the margin");
        break;
    case REASON_ACROSS_MARGIN:
        fprintf(out, "the interval reaches across the margin");
        break;
    case REASON_ONE_AMONG_MANY:
        fprintf(out, "beyond the margin, but not surely so among %zu cases", judgement->family);
        break;
    case REASON_FEW_RUNS:
        fprintf(out, "a few far runs make the change, the median run is within the margin");
        break;
    case REASON_FEW_CAMPAIGNS:
        fprintf(out, "beyond the margin, but another card or sitting may do that, of which the baseline has %zu",
                evidence->baseline_campaigns);
        break;
    }
    fprintf(out, "; ");
    if (evidence->paired) {
        print_pairs(out, evidence, judgement);
        print_throttled(out, result);
        return;
    }
    print_spread(out, evidence, judgement);
    fprintf(out, "; ");
    print_runs(out, evidence->baseline_runs, evidence->baseline_campaigns);
    fprintf(out, " against ");
    print_runs(out, evidence->current_runs, evidence->current_campaigns);
    if (evidence->baseline_outside > 0)
        fprintf(out, ", %zu left out", evidence->baseline_outside);
    print_throttled(out, result);
}

void print_reason(FILE *out, const struct comparison *comparison, const struct case_result *result)
{
    const struct row *row = result->problem.row;
    if (result->outcome == OUTCOME_JUDGED)
        print_judged_reason(out, &comparison->settings->rule, result);
    else if (result->other_flush)
        fprintf(out, "%s has it behind another flush: mode %s",
                result->outcome == OUTCOME_NEW ? "the baseline" : "current", result->other_flush);
    else if (result->outcome == OUTCOME_NEW)
        fprintf(out, "nothing in the baseline to compare with");
    else if (result->outcome == OUTCOME_NOT_APPLICABLE)
        fprintf(out, "the case has no %s", comparison->settings->metric->column);
    else if (!row)
        fprintf(out, "not in the current results");
    else
        print_place(out, comparison, row, result->problem.in_baseline);

    if (row && result->outcome == OUTCOME_INVALID && isnan(row->value))
        fprintf(out, ": status ok without a %s", comparison->settings->metric->column);
    else if (row && result->outcome == OUTCOME_INVALID)
        fprintf(out, ": %s cannot be %g", comparison->settings->metric->column, row->value);
    else if (row && result->outcome == OUTCOME_BELOW_CONSTANT)
        fprintf(out, ": %g us leave nothing when %.2f us of the host's constant are taken out (--keep-constant)",
                (double)row->time_us, (double)row->shift_us);
    else if (row && result->outcome == OUTCOME_THROTTLED)
        fprintf(out, ": every run of %s was throttled (by more than the power cap), which is no evidence",
                result->problem.in_baseline ? "the baseline" : "current");
    else if (row && result->outcome == OUTCOME_WORK_CHANGED)
        fprintf(out, ": other bytes or flops than before, so the times do not compare");
    else if (row)
        fprintf(out, ": status %s", status_names[row->status]);
}

static void print_count(FILE *out, size_t count, const char *what, const char **separator)
{
    if (count == 0)
        return;
    fprintf(out, "%s%zu %s", *separator, count, what);
    *separator = ", ";
}

void print_summary(FILE *out, const struct comparison *c)
{
    const char *separator = ": ";
    fprintf(out, "%zu case%s", c->count, c->count == 1 ? "" : "s");
    print_count(out, count_verdicts(c, VERDICT_SLOWER), "slower", &separator);
    print_count(out, count_verdicts(c, VERDICT_FASTER), "faster", &separator);
    print_count(out, count_verdicts(c, VERDICT_SAME), "same", &separator);
    print_count(out, count_verdicts(c, VERDICT_INCONCLUSIVE) + count_outcomes(c, OUTCOME_BELOW_CONSTANT) +
                    count_outcomes(c, OUTCOME_THROTTLED),
                "inconclusive", &separator);
    print_count(out, count_outcomes(c, OUTCOME_NOT_OK), c->of_variants ? "not ok" : "no longer ok", &separator);
    print_count(out, count_outcomes(c, OUTCOME_MISSING), "missing in current", &separator);
    print_count(out, count_outcomes(c, OUTCOME_INVALID), "with invalid values", &separator);
    print_count(out, count_outcomes(c, OUTCOME_WORK_CHANGED), "whose work changed", &separator);
    print_count(out, count_outcomes(c, OUTCOME_NEW), "new in current", &separator);
    print_count(out, count_outcomes(c, OUTCOME_NEVER_OK), "ok on neither side", &separator);
    print_count(out, count_outcomes(c, OUTCOME_NOT_APPLICABLE), "without this metric", &separator);
}

static const struct comparison *sorting; /* qsort takes no context */

static int by_change(const void *left, const void *right)
{
    const struct case_result *a = *(const struct case_result *const *)left;
    const struct case_result *b = *(const struct case_result *const *)right;
    bool a_judged = a->outcome == OUTCOME_JUDGED;
    bool b_judged = b->outcome == OUTCOME_JUDGED;
    if (urgency_of(a) != urgency_of(b))
        return (int)urgency_of(a) - (int)urgency_of(b);
    if (a_judged != b_judged)
        return a_judged ? 1 : -1;
    double a_size = a_judged ? fabs(a->judgement.log_ratio) : 0.0;
    double b_size = b_judged ? fabs(b->judgement.log_ratio) : 0.0;
    if (a_size != b_size)
        return a_size > b_size ? -1 : 1;
    return (a > b) - (a < b);
}

static int by_name(const void *left, const void *right)
{
    const struct case_result *a = *(const struct case_result *const *)left;
    const struct case_result *b = *(const struct case_result *const *)right;
    for (int part = 0; part < KEY_PARTS; part++) {
        int order = strcmp(sorting->catalogue->cases[a->case_id].parts[part],
                           sorting->catalogue->cases[b->case_id].parts[part]);
        if (order != 0)
            return order;
    }
    return 0;
}

const struct case_result **list_cases(const struct comparison *comparison, const struct listing *listing,
                                      enum urgency from, enum urgency to, size_t *count)
{
    const struct case_result **cases = malloc((comparison->count + 1) * sizeof cases[0]);
    *count = 0;
    for (size_t i = 0; cases && i < comparison->count; i++)
        if (urgency_of(&comparison->results[i]) >= from && urgency_of(&comparison->results[i]) <= to)
            cases[(*count)++] = &comparison->results[i];
    sorting = comparison;
    if (cases && listing->sort != SORT_FILE)
        qsort(cases, *count, sizeof cases[0], listing->sort == SORT_NAME ? by_name : by_change);
    return cases;
}

static void print_mean_change(FILE *out, const struct comparison *comparison)
{
    double *changes = malloc((comparison->count + 1) * sizeof changes[0]);
    const struct rule *rule = &comparison->settings->rule;
    size_t count = 0;
    for (size_t i = 0; changes && i < comparison->count; i++)
        if (comparison->results[i].outcome == OUTCOME_JUDGED)
            changes[count++] = comparison->results[i].judgement.log_ratio;
    if (count > 0)
        fprintf(out, "all cases together: cost %+.2f %% (geometric mean of %zu)", percent * expm1(mean_of(changes, count)),
                count);
    if (count > 1) {
        double error = sqrt(squares_about_mean(changes, count) / (double)(count - 1) / (double)count);
        double reach = error * student_quantile(1.0 - rule->confidence, (double)(count - 1));
        fprintf(out, ", %g %% interval over cases [%+.2f, %+.2f]", interval_level(rule),
                percent * expm1(mean_of(changes, count) - reach), percent * expm1(mean_of(changes, count) + reach));
    }
    if (count > 0)
        putc('\n', out);
    free(changes);
}

static void print_side(FILE *out, const struct comparison *comparison, const struct results *side, const char *name)
{
    const struct intern_table *cards = &side->provenance[PROVENANCE_UUID];
    const struct intern_table *devices = &comparison->catalogue->devices;
    fprintf(out, "%s: ", name);
    if (side->count > 0)
        print_plain(out, intern_text(devices, side->rows[0].device));
    if (cards->count > 0)
        fprintf(out, ", %zu card%s", cards->count, cards->count == 1 ? "" : "s");
    fprintf(out, ", %zu rows of %zu processes\n", side->count, side->run_count);
}

void print_overview(FILE *out, const struct comparison *comparison, const char *prefix)
{
    fputs(prefix, out);
    print_mean_change(out, comparison);
    fputs(prefix, out);
    print_side(out, comparison, comparison->baseline, comparison->of_variants ? "results" : "baseline");
    if (comparison->of_variants)
        return;
    fputs(prefix, out);
    print_side(out, comparison, comparison->current, "current");
}

static void print_far_run(FILE *out, const struct comparison *comparison, const struct far_run *far)
{
    fprintf(out, far->in_baseline ? "left out of the baseline: " : "far from its side, counted all the same: ");
    print_place(out, comparison, far->row, far->in_baseline);
    fprintf(out, ", %+.1f %% off the median: ", percent * far->change);
    print_label(out, comparison, &comparison->results[far->result], print_plain);
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
        if (result->outcome != OUTCOME_JUDGED || comparison->catalogue->cases[result->case_id].parts[KEY_MODE] != mode)
            continue;
        count.cases++;
        count.measured += fabs(result->measured_log_ratio) > margin;
        count.without += fabs(log(result->current_median / result->baseline_median)) > margin;
    }
    return count;
}

static void print_constants(FILE *out, const struct comparison *comparison, const char *prefix)
{
    const struct constants *constants = comparison->settings->constants;
    for (size_t i = 0; constants && i < constants->count; i++) {
        const struct constant *constant = &constants->of_mode[i];
        struct beyond beyond = count_beyond(comparison, constant->mode);
        fprintf(out, "%sthe host's constant is taken out of mode ", prefix);
        print_plain(out, constant->mode);
        fprintf(out, ": an empty kernel takes %.2f us in the current results, %.2f us in the baseline; %zu case%s: "
                     "%zu beyond %g %% as measured, %zu without it (--keep-constant compares as measured)\n",
                constant->current_us, constant->baseline_us, beyond.cases, beyond.cases == 1 ? "" : "s", beyond.measured,
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
        fprintf(out, "%swarning: the baseline drifts: its newest campaign takes %+.1f %% against its oldest "
                     "(geometric mean of %zu cases), %zu of them moved by more than %g %%; --oldest judges against "
                     "the oldest\n",
                prefix, percent * expm1(drift), cases, far, percent * far_drift);
}

/* What the baseline's campaigns cannot tell, or tell of each other. */
static void print_campaigns(FILE *out, const struct comparison *comparison, const char *prefix)
{
    size_t most = 0;
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->results[i].outcome == OUTCOME_JUDGED && comparison->results[i].evidence.baseline_runs > 1 &&
            comparison->results[i].evidence.baseline_campaigns > most)
            most = comparison->results[i].evidence.baseline_campaigns;
    if (comparison->of_variants)
        return;
    if (most == 1 || most == 2)
        fprintf(out, "%snote: the baseline holds %zu campaign%s: what another card or sitting does to a case is not "
                     "known from it; slower and faster count a spread of %g %% for it, the intervals none\n",
                prefix, most, most == 1 ? "" : "s", percent * comparison->settings->rule.campaign_spread);
    if (comparison->suites > 1)
        fprintf(out, "%snote: each of the %zu suites is judged by itself, with its own chance of a false alarm\n", prefix,
                comparison->suites);
    print_drift(out, comparison, prefix);
}

/* A file that was cut at a row's end has runs without some cases. */
static void print_short_runs(FILE *out, const struct comparison *comparison, const struct results *side,
                             const char *prefix)
{
    size_t printed = 0;
    for (size_t i = 0; i < side->run_count && printed < most_short_runs; i++) {
        const struct process_run *run = &side->runs[i];
        if (run->rows == run->most_rows)
            continue;
        printed++;
        fprintf(out, "%swarning: ", prefix);
        print_plain(out, side->paths[run->file]);
        fprintf(out, ":%zu: run %llu of campaign '", run->line, (unsigned long long)run->run);
        print_plain(out, intern_text(&comparison->catalogue->campaigns, run->campaign));
        fprintf(out, "' ends after %zu of the %zu rows that another run of its campaign has: was the file cut?\n",
                run->rows, run->most_rows);
    }
}

void print_notes(FILE *out, const struct comparison *comparison, const char *prefix)
{
    print_constants(out, comparison, prefix);
    if (!comparison->race) /* whose sides share card and sitting */
        print_campaigns(out, comparison, prefix);
    print_short_runs(out, comparison, comparison->baseline, prefix);
    if (comparison->current != comparison->baseline)
        print_short_runs(out, comparison, comparison->current, prefix);
    for (int column = 0; column < PROVENANCE_COLUMNS; column++) {
        const char *other = provenance_only_in(comparison->current, comparison->baseline, (enum provenance)column);
        if (!other)
            continue;
        fprintf(out, "%swarning: %s differ%s: current has '", prefix, provenance_column_names[column],
                column == PROVENANCE_SETTINGS ? "" : "s");
        print_plain(out, other);
        fprintf(out, "', the baseline '");
        print_plain(out, intern_text(&comparison->baseline->provenance[column], 0));
        fprintf(out, "'\n");
    }
    for (size_t i = 0; i < comparison->far_count && i < most_far_runs; i++) {
        fprintf(out, "%s", prefix);
        print_far_run(out, comparison, &comparison->far_runs[i]);
    }
    if (comparison->far_count > most_far_runs)
        fprintf(out, "%sand %zu more such runs\n", prefix, comparison->far_count - most_far_runs);
}

double interval_level(const struct rule *rule)
{
    return percent * (2.0 * rule->confidence - 1.0);
}

void print_rule(FILE *out, const struct settings *settings)
{
    const struct rule *rule = &settings->rule;
    fprintf(out, "%s; margin %g %%; each bound of a %g %% interval holds with %g %% confidence; false alarms %g %%",
            settings->metric->column, percent * rule->margin, interval_level(rule), percent * rule->confidence,
            percent * rule->false_alarms);
}

void print_value(FILE *out, int width, double value)
{
    if (isnan(value)) {
        fprintf(out, "%*s", width, "-");
        return;
    }
    int decimals = 3 - (int)floor(log10(fabs(value)));
    fprintf(out, "%*.*f", width, decimals < 0 ? 0 : decimals > 9 ? 9 : decimals, value);
}

void print_case_label(FILE *out, const struct case_key *key, const char *behind, void (*print)(FILE *, const char *))
{
    char *label = case_label(key, behind);
    print(out, label ? label : "(not enough memory for its name)");
    free(label);
}

void print_label(FILE *out, const struct comparison *comparison, const struct case_result *result,
                 void (*print)(FILE *, const char *))
{
    const struct case_key *cases = comparison->catalogue->cases;
    const char *first = cases[result->baseline_case_id].parts[KEY_VARIANT];
    char *against = comparison->of_variants ? malloc(strlen(first) + sizeof "against ") : NULL;
    if (against)
        strcat(strcpy(against, "against "), first);
    print_case_label(out, &cases[result->case_id], against, print);
    free(against);
}
