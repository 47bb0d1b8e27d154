/*
 * gpubench.c - the one file of a suite's program that contains gpubench's
 * implementation. All others know its declarations only.
 */
#define GPUBENCH_IMPLEMENTATION
#include "../gpubench.h"
