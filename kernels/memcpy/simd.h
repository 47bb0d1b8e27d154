/*
 * simd.h - copying and setting with the processor's vectors, for the tables.
 */
#ifndef MEMCPY_SIMD_H
#define MEMCPY_SIMD_H

#include "memcpy.h"

int memcpy_copy_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int memcpy_copy_run_threads(const void *args, void *workspace, void *state,
                            kernel_stream stream);
int memcpy_set_run_simd(const void *args, void *workspace, void *state, kernel_stream stream);
int memcpy_set_run_threads(const void *args, void *workspace, void *state,
                           kernel_stream stream);

#endif
