/*
 * collective.c - sizes, factors and oracle of the collectives: see collective.h.
 */
#include "collective.h"

#include "../common/convert.h"

#include <math.h>

const char *collective_name(collective_operation operation)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "broadcast",  "all_to_all", "send_receive"};
    return names[operation];
}

int collective_has_in_place(collective_operation operation)
{
    return operation < COLLECTIVE_ALL_TO_ALL;
}

/* Whether the whole array has a block for each rank. */
static int has_blocks(collective_operation operation)
{
    return operation == COLLECTIVE_ALL_GATHER || operation == COLLECTIVE_REDUCE_SCATTER ||
           operation == COLLECTIVE_ALL_TO_ALL;
}

int64_t collective_block(collective_operation operation, kernel_dtype dtype, int ranks,
                         int64_t bytes)
{
    int64_t elements = bytes / (int64_t)kernel_dtype_bytes(dtype);
    int64_t block = has_blocks(operation) ? elements / ranks : elements;
    return block > 0 ? block : 1;
}

/* A block for each rank; where that is more than can be counted, the most that can. */
static int64_t all_blocks(const collective_shape *s)
{
    int64_t count;
    return __builtin_mul_overflow(s->block, (int64_t)s->ranks, &count) ? INT64_MAX : count;
}

int64_t collective_send_count(const collective_shape *s)
{
    int whole = s->operation == COLLECTIVE_REDUCE_SCATTER || s->operation == COLLECTIVE_ALL_TO_ALL;
    return whole ? all_blocks(s) : s->block;
}

int64_t collective_receive_count(const collective_shape *s)
{
    int whole = s->operation == COLLECTIVE_ALL_GATHER || s->operation == COLLECTIVE_ALL_TO_ALL;
    return whole ? all_blocks(s) : s->block;
}

uint64_t collective_bytes(const collective_shape *s)
{
    uint64_t bytes, blocks = has_blocks(s->operation) ? (uint64_t)s->ranks : 1;
    if (__builtin_mul_overflow((uint64_t)s->block, blocks * kernel_dtype_bytes(s->dtype), &bytes))
        return UINT64_MAX;
    return bytes;
}

double collective_bus_factor(collective_operation operation, int ranks)
{
    double others = (double)(ranks - 1) / ranks;
    if (ranks == 1)
        return 0;
    if (operation == COLLECTIVE_ALL_REDUCE)
        return 2 * others;
    return has_blocks(operation) ? others : 1;
}

int collective_pick_device(int local, int on_host, int visible)
{
    if (visible >= on_host) return local;
    return visible == 1 ? 0 : -1;
}

/* ---- what is given and what must come out -------------------------------------- */

/* The last steps of splitmix64: neighbours have nothing to do with each other. */
static uint64_t mix(uint64_t word)
{
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

static float rounded(kernel_dtype dtype, float value)
{
    return dtype == KERNEL_BF16 ? kernel_bf16_to_f32(kernel_bf16_from_f32(value)) : value;
}

/* Sums of n numbers of at most 256 / n stay at or below 256, up to which bf16 holds
 * every whole number. */
static float counted(uint64_t word, int ranks)
{
    int most = COLLECTIVE_MOST_RANKS / ranks;
    most = most > 8 ? 8 : most;
    return (float)((int)(word % (2 * (unsigned)most + 1)) - most);
}

float collective_input(const collective_shape *s, collective_data data, uint64_t seed, int rank,
                       int64_t index)
{
    uint64_t place = (uint64_t)(index % COLLECTIVE_PERIOD);
    uint64_t word = mix(seed * 0x9e3779b97f4a7c15u + ((uint64_t)rank << 48) + place);
    if (data == COLLECTIVE_COUNTED)
        return counted(word, s->ranks);
    return rounded(s->dtype, (float)((double)(word >> 11) * 0x1p-52 - 1));
}

/* Any order of n-1 additions, each rounded to half an ulp of its result at most, is
 * off by at most (n-1) u times the sum of the amounts (Higham, "Accuracy and stability
 * of numerical algorithms", 4.2); twice that for rounding to the dtype in between. */
static collective_expected sum_of_ranks(const collective_shape *s, collective_data data,
                                        uint64_t seed, int64_t index)
{
    const double unit = s->dtype == KERNEL_BF16 ? 0x1p-8 : 0x1p-24;
    collective_expected sum = {0, 0};
    double amounts = 0;
    for (int rank = 0; rank < s->ranks; rank++) {
        double value = (double)collective_input(s, data, seed, rank, index);
        sum.value += value;
        amounts += fabs(value);
    }
    if (data == COLLECTIVE_RANDOM)
        sum.tolerance = 2 * (s->ranks - 1) * unit * amounts;
    return sum;
}

collective_origin collective_origin_of(const collective_shape *s, int rank, int64_t index)
{
    const int64_t within = index % s->block;
    collective_origin o = {COLLECTIVE_SUM, index, collective_receive_count(s) - index};
    switch (s->operation) {
    case COLLECTIVE_ALL_REDUCE: break;
    case COLLECTIVE_REDUCE_SCATTER: o.at = rank * s->block + index; break;
    case COLLECTIVE_BROADCAST: o.from = 0; break;
    case COLLECTIVE_SEND_RECEIVE: o.from = (rank + s->ranks - 1) % s->ranks; break;
    case COLLECTIVE_ALL_GATHER:
        o = (collective_origin){(int)(index / s->block), within, s->block - within};
        break;
    case COLLECTIVE_ALL_TO_ALL:
        o = (collective_origin){(int)(index / s->block), rank * s->block + within,
                                s->block - within};
        break;
    }
    return o;
}

collective_expected collective_output(const collective_shape *s, collective_data data,
                                      uint64_t seed, int rank, int64_t index)
{
    collective_origin o = collective_origin_of(s, rank, index);
    if (o.from == COLLECTIVE_SUM) return sum_of_ranks(s, data, seed, o.at);
    return (collective_expected){(double)collective_input(s, data, seed, o.from, o.at), 0};
}

/* ---- memory ------------------------------------------------------------------------ */

/* Between two buffers, so that neither's end is in the other's cache line. */
enum { ALIGNMENT = 512 };

static size_t buffer_bytes(const collective_shape *s, int64_t count)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)count, kernel_dtype_bytes(s->dtype), &bytes) ||
        bytes > SIZE_MAX / 4)
        return SIZE_MAX / 4;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t collective_memory_bytes(const collective_shape *s)
{
    size_t send = buffer_bytes(s, collective_send_count(s));
    size_t receive = buffer_bytes(s, collective_receive_count(s));
    size_t larger = send > receive ? send : receive;
    size_t bytes = s->in_place ? larger : send + receive;
    return larger == SIZE_MAX / 4 ? SIZE_MAX : bytes;
}

/* In place, the smaller buffer is this rank's block of the larger one. */
void collective_place(const collective_shape *s, int rank, collective_buffers *b)
{
    char *memory = (char *)b->memory;
    size_t block = (size_t)s->block * kernel_dtype_bytes(s->dtype) * (size_t)rank;
    int gathers = s->operation == COLLECTIVE_ALL_GATHER;
    int scatters = s->operation == COLLECTIVE_REDUCE_SCATTER;
    b->bytes = collective_memory_bytes(s);
    b->send = memory + (s->in_place && gathers ? block : 0);
    b->receive = memory + (!s->in_place ? buffer_bytes(s, collective_send_count(s))
                           : scatters   ? block
                                        : 0);
}
