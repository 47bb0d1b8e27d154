/*
 * batches.c - what a model's loader makes: see batches.h.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif
#include "batches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

size_t model_batch_bytes(const model_batches *batches)
{
    return 2 * (size_t)batches->rows * sizeof(int32_t);
}

static void wait_milliseconds(int milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (milliseconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

int model_batch_make(void *context, int64_t number, void *memory, char reason[LOADER_REASON])
{
    const model_batches *b = context;
    int32_t *batch = memory;
    wait_milliseconds(b->milliseconds);
    for (int64_t i = 0; i < 2 * b->rows; i++) {
        batch[i] = b->text[i];
        if (batch[i] >= 0 && batch[i] < b->vocabulary) continue;
        snprintf(reason, LOADER_REASON, "batch %lld: token %d is not one of the vocabulary's %lld",
                 (long long)number, (int)batch[i], (long long)b->vocabulary);
        return -1;
    }
    return 0;
}
