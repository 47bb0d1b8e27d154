/* A report for which there was not enough memory is not all there is to say. */
#ifndef GPUBENCH_COMPARE_STARVED_H
#define GPUBENCH_COMPARE_STARVED_H

#include <stdbool.h>
#include <stdio.h>

/* Gives what it is given; once that was NULL, is_starved is true for good. */
void *noted(void *memory);
bool is_starved(void);

/* Closes a stream into memory, and notes whether all of it is there. */
void end_memory(FILE *stream);

#endif
