#include "precise.h"

#include "kernels.h"

#include "csv.h"
#include "label.h"
#include "number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the columns stand. */
enum column { SCHEMA, SUITE, CASE, VARIANT, BACKEND, DTYPE, PARAMS, KIND, NAME, LAUNCHES, TOTAL_US, COLUMNS };

static const char *const column_names[COLUMNS] = {"kernels_schema", "suite", "case",   "variant",
                                                  "backend",        "dtype", "params", "kind",
                                                  "name",           "launches", "total_us"};

struct kernels_file {
    struct csv_reader reader;
    int columns[COLUMNS];
    char *error;
};

static bool refuse_file(const struct kernels_file *file, const char *what)
{
    snprintf(file->error, kernels_error_capacity, "%s:%zu: %s", file->reader.path, file->reader.record_line, what);
    return false;
}

static const char *field(const struct kernels_file *file, enum column column)
{
    return file->reader.fields[file->columns[column]];
}

static bool find_columns(struct kernels_file *file)
{
    for (int i = 0; i < COLUMNS; i++) {
        file->columns[i] = csv_column(&file->reader, column_names[i]);
        if (file->columns[i] < 0) {
            snprintf(file->error, kernels_error_capacity, "%s: no column '%s': is it a file of --kernels-csv?",
                     file->reader.path, column_names[i]);
            return false;
        }
    }
    return true;
}

/* The words from SUITE to PARAMS, or KIND to NAME, as one text that the caller frees. */
static char *join(const struct kernels_file *file, int from, int to)
{
    size_t bytes = 1;
    for (int i = from; i <= to; i++)
        bytes += strlen(field(file, (enum column)i)) + 1;
    char *text = calloc(bytes, 1);
    for (int i = from; text && i <= to; i++) {
        const char *word = field(file, (enum column)i);
        if (*word && *text)
            strcat(text, " ");
        strcat(text, word);
    }
    return text;
}

/* The kernel of this case and name, made if it is new; NULL when memory ran out. */
static struct kernel *find_kernel(struct kernels *kernels, const char *case_name, const char *name)
{
    uint32_t pair[2] = {intern_add(&kernels->cases, case_name, strlen(case_name), NULL),
                        intern_add(&kernels->names, name, strlen(name), NULL)};
    bool is_new = false;
    if (pair[0] == INTERN_NONE || pair[1] == INTERN_NONE)
        return NULL;
    uint32_t id = intern_add(&kernels->pairs, pair, sizeof pair, &is_new);
    if (id == INTERN_NONE)
        return NULL;
    if (id >= kernels->capacity) {
        size_t capacity = 2 * kernels->capacity + 64;
        struct kernel *larger = realloc(kernels->all, capacity * sizeof larger[0]);
        if (!larger)
            return NULL;
        kernels->all = larger;
        kernels->capacity = capacity;
    }
    if (is_new)
        kernels->all[id] = (struct kernel){.case_id = pair[0], .name_id = pair[1]};
    return &kernels->all[id];
}

static bool add_row(struct kernels *kernels, int side, const struct kernels_file *file, const char *case_name,
                    const char *name)
{
    double us, launches;
    if (strcmp(field(file, SCHEMA), "1") != 0)
        return refuse_file(file, "column 'kernels_schema': this reads schema 1");
    if (!parse_decimal(field(file, TOTAL_US), &us) || us < 0)
        return refuse_file(file, "column 'total_us' holds no time");
    if (!parse_decimal(field(file, LAUNCHES), &launches) || launches < 1)
        return refuse_file(file, "column 'launches' holds no number of them");
    struct kernel *kernel = find_kernel(kernels, case_name, name);
    if (!kernel)
        return refuse_file(file, "not enough memory");
    if (kernel->seen[side])
        return refuse_file(file, "this kernel of this case stands there twice: one file holds one run");
    kernel->seen[side] = true;
    kernel->total_us[side] = us;
    kernel->launches[side] = launches;
    return true;
}

static bool take_record(struct kernels *kernels, int side, const struct kernels_file *file, const regex_t *filter)
{
    char *case_name = join(file, SUITE, PARAMS);
    char *name = join(file, KIND, NAME);
    bool fine = case_name && name;
    if (!fine)
        refuse_file(file, "not enough memory");
    else if (!filter || regexec(filter, case_name, 0, NULL, 0) == 0)
        fine = add_row(kernels, side, file, case_name, name);
    free(case_name);
    free(name);
    return fine;
}

bool kernels_load(struct kernels *kernels, int side, const char *path, const regex_t *filter,
                  char error[kernels_error_capacity])
{
    struct kernels_file file = {.error = error};
    enum csv_outcome outcome = CSV_ERROR;
    bool fine = csv_open(&file.reader, path);
    if (!fine)
        snprintf(error, kernels_error_capacity, "%s", file.reader.error);
    fine = fine && find_columns(&file);
    while (fine && (outcome = csv_next(&file.reader)) == CSV_RECORD)
        fine = take_record(kernels, side, &file, filter);
    if (fine && outcome == CSV_ERROR) {
        snprintf(error, kernels_error_capacity, "%s", file.reader.error);
        fine = false;
    }
    csv_close(&file.reader);
    return fine;
}

/* ---- the report ---- */

struct moved_case {
    uint32_t case_id;
    bool seen[2];
    double total_us[2];
};

static double change(const double total_us[2])
{
    return total_us[1] - total_us[0];
}

/* Sums that are beyond all numbers on both sides have no difference. */
static int more_moved_first(const double left[2], const double right[2])
{
    double a = fabs(change(left));
    double b = fabs(change(right));
    a = isnan(a) ? 0.0 : a;
    b = isnan(b) ? 0.0 : b;
    return (a < b) - (a > b);
}

static int by_change(const void *left, const void *right)
{
    const struct moved_case *a = left;
    const struct moved_case *b = right;
    int order = more_moved_first(a->total_us, b->total_us);
    return order ? order : (a->case_id > b->case_id) - (a->case_id < b->case_id);
}

/* Those of one case together. */
static int kernel_by_case_and_change(const void *left, const void *right)
{
    const struct kernel *a = *(const struct kernel *const *)left;
    const struct kernel *b = *(const struct kernel *const *)right;
    if (a->case_id != b->case_id)
        return a->case_id > b->case_id ? 1 : -1;
    int order = more_moved_first(a->total_us, b->total_us);
    return order ? order : (a->name_id > b->name_id) - (a->name_id < b->name_id);
}

/* Ranges lie inside the run's. */
static bool is_in_sum(const struct kernels *kernels, const struct kernel *kernel)
{
    const char *name = intern_text(&kernels->names, kernel->name_id);
    return strncmp(name, "range ", 6) != 0 || strcmp(name, "range run") == 0;
}

/* Of each case the sums of both sides; NULL when memory ran out. */
static struct moved_case *sum_cases(const struct kernels *kernels)
{
    struct moved_case *cases = calloc(kernels->cases.count + 1, sizeof cases[0]);
    for (size_t i = 0; cases && i < kernels->pairs.count; i++) {
        const struct kernel *kernel = &kernels->all[i];
        struct moved_case *one = &cases[kernel->case_id];
        one->case_id = kernel->case_id;
        for (int side = 0; side < 2; side++) {
            one->seen[side] |= kernel->seen[side];
            if (is_in_sum(kernels, kernel))
                one->total_us[side] += kernel->total_us[side];
        }
    }
    return cases;
}

size_t kernels_common_cases(const struct kernels *kernels)
{
    struct moved_case *cases = sum_cases(kernels);
    size_t count = 0;
    for (size_t i = 0; cases && i < kernels->cases.count; i++)
        count += cases[i].seen[0] && cases[i].seen[1];
    free(cases);
    return count;
}

static void print_times(FILE *out, const double total_us[2], const bool seen[2])
{
    const char *const absent[2] = {"new", "gone"};
    for (int side = 0; side < 2; side++) {
        if (seen[side])
            fprintf(out, " %11.2f", total_us[side]);
        else
            fprintf(out, " %11s", absent[side]);
    }
    fprintf(out, " %+11.2f", change(total_us));
    if (seen[0] && seen[1] && total_us[0] > 0.0)
        fprintf(out, " %+8.1f %%", 100.0 * change(total_us) / total_us[0]);
    else
        fprintf(out, " %10s", "");
}

/* The kernels, case by case, the one that moved most first; behind them NULL. first[case]
 * becomes where a case's begin. */
static const struct kernel **sort_kernels(const struct kernels *kernels, size_t *first)
{
    size_t count = kernels->pairs.count;
    const struct kernel **sorted = malloc((count + 1) * sizeof sorted[0]);
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &kernels->all[i];
    sorted[count] = NULL;
    qsort(sorted, count, sizeof sorted[0], kernel_by_case_and_change);
    for (size_t i = count; i > 0; i--)
        first[sorted[i - 1]->case_id] = i - 1;
    return sorted;
}

/* Those of one case, the first of which is given. */
static void print_kernels(FILE *out, const struct kernels *kernels, const struct kernel *const *sorted)
{
    uint32_t case_id = (*sorted)->case_id;
    for (; *sorted && (*sorted)->case_id == case_id; sorted++) {
        const struct kernel *one = *sorted;
        print_times(out, one->total_us, one->seen);
        fputs("    ", out);
        print_plain(out, intern_text(&kernels->names, one->name_id));
        if (one->seen[0] && one->seen[1] && one->launches[0] != one->launches[1])
            fprintf(out, " (%g launches, %g before)", one->launches[1], one->launches[0]);
        putc('\n', out);
    }
}

bool kernels_report(FILE *out, const struct kernels *kernels, size_t limit)
{
    struct moved_case *cases = sum_cases(kernels);
    size_t count = kernels->cases.count;
    size_t *first = calloc(count + 1, sizeof first[0]);
    const struct kernel **sorted = first ? sort_kernels(kernels, first) : NULL;
    bool fine = cases && sorted;
    if (fine) {
        qsort(cases, count, sizeof cases[0], by_change);
        fputs("One execution on each side: a difference is no verdict, a race gives one (--race).\n\n"
              "     old us      new us      change\n",
              out);
    }
    for (size_t i = 0; fine && i < count && (limit == 0 || i < limit); i++) {
        print_times(out, cases[i].total_us, cases[i].seen);
        fputs("  ", out);
        print_plain(out, intern_text(&kernels->cases, cases[i].case_id));
        putc('\n', out);
        print_kernels(out, kernels, sorted + first[cases[i].case_id]);
    }
    if (fine && limit > 0 && count > limit)
        fprintf(out, "and %zu more cases (--limit 0 lists them)\n", count - limit);
    free(cases);
    free(first);
    free(sorted);
    return fine;
}

void kernels_free(struct kernels *kernels)
{
    intern_free(&kernels->cases);
    intern_free(&kernels->names);
    intern_free(&kernels->pairs);
    free(kernels->all);
    *kernels = (struct kernels){0};
}
