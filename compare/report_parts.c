#include "precise.h"

#include "report_parts.h"

#include "label.h"
#include "starved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double percent = 100.0;

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
    case OUTCOME_ELSEWHERE:
    case OUTCOME_NEW:
    case OUTCOME_NEVER_OK:
    case OUTCOME_NOT_APPLICABLE:
        return URGENCY_CALM;
    case OUTCOME_JUDGED:
        break;
    }
    static const enum urgency of_verdict[] = {
        [VERDICT_SAME] = URGENCY_CALM,
        [VERDICT_PASSED] = URGENCY_CALM,
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
        [OUTCOME_ELSEWHERE] = "elsewhere",
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
        [VERDICT_PASSED] = "passed",
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

const struct style plain_style = {print_plain, print_plain};

void print_place(FILE *out, const struct comparison *comparison, const struct style *style,
                 const struct row *row, bool in_baseline)
{
    style->print_path(out, path_of(comparison, row, in_baseline));
    fprintf(out, ":%zu", row->line);
}

static void print_runs(FILE *out, size_t runs, size_t campaigns)
{
    fprintf(out, "%zu run%s", runs, runs == 1 ? "" : "s");
    if (campaigns > 1)
        fprintf(out, " in %zu campaigns", campaigns);
}

static void print_left_out(FILE *out, size_t count, const char *what)
{
    if (count > 0)
        fprintf(out, ", %zu %s%s left out as far from the rest", count, what, count == 1 ? "" : "s");
}

static void print_throttled(FILE *out, const struct case_result *result)
{
    if (result->baseline_throttled + result->current_throttled > 0)
        fprintf(out, "; left out, as the card was throttled: %zu of the baseline's runs, %zu of the current ones",
                result->baseline_throttled, result->current_throttled);
}

/* What decided; the numbers behind it follow. */
static void print_rule_applied(FILE *out, const struct rule *rule, const struct judgement *judgement)
{
    double margin = percent * rule->margin;
    switch (judgement->reason) {
    case REASON_BEYOND_THRESHOLD:
    case REASON_WITHIN_THRESHOLD:
        fprintf(out, "%s the threshold of %g %%, as the baseline's only run does not tell how much runs differ",
                judgement->reason == REASON_BEYOND_THRESHOLD ? "beyond" : "within", percent * rule->threshold);
        break;
    case REASON_BEYOND_MARGIN:
        fprintf(out, "the whole interval is beyond the margin of %g %%", margin);
        break;
    case REASON_WITHIN_MARGIN:
        fprintf(out, "the whole interval is within the margin of %g %%", margin);
        break;
    case REASON_ACROSS_MARGIN:
        fprintf(out, "the interval holds changes within and beyond the margin of %g %%", margin);
        break;
    case REASON_ONE_AMONG_MANY:
        fprintf(out, "beyond the margin of %g %%, but among %zu cases one may get there by chance", margin,
                judgement->family);
        break;
    case REASON_FEW_CAMPAIGNS:
        fprintf(out, "beyond the margin of %g %%, but another card or sitting may do that, of which the baseline "
                     "has too few to tell", margin);
        break;
    case REASON_FEW_PAIRS:
        fprintf(out, "too few pairs to judge by");
        break;
    case REASON_FEW_RUNS:
        fprintf(out, "a few far runs make the change: the median run is within the margin of %g %%", margin);
        break;
    }
}

static void print_judged_reason(FILE *out, const struct rule *rule, const struct case_result *result)
{
    const struct evidence *evidence = &result->evidence;
    const struct judgement *judgement = &result->judgement;
    print_rule_applied(out, rule, judgement);
    if (judgement->reason == REASON_BEYOND_THRESHOLD || judgement->reason == REASON_WITHIN_THRESHOLD) {
        print_throttled(out, result);
        return;
    }
    if (judgement->reason != REASON_FEW_PAIRS)
        fprintf(out, "; %s differ by %.2g %%", evidence->paired ? "pairs" : "runs", percent * judgement->run_spread);
    if (evidence->paired) {
        fprintf(out, "; %zu pair%s", evidence->baseline_runs, evidence->baseline_runs == 1 ? "" : "s");
        print_left_out(out, evidence->baseline_outside, "pair");
        print_throttled(out, result);
        return;
    }
    if (evidence->campaigns_counted)
        fprintf(out, ", campaigns by %.2g %%", percent * judgement->campaign_spread);
    fprintf(out, "; ");
    print_runs(out, evidence->baseline_runs, evidence->baseline_campaigns);
    fprintf(out, " against ");
    print_runs(out, evidence->current_runs, evidence->current_campaigns);
    print_left_out(out, evidence->baseline_outside, "run");
    print_throttled(out, result);
}

static void print_seed(FILE *out, const struct comparison *comparison, const struct style *style,
                       const struct row *row)
{
    fputs(row->seed == INTERN_NONE ? "no seed" : "seed ", out);
    if (row->seed != INTERN_NONE)
        style->print(out, intern_text(&comparison->catalogue->seeds, row->seed));
}

/* Of rows of one seed that differ, or where no seed is on both sides. */
static void print_other_work(FILE *out, const struct comparison *comparison,
                             const struct style *style, const struct problem *problem)
{
    fprintf(out, ": other bytes or flops than ");
    if (problem->in_baseline == problem->than_in_baseline)
        print_place(out, comparison, style, problem->than, problem->than_in_baseline);
    else
        fprintf(out, "in the baseline");
    if (problem->row->seed == problem->than->seed) {
        fprintf(out, ", so the times do not compare");
        return;
    }
    fprintf(out, ", which has ");
    print_seed(out, comparison, style, problem->than);
    fprintf(out, " where this row has ");
    print_seed(out, comparison, style, problem->row);
    fprintf(out, ": without a seed that both sides have, nobody can tell other work from another draw");
    if (problem->than->seed != INTERN_NONE) {
        fprintf(out, " (--seed ");
        style->print(out, intern_text(&comparison->catalogue->seeds, problem->than->seed));
        fprintf(out, " measures what compares)");
    }
}

/* Of a case that was not judged, because of its row. */
static void print_problem(FILE *out, const struct comparison *comparison, const struct style *style,
                          const struct case_result *result)
{
    const struct row *row = result->problem.row;
    const char *column = comparison->settings->metric->column;
    if (result->outcome == OUTCOME_INVALID && isnan(row->value))
        fprintf(out, ": status ok, but no %s", column);
    else if (result->outcome == OUTCOME_INVALID)
        fprintf(out, ": %s cannot be %g", column, row->value);
    else if (result->outcome == OUTCOME_BELOW_CONSTANT)
        fprintf(out, ": of its %g us nothing is left without the %.2f us that an empty kernel takes longer on its "
                     "host (--keep-constant compares as measured)",
                (double)row->time_us, (double)row->shift_us);
    else if (result->outcome == OUTCOME_THROTTLED)
        fprintf(out, ": the card was throttled in every run of %s (by more than its power cap), so they tell nothing",
                result->problem.in_baseline ? "the baseline" : "the current results");
    else if (result->outcome == OUTCOME_WORK_CHANGED)
        print_other_work(out, comparison, style, &result->problem);
    else
        fprintf(out, ": status %s%s", status_names[row->status],
                result->outcome == OUTCOME_ELSEWHERE ? ", as it needs more GPUs than the host has" : "");
}

void print_reason(FILE *out, const struct comparison *comparison, const struct style *style,
                  const struct case_result *result)
{
    const struct row *row = result->problem.row;
    if (result->outcome == OUTCOME_JUDGED) {
        print_judged_reason(out, &comparison->settings->rule, result);
    } else if (result->other_flush) {
        fprintf(out, "%s measured this case behind another flush of the caches only: mode ",
                result->outcome == OUTCOME_NEW ? "the baseline" : "the current results");
        style->print(out, result->other_flush);
    } else if (result->outcome == OUTCOME_NEW) {
        fprintf(out, "the baseline has no such case");
    } else if (result->outcome == OUTCOME_NOT_APPLICABLE) {
        fprintf(out, "the case has no %s", comparison->settings->metric->column);
    } else if (!row && result->outcome == OUTCOME_ELSEWHERE) {
        fprintf(out, "the current results are of another number of GPUs or ranks");
    } else if (!row) {
        fprintf(out, "the current results have no such case");
    } else {
        print_place(out, comparison, style, row, result->problem.in_baseline);
        print_problem(out, comparison, style, result);
    }
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
    print_count(out, count_verdicts(c, VERDICT_PASSED), "passed the screen", &separator);
    print_count(out, count_verdicts(c, VERDICT_INCONCLUSIVE) + count_outcomes(c, OUTCOME_BELOW_CONSTANT) +
                    count_outcomes(c, OUTCOME_THROTTLED),
                "inconclusive", &separator);
    print_count(out, count_outcomes(c, OUTCOME_NOT_OK), c->of_variants ? "not ok" : "no longer ok", &separator);
    print_count(out, count_outcomes(c, OUTCOME_MISSING), "missing in current", &separator);
    print_count(out, count_outcomes(c, OUTCOME_ELSEWHERE), "of other hosts", &separator);
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

bool is_news(const struct case_result *result)
{
    return !is_inconclusive(result) && !is_unchanged(result);
}

bool is_inconclusive(const struct case_result *result)
{
    return result->outcome == OUTCOME_BELOW_CONSTANT || result->outcome == OUTCOME_THROTTLED ||
           (result->outcome == OUTCOME_JUDGED && result->judgement.verdict == VERDICT_INCONCLUSIVE);
}

bool is_unchanged(const struct case_result *result)
{
    return result->outcome == OUTCOME_NEVER_OK || result->outcome == OUTCOME_NOT_APPLICABLE ||
           result->outcome == OUTCOME_ELSEWHERE ||
           (result->outcome == OUTCOME_JUDGED && (result->judgement.verdict == VERDICT_SAME ||
                                                  result->judgement.verdict == VERDICT_PASSED));
}

bool is_any(const struct case_result *result)
{
    (void)result;
    return true;
}

const struct case_result **list_cases(const struct comparison *comparison, const struct listing *listing,
                                      bool (*wanted)(const struct case_result *), size_t *count)
{
    const struct case_result **cases = noted(malloc((comparison->count + 1) * sizeof cases[0]));
    *count = 0;
    for (size_t i = 0; cases && i < comparison->count; i++)
        if (wanted(&comparison->results[i]))
            cases[(*count)++] = &comparison->results[i];
    sorting = comparison;
    if (cases && listing->sort != SORT_FILE)
        qsort(cases, *count, sizeof cases[0], listing->sort == SORT_NAME ? by_name : by_change);
    return cases;
}

static void print_mean_change(FILE *out, const struct comparison *comparison)
{
    double *changes = noted(malloc((comparison->count + 1) * sizeof changes[0]));
    const struct rule *rule = &comparison->settings->rule;
    size_t count = 0;
    for (size_t i = 0; changes && i < comparison->count; i++)
        if (comparison->results[i].outcome == OUTCOME_JUDGED)
            changes[count++] = comparison->results[i].judgement.log_ratio;
    if (count > 0)
        fprintf(out, "all cases together: %+.2f %% (above 0 is worse; geometric mean of %zu)", percent * expm1(mean_of(changes, count)),
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

/* The first by name, since a fleet's list would be longer than the rest. */
static void print_hosts(FILE *out, const struct style *style, const struct intern_table *processors)
{
    if (processors->count == 0)
        return;
    fputs(", on ", out);
    style->print(out, intern_text(processors, 0));
    if (processors->count > 1)
        fprintf(out, " and %zu more kinds of host", processors->count - 1);
}

static void print_side(FILE *out, const struct comparison *comparison, const struct style *style,
                       const struct results *side, const char *name)
{
    const struct intern_table *cards = &side->provenance[PROVENANCE_UUID];
    const struct intern_table *devices = &comparison->catalogue->devices;
    fprintf(out, "%s: ", name);
    if (side->count > 0)
        style->print(out, intern_text(devices, side->rows[0].device));
    if (cards->count > 0)
        fprintf(out, ", %zu card%s", cards->count, cards->count == 1 ? "" : "s");
    print_hosts(out, style, &side->provenance[PROVENANCE_CPU]);
    fprintf(out, ", %zu rows of %zu processes\n", side->count, side->run_count);
}

void print_overview(FILE *out, const struct comparison *comparison, const struct style *style,
                    const char *prefix)
{
    fputs(prefix, out);
    print_mean_change(out, comparison);
    fputs(prefix, out);
    print_side(out, comparison, style, comparison->baseline, comparison->of_variants ? "results" : "baseline");
    if (comparison->of_variants)
        return;
    fputs(prefix, out);
    print_side(out, comparison, style, comparison->current, "current");
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
    if (!isfinite(value)) {
        fprintf(out, "%*s", width, "-");
        return;
    }
    int decimals = value == 0.0 ? 0 : 3 - (int)floor(log10(fabs(value)));
    fprintf(out, "%*.*f", width, decimals < 0 ? 0 : decimals > 9 ? 9 : decimals, value);
}

void print_case_label(FILE *out, const struct case_key *key, const char *behind, void (*print)(FILE *, const char *))
{
    char *label = noted(case_label(key, behind));
    print(out, label ? label : "(not enough memory for its name)");
    free(label);
}

void print_label(FILE *out, const struct comparison *comparison, const struct case_result *result,
                 void (*print)(FILE *, const char *))
{
    const struct case_key *cases = comparison->catalogue->cases;
    const char *first = cases[result->baseline_case_id].parts[KEY_VARIANT];
    char *against = comparison->of_variants ? noted(malloc(strlen(first) + sizeof "against ")) : NULL;
    if (against)
        strcat(strcpy(against, "against "), first);
    print_case_label(out, &cases[result->case_id], against, print);
    free(against);
}
