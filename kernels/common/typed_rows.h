/*
 * typed_rows.h - rows of an operation's dtype as f32, and back, by simd.h: a row
 * that is stored as f32 is used where it is. f16 has no vectors of its own.
 */
#ifndef KERNEL_TYPED_ROWS_H
#define KERNEL_TYPED_ROWS_H

#include "element.h"
#include "simd.h"

/* count elements from `first` on: themselves, or their conversion in `room`. */
static inline const float *typed_row(const void *data, kernel_dtype dtype, int64_t first,
                                     int64_t count, float *room)
{
    if (element_is_f32(dtype)) return element_at(data, dtype, first);
    if (dtype == KERNEL_BF16)
        simd()->widen(count, element_at(data, dtype, first), room);
    else
        kernel_to_f32(element_at(data, dtype, first), dtype, count, room);
    return room;
}

/* Where to compute a row of results; typed_row_done stores it if that is `room`. */
static inline float *typed_row_to_fill(void *data, kernel_dtype dtype, int64_t first, float *room)
{
    return element_is_f32(dtype) ? element_to(data, dtype, first) : room;
}

static inline void typed_row_done(const float *row, void *data, kernel_dtype dtype, int64_t first,
                                  int64_t count)
{
    if (dtype == KERNEL_BF16)
        simd()->narrow(count, row, element_to(data, dtype, first));
    else if (!element_is_f32(dtype))
        kernel_from_f32(row, dtype, count, element_to(data, dtype, first));
}

/* Of a row that is read soon and lies anywhere: processors guess what follows within a
 * page, but not where the next row begins. Into the second-level cache, which can wait for
 * more lines at a time than the first: rows of 3 KiB in any order came at 24 GB/s where one
 * core has 29 in order, at 9 without or into the first. */
static inline void typed_row_prefetch(const void *data, kernel_dtype dtype, int64_t first,
                                      int64_t count)
{
    enum { LINE = 64, PAGE = 4096, FOR_READING = 0, SECOND_LEVEL = 2 };
    const char *row = element_at(data, dtype, first);
    int64_t bytes = count * (int64_t)kernel_dtype_bytes(dtype);
    for (int64_t i = 0; i < (bytes < PAGE ? bytes : PAGE); i += LINE)
        __builtin_prefetch(row + i, FOR_READING, SECOND_LEVEL);
}

/* Rows that make a range worth handing to a thread: one costs some microseconds to
 * wake, which is what so many elements take. */
static inline int64_t typed_rows_at_a_time(int64_t width)
{
    enum { ELEMENTS = 1 << 15 };
    return 1 + (ELEMENTS - 1) / width;
}

/* The same of what is handed out to `threads` of them. Long ranges, where there are many:
 * two threads that read in turns of 128 KiB came to 41 GB/s, in turns of 1 MiB to 49, as
 * memory likes what lies together and so do the processors' guesses. */
static inline int64_t typed_rows_range(int threads, int64_t rows, int64_t width)
{
    enum { MOST = 1 << 18, RANGES_OF_THREAD = 8 };
    int64_t least = typed_rows_at_a_time(width), most = 1 + (MOST - 1) / width;
    int64_t share = rows / ((int64_t)threads * RANGES_OF_THREAD);
    return share < least ? least : share > most ? most : share;
}

/* Of `threads` those that pay for so many rows: one that sleeps, as behind a flush of the
 * caches, may begin when another one would have done 200,000 elements. */
static inline int typed_rows_threads(int threads, int64_t rows, int64_t width)
{
    return (double)rows * (double)width < 1 << 18 ? 1 : threads;
}

#endif
