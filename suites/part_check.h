/*
 * part_check.h - whether a part of a model (kernels/part.h) did its work: on
 * sampled rows, its output against the oracle's for the inputs that it really
 * had. So a whole is checked part by part at any size, and a part on its own in
 * the same way.
 */
#ifndef SUITE_PART_CHECK_H
#define SUITE_PART_CHECK_H

#include "../kernels/part/part.h"
#include "suite.h"

/* After the part ran, with its memory as it was left. 0 or a code for verify to
 * return. */
int part_check(gpubench *bench, const part_args *part);

/* ---- what the checks share (part_check.c, part_check_heads.c) -------------------- */

enum { PART_CHECK_ROWS = 4, PART_CHECK_HEADS = 2 };

/* The case and the first error: once there is one, the functions below do
 * nothing. */
typedef struct part_checker {
    gpubench *bench;
    kernel_dtype dtype;
    int code;
} part_checker;

/* The sampled rows of so many. */
typedef struct part_sample {
    int64_t at[PART_CHECK_ROWS], count;
} part_sample;

part_sample part_sample_of(const part_checker *c, int64_t rows);

/* Zeros, to be freed. */
void *part_check_room(part_checker *c, int64_t count, size_t element_bytes);
double *part_check_doubles(part_checker *c, int64_t count);

/* Elements as f32, to be freed: of the part's dtype, or of another. */
float *part_check_get(part_checker *c, const void *memory, int64_t first, int64_t count);
float *part_check_get_f32(part_checker *c, const void *memory, int64_t first, int64_t count);

void part_check_compare(part_checker *c, const void *output, int64_t first, int64_t count,
                        const double *reference, suite_error *error);
void part_check_compare_f32(part_checker *c, const void *output, int64_t first, int64_t count,
                            const double *reference, suite_error *error);

/* suite_check with the bound of the part's dtype, or of another. */
void part_check_judge(part_checker *c, const suite_error *error, double factor);
void part_check_judge_f32(part_checker *c, const suite_error *error, double factor);

void part_check_written(part_checker *c, const void *output, int64_t count);
void part_check_written_f32(part_checker *c, const void *output, int64_t count);

/* y = weight x of a matrix [out, in], in double and on several threads. */
void part_check_row_times_weight(const float *x, const float *weight, int64_t in, int64_t out,
                                 double *y);

/* Of part_check_heads.c. */
void part_check_attention(part_checker *c, const attention_forward_args *args);
void part_check_attention_gradient(part_checker *c, const attention_backward_args *args);
void part_check_heads_moved(part_checker *c, const part_heads *move);

#endif
