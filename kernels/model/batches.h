/*
 * batches.h - the batches that a model's loader makes (loader.h): always the same one, so
 * that a step does the same work whoever made its input.
 */
#ifndef MODEL_BATCHES_H
#define MODEL_BATCHES_H

#include "loader.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows tokens and, behind them, rows targets. */
typedef struct model_batches {
    int32_t *text; /* what every batch is a copy of */
    int64_t rows, vocabulary;
    int milliseconds; /* that a batch takes beside the copying: waiting, as for a disk */
} model_batches;

/* Bytes of a batch. */
size_t model_batch_bytes(const model_batches *batches);

/* A loader_make. A token that the vocabulary does not have ends the batches. */
int model_batch_make(void *batches, int64_t number, void *memory, char reason[LOADER_REASON]);

#ifdef __cplusplus
}
#endif
#endif
