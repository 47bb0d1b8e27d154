/*
 * random.c - seeded inputs on the host.
 *
 * Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011, section 3.3. Normals by Box and Muller, "A note on the
 * generation of random normal deviates", 1958.
 */
#include <math.h>
#include <string.h>

#include "convert.h"
#include "random.h"

enum { PHILOX_WORDS = 4, PHILOX_ROUNDS = 10 };

static void philox_round(uint32_t counter[PHILOX_WORDS], const uint32_t key[2])
{
    uint64_t product0 = (uint64_t)0xD2511F53u * counter[0];
    uint64_t product1 = (uint64_t)0xCD9E8D57u * counter[2];
    uint32_t next0 = (uint32_t)(product1 >> 32) ^ counter[1] ^ key[0];
    uint32_t next2 = (uint32_t)(product0 >> 32) ^ counter[3] ^ key[1];
    counter[0] = next0;
    counter[1] = (uint32_t)product1;
    counter[2] = next2;
    counter[3] = (uint32_t)product0;
}

/* The block-th group of four random words of the seed's stream. */
static void philox(uint64_t seed, uint64_t block, uint32_t words[PHILOX_WORDS])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    words[0] = (uint32_t)block;
    words[1] = (uint32_t)(block >> 32);
    words[2] = 0;
    words[3] = 0;
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(words, key);
        key[0] += 0x9E3779B9u; /* the golden ratio */
        key[1] += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
}

/* Uniform over the open interval (0, 1): log never sees 0. */
static float open_uniform(uint32_t word)
{
    return ((float)(word >> 8) + 0.5f) * 0x1p-24f;
}

static void box_muller(const uint32_t words[2], float normals[2])
{
    const float two_pi = 6.28318530717958647692f;
    float radius = sqrtf(-2.0f * logf(open_uniform(words[0])));
    float angle = two_pi * open_uniform(words[1]);
    normals[0] = radius * cosf(angle);
    normals[1] = radius * sinf(angle);
}

static void fill_normal(char *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                        uint64_t seed)
{
    size_t element_bytes = kernel_dtype_bytes(dtype);
    for (int64_t begin = 0; begin < count; begin += PHILOX_WORDS) {
        uint32_t words[PHILOX_WORDS];
        float normals[PHILOX_WORDS];
        philox(seed, (uint64_t)begin / PHILOX_WORDS, words);
        box_muller(words, normals);
        box_muller(words + 2, normals + 2);
        for (int i = 0; i < PHILOX_WORDS; i++) normals[i] = mean + stddev * normals[i];
        int64_t left = count - begin;
        kernel_from_f32(normals, dtype, left < PHILOX_WORDS ? left : PHILOX_WORDS,
                        data + (size_t)begin * element_bytes);
    }
}

static void fill_bytes(char *data, int64_t count, uint64_t seed)
{
    enum { BLOCK_BYTES = PHILOX_WORDS * sizeof(uint32_t) };
    for (int64_t begin = 0; begin < count; begin += BLOCK_BYTES) {
        uint32_t words[PHILOX_WORDS];
        philox(seed, (uint64_t)begin / BLOCK_BYTES, words);
        int64_t left = count - begin;
        memcpy(data + begin, words, left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES);
    }
}

int random_normal_cpu(void *data, kernel_dtype dtype, int64_t count, float mean, float stddev,
                      uint64_t seed)
{
    if (count < 0 || kernel_dtype_bytes(dtype) == 0) return KERNEL_ERROR_ARGUMENT;
    if (dtype == KERNEL_U8)
        fill_bytes(data, count, seed);
    else
        fill_normal(data, dtype, count, mean, stddev, seed);
    return KERNEL_OK;
}
