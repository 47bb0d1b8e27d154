/*
 * loader.h - batches that are made ahead: a bounded queue of slots, filled by threads and
 * emptied by the one who trains. What the habits `inputs` and `loader` are measured with;
 * the habit `checkpoint` writes its file by a thread of this kind.
 *
 * Batches have numbers from 0 on. Whichever thread makes a batch, it goes to slot
 * number % slots and is taken in the order of the numbers, so that none is taken twice
 * and results do not depend on how many threads there are.
 *
 * A loader makes no more batches than it was allowed: between samples it sleeps.
 */
#ifndef MODEL_LOADER_H
#define MODEL_LOADER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LOADER_MOST_SLOTS = 8, LOADER_MOST_THREADS = 8, LOADER_REASON = 256 };

/* Makes batch `number` in the slot's memory, on several threads at a time. 0, or -1 and
 * why: the first batch that cannot be made is the last that anybody asks for. */
typedef int loader_make(void *context, int64_t number, void *memory, char reason[LOADER_REASON]);

typedef struct loader loader;

/* threads: 0 to LOADER_MOST_THREADS; with 0 a batch is made when it is taken, by the one
 * who takes it. slots: 1 to LOADER_MOST_SLOTS, memory[slots] the caller's. NULL where
 * there is no memory or no thread. */
loader *loader_open(int threads, int slots, void *const *memory, loader_make *make,
                    void *context);

/* Lets `count` batches more be made. */
void loader_allow(loader *l, int64_t count);

/* Waits for the next batch, which must have been allowed: its memory, the caller's until
 * loader_give_back. NULL where it could not be made: see loader_reason. All slots in
 * the caller's hands make it wait for ever. */
void *loader_take(loader *l);

/* The oldest batch that was taken and not given back. Its slot is filled again at once:
 * nothing may read it any more, a copy to a device neither. */
void loader_give_back(loader *l);

/* Why a batch could not be made; "" while none failed. */
const char *loader_reason(const loader *l);

/* How long loader_take waited or made, all together. */
int64_t loader_waited_ns(const loader *l);

/* Ends the threads, whatever they wait for, and waits for those that make a batch.
 * NULL is none. */
void loader_close(loader *l);

#ifdef __cplusplus
}
#endif
#endif
