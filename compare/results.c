#include "precise.h"

#include "results.h"

#include "csv.h"
#include "number.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const key_column_names[KEY_PARTS] = {"suite", "case", "variant", "backend", "dtype", "params", "mode"};

const char *const status_names[] = {"ok", "failed", "mismatch", "oom", "unsupported", "skipped"};

const char *const provenance_column_names[PROVENANCE_COLUMNS] = {"uuid", "driver", "cuda_runtime",
                                                                 "cpu", "gpubench_version", "settings"};

const char *const flush_mode_names[FLUSH_MODES] = {"cold", "dirty", "graph", "dirty-graph"};

static const struct metric metrics[] = {
    {.column = "median_us", .unit = "us", .is_time = true},
    {.column = "min_us", .unit = "us", .is_time = true},
    {.column = "mean_us", .unit = "us", .is_time = true},
    {.column = "p95_us", .unit = "us", .is_time = true},
    {.column = "gb_per_s", .unit = "GB/s", .bigger_is_better = true},
    {.column = "tflop_per_s", .unit = "TFLOP/s", .bigger_is_better = true},
};

const struct metric *find_metric(const char *column)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++)
        if (strcmp(metrics[i].column, column) == 0)
            return &metrics[i];
    return NULL;
}

const char *metric_names(void)
{
    return "median_us min_us mean_us p95_us gb_per_s tflop_per_s";
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name);
    size_t end_size = strlen(end);
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

struct metric counter_metric(const char *name)
{
    bool is_rate = ends_with(name, "/s");
    return (struct metric){
        .column = name, .unit = is_rate ? name : "", .bigger_is_better = is_rate, .is_counter = true};
}

/* Where the columns stand in one file; -1 for an optional one it lacks. */
struct columns {
    int schema, campaign, run, status, flags, device, pci, node, git, seed, timestamp, metric, bytes, flops, time, overhead;
    int key[KEY_PARTS];
    int provenance[PROVENANCE_COLUMNS];
};

/* What reading one file needs at hand. */
struct loading {
    struct results *results;
    struct catalogue *catalogue;
    struct csv_reader reader;
    struct columns columns;
    uint32_t file;
    char *error;
    bool *numeric; /* which columns hold a number */
    uint32_t *last_names; /* of each column that holds one, its number in the row before */
    char *key;     /* scratch for joined keys */
    size_t key_capacity;
};

static bool fail(struct loading *loading, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(loading->error, results_error_capacity, format, arguments);
    va_end(arguments);
    return false;
}

static bool no_memory(struct loading *loading)
{
    return fail(loading, "%s: not enough memory", loading->reader.path);
}

/* A fault in one field of the current record. */
static bool fail_field(struct loading *loading, int column, const char *what)
{
    const struct csv_reader *reader = &loading->reader;
    return fail(loading, "%s:%zu: column '%.60s': '%.80s' %s", reader->path, reader->record_line,
                reader->names[column], reader->fields[column], what);
}

static bool need_column(struct loading *loading, const char *name, int *index)
{
    *index = csv_column(&loading->reader, name);
    if (*index >= 0)
        return true;
    return fail(loading, "%s:1: column '%s' is missing; columns are found by name, and a unit is part of the name",
                loading->reader.path, name);
}

static bool find_columns(struct loading *loading)
{
    struct columns *c = &loading->columns;
    const struct metric *metric = loading->catalogue->metric;
    for (int part = 0; part < KEY_PARTS; part++)
        if (!need_column(loading, key_column_names[part], &c->key[part]))
            return false;
    for (int i = 0; i < PROVENANCE_COLUMNS; i++)
        c->provenance[i] = csv_column(&loading->reader, provenance_column_names[i]);
    c->git = csv_column(&loading->reader, "git");
    c->seed = csv_column(&loading->reader, "seed");
    c->timestamp = csv_column(&loading->reader, "timestamp");
    c->pci = csv_column(&loading->reader, "pci");
    c->node = csv_column(&loading->reader, "node");
    c->flags = csv_column(&loading->reader, "flags");
    c->bytes = csv_column(&loading->reader, "bytes");
    c->flops = csv_column(&loading->reader, "flops");
    c->time = csv_column(&loading->reader, "median_us");
    c->overhead = csv_column(&loading->reader, "overhead_us");
    c->metric = csv_column(&loading->reader, "counters"); /* the metric's own, unless it is one of these */
    return need_column(loading, "schema", &c->schema) && need_column(loading, "campaign", &c->campaign) &&
           need_column(loading, "run", &c->run) && need_column(loading, "status", &c->status) &&
           need_column(loading, "device", &c->device) &&
           (metric->is_counter || need_column(loading, metric->column, &c->metric));
}

/* A unit is part of a column's name; the few numbers without one are listed. */
static bool is_numeric(const char *name)
{
    static const char *const units[] = {"_us", "_per_s", "_bytes", "_mhz", "_w", "_mj"};
    static const char *const others[] = {"samples", "batch", "warmup", "bytes", "flops", "max_error", "tolerance"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (ends_with(name, units[i]))
            return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

static bool find_numeric(struct loading *loading)
{
    loading->numeric = calloc(loading->reader.column_count, sizeof loading->numeric[0]);
    loading->last_names = calloc(loading->reader.column_count, sizeof loading->last_names[0]);
    if (!loading->numeric || !loading->last_names)
        return no_memory(loading);
    for (size_t i = 0; i < loading->reader.column_count; i++)
        loading->numeric[i] = is_numeric(loading->reader.names[i]) && (int)i != loading->columns.metric;
    return true;
}

static const char *field(const struct loading *loading, int column)
{
    return loading->reader.fields[column];
}

/* Room for so many bytes in loading->key. */
static bool make_room(struct loading *loading, size_t needed)
{
    if (needed <= loading->key_capacity)
        return true;
    char *larger = realloc(loading->key, 2 * needed);
    if (!larger)
        return no_memory(loading);
    loading->key = larger;
    loading->key_capacity = 2 * needed;
    return true;
}

/* Joins the key's parts, with their lengths in front so that no two keys join
 * alike, into loading->key. without leaves one part out; -1 leaves none. */
static bool join_key(struct loading *loading, int without, size_t *size)
{
    size_t lengths[KEY_PARTS] = {0};
    size_t needed = sizeof lengths;
    for (int part = 0; part < KEY_PARTS; part++) {
        if (part != without)
            lengths[part] = strlen(field(loading, loading->columns.key[part]));
        needed += lengths[part];
    }
    if (!make_room(loading, needed))
        return false;
    memcpy(loading->key, lengths, sizeof lengths);
    char *out = loading->key + sizeof lengths;
    for (int part = 0; part < KEY_PARTS; part++) {
        memcpy(out, field(loading, loading->columns.key[part]), lengths[part]);
        out += lengths[part]; /* 0 for the part left out */
    }
    *size = needed;
    return true;
}

static enum flush_mode flush_of(const char *mode)
{
    int flush = 0;
    while (flush < FLUSH_MODES && strcmp(mode, flush_mode_names[flush]) != 0)
        flush++;
    return (enum flush_mode)flush;
}

/* The number of the current record's key without one of its parts. */
static bool add_without(struct loading *loading, int part, struct intern_table *table, uint32_t *id)
{
    size_t size = 0;
    if (!join_key(loading, part, &size))
        return false;
    *id = intern_add(table, loading->key, size, NULL);
    return *id != INTERN_NONE || no_memory(loading);
}

static bool describe_case(struct loading *loading, uint32_t id)
{
    struct catalogue *catalogue = loading->catalogue;
    if (id >= catalogue->case_capacity) {
        size_t capacity = catalogue->case_capacity ? 2 * catalogue->case_capacity : 64;
        struct case_key *larger = realloc(catalogue->cases, capacity * sizeof larger[0]);
        if (!larger)
            return no_memory(loading);
        catalogue->cases = larger;
        catalogue->case_capacity = capacity;
    }
    struct case_key *described = &catalogue->cases[id];
    for (int part = 0; part < KEY_PARTS; part++) {
        const char *text = field(loading, loading->columns.key[part]);
        uint32_t part_id = intern_add(&catalogue->parts, text, strlen(text), NULL);
        if (part_id == INTERN_NONE)
            return no_memory(loading);
        described->parts[part] = intern_text(&catalogue->parts, part_id);
    }
    described->flush = flush_of(described->parts[KEY_MODE]);
    return add_without(loading, KEY_VARIANT, &catalogue->groups, &described->group) &&
           add_without(loading, KEY_MODE, &catalogue->modeless, &described->modeless);
}

static bool read_case(struct loading *loading, uint32_t *id)
{
    if (*field(loading, loading->columns.key[KEY_CASE]) == '\0')
        return fail_field(loading, loading->columns.key[KEY_CASE], "a case without a name");
    size_t size = 0;
    bool is_new = false;
    if (!join_key(loading, -1, &size))
        return false;
    *id = intern_add(&loading->catalogue->keys, loading->key, size, &is_new);
    if (*id == INTERN_NONE)
        return no_memory(loading);
    return !is_new || describe_case(loading, *id);
}

static bool read_status(struct loading *loading, enum status *out)
{
    const char *text = field(loading, loading->columns.status);
    for (int status = STATUS_OK; status <= STATUS_SKIPPED; status++) {
        if (strcmp(text, status_names[status]) == 0) {
            *out = (enum status)status;
            return true;
        }
    }
    return fail_field(loading, loading->columns.status,
                      "is no status; known are ok, failed, mismatch, oom, unsupported and skipped");
}

/* An empty field and a column that the file lacks are NAN. */
static bool read_number(struct loading *loading, int column, double *out)
{
    *out = (double)NAN;
    if (column < 0 || *field(loading, column) == '\0')
        return true;
    return parse_decimal(field(loading, column), out) ||
           fail_field(loading, column, "is not a decimal number with a point");
}

/* Moves *text to behind the spaces in front of it; its size without those at its end. */
static size_t trim(const char **text)
{
    *text += strspn(*text, " ");
    size_t size = strlen(*text);
    while (size > 0 && (*text)[size - 1] == ' ')
        size--;
    return size;
}

/* Most rows have the name that the row before them has: last is what that was. */
static uint32_t intern_trimmed(struct intern_table *table, const char *text, uint32_t *last)
{
    if (*last < table->count && strcmp(intern_text(table, *last), text) == 0)
        return *last;
    size_t size = trim(&text);
    return *last = intern_add(table, text, size, NULL);
}

/* INTERN_NONE for an empty field and a column that the file lacks. */
static bool read_name(struct loading *loading, int column, struct intern_table *table, uint32_t *id)
{
    *id = INTERN_NONE;
    if (column < 0 || *field(loading, column) == '\0')
        return true;
    *id = intern_trimmed(table, field(loading, column), &loading->last_names[column]);
    return *id != INTERN_NONE || no_memory(loading);
}

/* The number that the digits at text make up. */
static int64_t digits_at(const char *text, int count)
{
    int64_t value = 0;
    for (int i = 0; i < count; i++)
        value = 10 * value + (text[i] - '0');
    return value;
}

/* Days from 1970-01-01 in the Gregorian calendar, whose years here begin in March, so
 * that the leap day is the last; years after 1970. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t since_march = (month + 9) % 12;
    int64_t years = year - (month <= 2);
    return 365 * years + years / 4 - years / 100 + years / 400 + (153 * since_march + 2) / 5 + day - 1 - 719468;
}

/* 0 for anything but "2026-11-28T04:39:32Z". */
static int64_t seconds_of(const char *text)
{
    static const char pattern[] = "0000-00-00T00:00:00Z";
    for (size_t i = 0; i < sizeof pattern; i++)
        if (pattern[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
            return 0;
    int64_t days = days_of(digits_at(text, 4), digits_at(text + 5, 2), digits_at(text + 8, 2));
    return 86400 * days + 3600 * digits_at(text + 11, 2) + 60 * digits_at(text + 14, 2) + digits_at(text + 17, 2);
}

/* A campaign is a sitting on one card: the names of those that began in the same second on two
 * cards are alike. The card stands behind the name's NUL, so that the number's text is the name. */
static bool add_campaign(struct loading *loading, const char *name, size_t length, uint32_t card, uint32_t *id)
{
    const char *uuid =
        card == INTERN_NONE ? "" : intern_text(&loading->results->provenance[PROVENANCE_UUID], card);
    size_t uuid_length = strlen(uuid);
    if (!make_room(loading, length + 1 + uuid_length))
        return false;
    memcpy(loading->key, name, length);
    loading->key[length] = '\0';
    memcpy(loading->key + length + 1, uuid, uuid_length);
    *id = intern_add(&loading->catalogue->campaigns, loading->key, length + 1 + uuid_length, NULL);
    return *id != INTERN_NONE || no_memory(loading);
}

/* What scripts/joined.awk makes a campaign of its own is of the same sitting. */
static bool read_campaign(struct loading *loading, struct row *row)
{
    static const char further[] = "-doubtful";
    const char *name = field(loading, loading->columns.campaign);
    size_t length = trim(&name), tail = sizeof further - 1;
    bool is_further = length > tail && memcmp(name + length - tail, further, tail) == 0;
    size_t of_sitting = is_further ? length - tail : length;
    return add_campaign(loading, name, length, row->card, &row->campaign) &&
           add_campaign(loading, name, of_sitting, row->card, &row->sitting);
}

static bool read_origin(struct loading *loading, struct row *row)
{
    const struct columns *c = &loading->columns;
    uint32_t *last = loading->last_names;
    struct catalogue *catalogue = loading->catalogue;
    row->device = intern_trimmed(&catalogue->devices, field(loading, c->device), &last[c->device]);
    if (row->device == INTERN_NONE)
        return no_memory(loading);
    uint32_t ids[PROVENANCE_COLUMNS];
    for (int i = 0; i < PROVENANCE_COLUMNS; i++)
        if (!read_name(loading, c->provenance[i], &loading->results->provenance[i], &ids[i]))
            return false;
    row->card = ids[PROVENANCE_UUID];
    if (!read_campaign(loading, row) || !read_name(loading, c->pci, &loading->results->pcis, &row->pci) ||
        !read_name(loading, c->node, &loading->results->nodes, &row->node) ||
        !read_name(loading, c->git, &loading->results->revisions, &row->revision) ||
        !read_name(loading, c->seed, &catalogue->seeds, &row->seed))
        return false;
    row->time_s = c->timestamp < 0 ? 0 : seconds_of(field(loading, c->timestamp));
    return parse_whole(field(loading, c->run), &row->run) ||
           fail_field(loading, c->run, "is not a run's number");
}

static bool names_a_throttle(const char *flags)
{
    static const char throttle[] = "throttle=";
    static const char power_cap[] = "power-cap";
    while ((flags = strstr(flags, throttle))) {
        flags += sizeof throttle - 1;
        if (strncmp(flags, power_cap, sizeof power_cap - 1) != 0)
            return true;
    }
    return false;
}

/* How long the number is that the text begins with, in digits or a word that suites use. */
static size_t number_size(const char *text)
{
    static const char two[] = "two", more[] = "more";
    if (strncmp(text, two, sizeof two - 1) == 0)
        return sizeof two - 1;
    return strncmp(text, more, sizeof more - 1) == 0 ? sizeof more - 1 : strspn(text, "0123456789");
}

/* reason=needs_two_GPUs: what a suite says of a case that needs more GPUs than the host has. */
static bool names_gpus(const char *flags)
{
    static const char reason[] = "reason=needs_", gpus[] = "_GPUs";
    const char *found = strstr(flags, reason);
    if (!found)
        return false;
    const char *number = found + sizeof reason - 1;
    size_t size = number_size(number);
    return size > 0 && strncmp(number + size, gpus, sizeof gpus - 1) == 0 &&
           strchr(" ", number[size + sizeof gpus - 1]);
}

static bool read_float(struct loading *loading, int column, float *out)
{
    double value = 0.0;
    if (!read_number(loading, column, &value))
        return false;
    if (fabs(value) > (double)FLT_MAX)
        return fail_field(loading, column, "is more than any time");
    *out = (float)value;
    return true;
}

/* Of NAME=VALUE, separated by blanks, the value of that name; NAN without it. */
static bool read_counter(struct loading *loading, const char *name, double *out)
{
    static char none[] = "";
    size_t size = strlen(name);
    int column = loading->columns.metric;
    char *at = column < 0 ? none : loading->reader.fields[column];
    while (strncmp(at, name, size) != 0 || at[size] != '=') {
        at += strcspn(at, " ");
        at += strspn(at, " ");
        if (*at == '\0') {
            *out = NAN;
            return true;
        }
    }
    char *end = at + strcspn(at, " ");
    char behind = *end;
    *end = '\0';
    bool read = parse_decimal(at + size + 1, out);
    *end = behind;
    return read || fail_field(loading, column, "has a counter that is no decimal number with a point");
}

static bool read_metric(struct loading *loading, struct row *row)
{
    const struct metric *metric = loading->catalogue->metric;
    return metric->is_counter ? read_counter(loading, metric->column, &row->value)
                              : read_number(loading, loading->columns.metric, &row->value);
}

/* The median, which is the usual metric. */
static bool read_time(struct loading *loading, struct row *row)
{
    if (loading->columns.time != loading->columns.metric)
        return read_float(loading, loading->columns.time, &row->time_us);
    row->time_us = (float)row->value;
    return true;
}

/* Gives a row of schema 1 the name of its flush: see results.h. */
static void name_flush(struct loading *loading)
{
    static char dirty[] = "dirty";
    static char dirty_graph[] = "dirty-graph";
    char **mode = &loading->reader.fields[loading->columns.key[KEY_MODE]];
    loading->results->has_schema_1 = true;
    if (strcmp(*mode, flush_mode_names[FLUSH_COLD]) == 0)
        *mode = dirty;
    else if (strcmp(*mode, flush_mode_names[FLUSH_GRAPH]) == 0)
        *mode = dirty_graph;
}

static bool read_schema(struct loading *loading)
{
    const char *schema = field(loading, loading->columns.schema);
    if (strcmp(schema, "1") == 0)
        name_flush(loading);
    else if (strcmp(schema, "2") != 0)
        return fail_field(loading, loading->columns.schema,
                          "is a schema this program does not know; it reads schemas 1 and 2");
    return true;
}

/* In a row that is ok every number is one, and none is negative: what stands
 * beside the metric goes into reports and plots. The metric itself is looked at
 * where cases are paired, so that one bad case leaves the others their verdicts. */
static bool check_numbers(struct loading *loading)
{
    for (size_t i = 0; i < loading->reader.column_count; i++) {
        const char *text = field(loading, (int)i);
        if (!loading->numeric[i] || *text == '\0')
            continue;
        if (!is_decimal(text))
            return fail_field(loading, (int)i, "is not a decimal number with a point");
        if (*text == '-' && strpbrk(text, "123456789"))
            return fail_field(loading, (int)i, "cannot be negative");
    }
    return true;
}

/* A row that the end of the file cuts short may still have all its fields. */
static bool check_line(struct loading *loading)
{
    const struct columns *c = &loading->columns;
    if (loading->reader.cut)
        return fail(loading, "%s:%zu: the last line has no line end: was the file cut?", loading->reader.path,
                    loading->reader.record_line);
    if (loading->reader.line <= loading->reader.record_line + 1)
        return true;
    for (int part = 0; part < KEY_PARTS; part++)
        if (strchr(field(loading, c->key[part]), '\n'))
            return fail(loading, "%s:%zu: column '%s' holds a line end: a quote that is closed too late?",
                        loading->reader.path, loading->reader.record_line, key_column_names[part]);
    if (strchr(field(loading, c->campaign), '\n') || strchr(field(loading, c->device), '\n'))
        return fail(loading, "%s:%zu: column 'campaign' or 'device' holds a line end: a quote that is closed too late?",
                    loading->reader.path, loading->reader.record_line);
    return true;
}

static bool read_row(struct loading *loading, struct row *row)
{
    const struct columns *c = &loading->columns;
    row->line = loading->reader.record_line;
    row->file = loading->file;
    row->throttled = c->flags >= 0 && names_a_throttle(field(loading, c->flags));
    row->needs_gpus = false;
    if (!check_line(loading) || !read_schema(loading) || !read_case(loading, &row->case_id) ||
        !read_status(loading, &row->status))
        return false;
    row->needs_gpus = row->status == STATUS_UNSUPPORTED && c->flags >= 0 && names_gpus(field(loading, c->flags));
    return read_origin(loading, row) &&
           read_metric(loading, row) && read_number(loading, c->bytes, &row->bytes) &&
           read_number(loading, c->flops, &row->flops) && read_time(loading, row) &&
           read_float(loading, c->overhead, &row->overhead_us) &&
           (row->status != STATUS_OK || check_numbers(loading));
}

static bool fail_twice(struct loading *loading, const struct row *first, const struct row *row)
{
    const struct case_key *key = &loading->catalogue->cases[row->case_id];
    return fail(loading,
                "%s:%zu: column 'run': run %llu of campaign '%.40s' has a second row for the case "
                "'%.60s %.60s %.40s %.20s %.20s %.100s %.20s'; the first is at %s:%zu",
                loading->results->paths[row->file], row->line, (unsigned long long)row->run,
                intern_text(&loading->catalogue->campaigns, row->campaign), key->parts[KEY_SUITE],
                key->parts[KEY_CASE], key->parts[KEY_VARIANT], key->parts[KEY_BACKEND], key->parts[KEY_DTYPE],
                key->parts[KEY_PARAMS], key->parts[KEY_MODE], loading->results->paths[first->file], first->line);
}

/* Where a row's identity belongs among slots of row numbers and one. */
static size_t identity_slot(const struct results *results, const uint32_t *slots, size_t slot_count,
                            const struct row *row)
{
    uint64_t hash = (row->run * 0x9e3779b97f4a7c15u + row->case_id) * 0xbf58476d1ce4e5b9u + row->campaign;
    hash = (hash ^ (hash >> 31)) * 0x94d049bb133111ebu;
    for (size_t slot = (size_t)(hash >> 20) & (slot_count - 1);; slot = (slot + 1) & (slot_count - 1)) {
        const struct row *held = slots[slot] ? &results->rows[slots[slot] - 1] : NULL;
        if (!held || (held->case_id == row->case_id && held->run == row->run && held->campaign == row->campaign))
            return slot;
    }
}

/* The same case in the same run twice would leave open which of them counts. */
static bool check_unique(struct loading *loading)
{
    const struct results *results = loading->results;
    size_t slot_count = 64;
    while (slot_count < 2 * results->count)
        slot_count *= 2;
    uint32_t *slots = calloc(slot_count, sizeof slots[0]);
    if (!slots)
        return no_memory(loading);
    bool unique = true;
    for (size_t i = 0; unique && i < results->count; i++) {
        size_t slot = identity_slot(results, slots, slot_count, &results->rows[i]);
        unique = slots[slot] == 0 || fail_twice(loading, &results->rows[slots[slot] - 1], &results->rows[i]);
        slots[slot] = (uint32_t)i + 1;
    }
    free(slots);
    return unique;
}

/* Counts the row to the process that wrote it. */
static bool note_run(struct loading *loading, const struct row *row)
{
    struct results *results = loading->results;
    const char *suite = loading->catalogue->cases[row->case_id].parts[KEY_SUITE];
    struct process_run *last = results->run_count ? &results->runs[results->run_count - 1] : NULL;
    if (last && last->suite == suite && last->run == row->run && last->campaign == row->campaign &&
        last->file == row->file) {
        last->rows++;
        last->line = row->line;
        return true;
    }
    if (results->run_count == results->run_capacity) {
        size_t capacity = results->run_capacity ? 2 * results->run_capacity : 64;
        struct process_run *larger = realloc(results->runs, capacity * sizeof larger[0]);
        if (!larger)
            return no_memory(loading);
        results->runs = larger;
        results->run_capacity = capacity;
    }
    /* Without room for one there was no last one either. NOLINTNEXTLINE(*-core.NullDereference) */
    results->runs[results->run_count++] =
        (struct process_run){suite, row->run, 1, 0, row->line, row->campaign, row->file};
    return true;
}

static bool keep_row(struct loading *loading, const struct row *row)
{
    struct results *results = loading->results;
    if (results->count == results->capacity) {
        size_t capacity = results->capacity ? 2 * results->capacity : 256;
        struct row *larger =
            capacity > UINT32_MAX ? NULL : realloc(results->rows, capacity * sizeof larger[0]);
        if (!larger)
            return no_memory(loading);
        results->rows = larger;
        results->capacity = capacity;
    }
    results->rows[results->count++] = *row;
    return note_run(loading, row);
}

static bool read_rows(struct loading *loading)
{
    for (;;) {
        switch (csv_next(&loading->reader)) {
        case CSV_END:
            return true;
        case CSV_ERROR:
            return fail(loading, "%s", loading->reader.error);
        case CSV_RECORD:
            break;
        }
        struct row row = {0};
        if (!read_row(loading, &row) || !keep_row(loading, &row))
            return false;
    }
}

/* By the name alone: the processes of a sitting may each have another of the host's cards. */
static bool same_sitting(const struct catalogue *catalogue, const struct process_run *a,
                         const struct process_run *b)
{
    const struct intern_table *campaigns = &catalogue->campaigns;
    return a->suite == b->suite && a->file == b->file &&
           strcmp(intern_text(campaigns, a->campaign), intern_text(campaigns, b->campaign)) == 0;
}

/* A sitting is written in one go, so its runs follow each other. */
static void count_most_rows(struct results *results, const struct catalogue *catalogue)
{
    for (size_t first = 0, end; first < results->run_count; first = end) {
        const struct process_run *runs = results->runs;
        size_t most = 0;
        for (end = first; end < results->run_count && same_sitting(catalogue, &runs[end], &runs[first]); end++)
            most = runs[end].rows > most ? runs[end].rows : most;
        for (size_t i = first; i < end; i++)
            results->runs[i].most_rows = most;
    }
}

/* Reads an opened file to its end, and closes it. */
static bool load_opened(struct loading *loading, bool opened)
{
    bool complete = opened ? find_columns(loading) && find_numeric(loading) && read_rows(loading)
                           : fail(loading, "%s", loading->reader.error);
    csv_close(&loading->reader);
    free(loading->key);
    free(loading->numeric);
    free(loading->last_names);
    return complete && check_unique(loading);
}

bool results_load(struct results *results, struct catalogue *catalogue, const char *const *paths,
                  size_t path_count, char error[results_error_capacity])
{
    *results = (struct results){.paths = paths, .path_count = path_count};
    for (size_t file = 0; file < path_count; file++) {
        struct loading loading = {results, catalogue, .file = (uint32_t)file, .error = error};
        if (!load_opened(&loading, csv_open(&loading.reader, paths[file])))
            return false;
    }
    count_most_rows(results, catalogue);
    return true;
}

bool results_load_bytes(struct results *results, struct catalogue *catalogue, const char *const *path,
                        const char *bytes, size_t size, char error[results_error_capacity])
{
    *results = (struct results){.paths = path, .path_count = 1};
    struct loading loading = {results, catalogue, .error = error};
    bool complete = load_opened(&loading, csv_open_bytes(&loading.reader, *path, bytes, size));
    count_most_rows(results, catalogue);
    return complete;
}

bool results_lack_metric(const struct results *results)
{
    size_t ok = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (!isnan(results->rows[i].value))
            return false;
        ok += results->rows[i].status == STATUS_OK;
    }
    return ok > 0;
}

const char *provenance_only_in(const struct results *current, const struct results *baseline,
                               enum provenance column)
{
    const struct intern_table *here = &current->provenance[column];
    const struct intern_table *there = &baseline->provenance[column];
    for (uint32_t id = 0; there->count > 0 && id < here->count; id++) {
        const char *text = intern_text(here, id);
        if (intern_find(there, text, strlen(text)) == INTERN_NONE)
            return text;
    }
    return NULL;
}

void results_free(struct results *results)
{
    free(results->rows);
    free(results->runs);
    for (int i = 0; i < PROVENANCE_COLUMNS; i++)
        intern_free(&results->provenance[i]);
    intern_free(&results->pcis);
    intern_free(&results->nodes);
    intern_free(&results->revisions);
    *results = (struct results){0};
}

void catalogue_free(struct catalogue *catalogue)
{
    free(catalogue->cases);
    intern_free(&catalogue->keys);
    intern_free(&catalogue->groups);
    intern_free(&catalogue->modeless);
    intern_free(&catalogue->parts);
    intern_free(&catalogue->campaigns);
    intern_free(&catalogue->devices);
    intern_free(&catalogue->seeds);
    *catalogue = (struct catalogue){0};
}
