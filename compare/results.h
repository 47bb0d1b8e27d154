/* Measurements of schemas 1 and 2, read from one or several files.
 *
 * A cold or graph row of schema 1 was measured behind a flush that writes, whose
 * dirty lines were charged to the kernel; schema 2 has the modes behind a flush
 * that only reads. So that the two are never compared, a row of schema 1 is read
 * under the names that schema 2 has for its flush: dirty and dirty-graph.
 *
 * Both sides of a comparison share one catalogue, so that a case has the same
 * number on either side. */
#ifndef GPUBENCH_COMPARE_RESULTS_H
#define GPUBENCH_COMPARE_RESULTS_H

#include "intern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The columns that make up a case's key, in the order they are shown. */
enum key_part { KEY_SUITE, KEY_CASE, KEY_VARIANT, KEY_BACKEND, KEY_DTYPE, KEY_PARAMS, KEY_MODE, KEY_PARTS };

extern const char *const key_column_names[KEY_PARTS];

struct metric {
    const char *column; /* or the name of a counter, which stands in the column counters */
    const char *unit;
    bool bigger_is_better;
    bool is_time;    /* any other may be empty: it does not apply */
    bool is_counter; /* a number of the case's own; what ends with /s is a rate */
};

/* NULL when no column is such a metric. */
const struct metric *find_metric(const char *column);

/* The metric of that name which cases may have. Keeps name. */
struct metric counter_metric(const char *name);

/* The names of all metrics, separated by blanks. */
const char *metric_names(void);

enum status { STATUS_OK, STATUS_FAILED, STATUS_MISMATCH, STATUS_OOM, STATUS_UNSUPPORTED, STATUS_SKIPPED };

extern const char *const status_names[];

/* Modes that are the same but for the flush stand next to each other. */
enum flush_mode { FLUSH_COLD, FLUSH_DIRTY, FLUSH_GRAPH, FLUSH_DIRTY_GRAPH, FLUSH_MODES };

/* The mode that is the same behind the other flush. */
static inline enum flush_mode other_flush(enum flush_mode mode)
{
    return (enum flush_mode)(mode ^ 1);
}

extern const char *const flush_mode_names[FLUSH_MODES];

struct case_key {
    const char *parts[KEY_PARTS]; /* owned by the catalogue */
    uint32_t group;               /* the key without its variant */
    uint32_t modeless;            /* the key without its mode */
    enum flush_mode flush;        /* FLUSH_MODES where the mode has no flush */
};

struct catalogue {
    struct intern_table keys;
    struct intern_table groups;
    struct intern_table modeless;
    struct intern_table parts;
    struct intern_table campaigns;
    struct intern_table devices;
    struct intern_table seeds;
    struct case_key *cases; /* one for each of keys */
    size_t case_capacity;
    const struct metric *metric;
};

struct row {
    double value; /* of the metric; NAN where the field is empty */
    double bytes; /* NAN where empty or no such column */
    double flops;
    uint64_t run;
    size_t line;
    int64_t time_s;    /* of the timestamp, since 1970; 0 where it is empty or none */
    float time_us;     /* the median, whatever the metric; NAN where empty */
    float overhead_us; /* of an empty kernel by the same method; NAN where empty */
    float shift_us;    /* how far constant.h found its host from the baseline's */
    uint32_t file;
    uint32_t case_id;
    uint32_t campaign;
    uint32_t sitting; /* in campaigns too: campaign, with what was measured further in it */
    uint32_t device;
    uint32_t card; /* its uuid in provenance; INTERN_NONE where the file has none */
    uint32_t pci;  /* in pcis, likewise */
    uint32_t node; /* in nodes, likewise */
    uint32_t revision; /* in revisions, likewise */
    uint32_t seed; /* of the inputs, in seeds of the catalogue, likewise */
    enum status status;
    bool throttled; /* by anything but the power cap, which large products run at */
    bool needs_gpus; /* unsupported, as its host has too few of them */
};

/* Columns whose difference between the sides is worth a warning. */
enum provenance {
    PROVENANCE_UUID,
    PROVENANCE_DRIVER,
    PROVENANCE_CUDA_RUNTIME,
    PROVENANCE_CPU,
    PROVENANCE_GPUBENCH_VERSION,
    PROVENANCE_SETTINGS,
    PROVENANCE_COLUMNS
};

extern const char *const provenance_column_names[PROVENANCE_COLUMNS];

/* The rows of one suite that one process wrote, next to each other in a file. */
struct process_run {
    const char *suite; /* owned by the catalogue */
    uint64_t run;
    size_t rows;
    size_t most_rows; /* of any run of its suite and of a campaign of that name */
    size_t line; /* of its last row */
    uint32_t campaign;
    uint32_t file;
};

struct results {
    const char *const *paths; /* not owned */
    size_t path_count;
    struct row *rows;
    size_t count;
    size_t capacity;
    bool has_schema_1; /* a row of it, in whatever mode */
    struct process_run *runs; /* in the order of the files */
    size_t run_count;
    size_t run_capacity;
    struct intern_table provenance[PROVENANCE_COLUMNS];
    struct intern_table pcis; /* where in their hosts the cards are */
    struct intern_table nodes; /* what the user calls the hosts, of column node */
    struct intern_table revisions; /* of column git */
};

enum { results_error_capacity = 1024 };

/* Reads all paths as one side. On false, error says which file and line and
 * why. catalogue_free and results_free are due either way. */
bool results_load(struct results *results, struct catalogue *catalogue, const char *const *paths,
                  size_t path_count, char error[results_error_capacity]);

/* The same for one file whose bytes are in memory. */
bool results_load_bytes(struct results *results, struct catalogue *catalogue, const char *const *path,
                        const char *bytes, size_t size, char error[results_error_capacity]);

/* Are there rows that are ok, and has none of all a value of the metric? */
bool results_lack_metric(const struct results *results);

/* A value of that column that current has and baseline has not, or NULL. A
 * side without any value says nothing. */
const char *provenance_only_in(const struct results *current, const struct results *baseline,
                               enum provenance column);

void results_free(struct results *results);
void catalogue_free(struct catalogue *catalogue);

#endif
