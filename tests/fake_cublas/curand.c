/* The same for cuRAND: numbers repeat after a while, and are no good but to compute with. */
#include "inside.h"

#include <curand.h>

#include <stdlib.h>
#include <string.h>

enum { PERIOD = 4093, FILL_US = 30 };

struct curandGenerator_st {
    unsigned long long seed;
    cudaStream_t stream;
};

/* What is to be written: random words, or f32 as such. */
typedef struct fill {
    unsigned *to;
    size_t count;
    int is_normal;
    float mean, stddev;
    unsigned long long seed;
} fill;

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
    if (fails("curandCreateGenerator"))
        return CURAND_STATUS_INTERNAL_ERROR;
    (void)type;
    *generator = calloc(1, sizeof **generator);
    return *generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
    free(generator);
    return fails("curandDestroyGenerator") ? CURAND_STATUS_INTERNAL_ERROR : CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                  unsigned long long seed)
{
    if (fails("curandSetPseudoRandomGeneratorSeed"))
        return CURAND_STATUS_INTERNAL_ERROR;
    generator->seed = seed;
    return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream)
{
    if (fails("curandSetStream"))
        return CURAND_STATUS_INTERNAL_ERROR;
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}

/* The sum of four uniform numbers is near enough to a normal one. */
static unsigned draw(const fill *f, unsigned long long *state)
{
    float sum = 0, value;
    unsigned word = 0;
    int i;
    for (i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        word = (unsigned)(*state >> 32);
        sum += (float)word / 4294967296.0f - 0.5f;
    }
    value = f->mean + f->stddev * sum * 1.7320508f;
    if (f->is_normal)
        memcpy(&word, &value, sizeof word);
    return word;
}

static void write_numbers(void *argument)
{
    const fill *f = argument;
    unsigned long long state = f->seed;
    size_t i, part = f->count < PERIOD ? f->count : PERIOD;
    for (i = 0; i < part; i++)
        f->to[i] = draw(f, &state);
    for (; part < f->count; part += i) {
        i = f->count - part < part ? f->count - part : part;
        memcpy(f->to + part, f->to, i * sizeof *f->to);
    }
}

static curandStatus_t enqueue(curandGenerator_t generator, const fill *what)
{
    fill one = *what;
    one.seed = generator->seed;
    return fake_enqueue_work(generator->stream, FILL_US, write_numbers, &one, sizeof one) == 0
               ? CURAND_STATUS_SUCCESS
               : CURAND_STATUS_LAUNCH_FAILURE;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned *to, size_t count)
{
    if (fails("curandGenerate"))
        return CURAND_STATUS_INTERNAL_ERROR;
    return enqueue(generator, &(fill){.to = to, .count = count});
}

curandStatus_t curandGenerateNormal(curandGenerator_t generator, float *to, size_t count,
                                    float mean, float stddev)
{
    if (fails("curandGenerateNormal"))
        return CURAND_STATUS_INTERNAL_ERROR;
    return enqueue(generator, &(fill){.to = (unsigned *)(void *)to, .count = count, .is_normal = 1,
                                      .mean = mean, .stddev = stddev});
}
