/* Two files of --kernels-csv: which kernel of a case takes longer than before. */
#ifndef GPUBENCH_COMPARE_KERNELS_H
#define GPUBENCH_COMPARE_KERNELS_H

#include "intern.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { kernels_error_capacity = 1024 };

/* A kernel, copy, memset or range of a case; [0] of the old file, [1] of the new. */
struct kernel {
    uint32_t case_id; /* in cases */
    uint32_t name_id; /* in names */
    bool seen[2];
    double total_us[2];
    double launches[2];
};

struct kernels {
    struct intern_table cases;
    struct intern_table names;
    struct intern_table pairs; /* of case and name: its id is the index of the kernel */
    struct kernel *all;
    size_t capacity;
};

/* Adds a file's rows to one side. On false, error names the file, the line and the
 * column. kernels_free is due either way. filter may be NULL. */
bool kernels_load(struct kernels *kernels, int side, const char *path, const regex_t *filter,
                  char error[kernels_error_capacity]);

/* How many cases both files have. */
size_t kernels_common_cases(const struct kernels *kernels);

/* Cases by how much their kernels' sum has moved, the most first, at most limit of
 * them (0: all); of each the kernels that moved. */
bool kernels_report(FILE *out, const struct kernels *kernels, size_t limit);

void kernels_free(struct kernels *kernels);

#endif
