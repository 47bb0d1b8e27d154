/* What a race writes while it is on: a temporary folder, and the rows of both
 * sides. */
#ifndef GPUBENCH_COMPARE_RACE_FILES_H
#define GPUBENCH_COMPARE_RACE_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum {
    race_error_capacity = 1024,
    race_path_capacity = 4096,
    race_most_flags = 32,
    race_flag_capacity = 48
};

struct race_files {
    char folder[race_path_capacity];  /* temporary; empty where there is none */
    char rows[2][race_path_capacity]; /* old.csv and new.csv, in it or in the folder to keep */
    const char *kept;                 /* the folder that the user named, or NULL */
    bool kept_is_new;                 /* it was made for this race */
};

/* Makes the temporary folder, with a folder tmp for the programs in it, and the
 * folder keep, which may be NULL and must not hold the rows of another race. False
 * with a message; race_files_remove is due either way. */
bool race_files_make(struct race_files *files, const char *keep, char error[race_error_capacity]);

/* Removes the temporary folder with all that is in it. */
void race_files_remove(struct race_files *files);

void race_path(char out[race_path_capacity], const char *folder, const char *name);

/* How often a row of a side has a flag, and the first case that has it. */
struct race_flag {
    char name[race_flag_capacity];
    size_t rows[2];
    char first_case[160];
};

struct race_flags {
    struct race_flag items[race_most_flags];
    size_t count;
};

/* Appends the rows that a process of the side wrote to those of the side, as run
 * number pair, and counts their flags. Of the warm-up, pair 0, only rows that are not
 * ok stay, as its times are none to judge by. The new rows of the side are there in
 * whole or not at all. False with a message. */
bool race_append_rows(const char *from, const struct race_files *files, int side, unsigned pair,
                      struct race_flags *flags, char error[race_error_capacity]);

#endif
