/*
 * test_collective.c - sizes, bandwidths, inputs and oracle of the collectives, against
 * counts by hand and against a second way to get each result: every rank's input as an
 * array, moved as the operation's name says.
 */
#include "kernel_test.h"

#include "../../kernels/collective/collective.h"

/* n, then the bus bandwidth of 1e9 bytes in 10 ms (100 GB/s), as nccl-tests has it. */
static void bus_bandwidth(void **state)
{
    static const struct {
        int n;
        double all_reduce, others, broadcast;
    } known[] = {
        {2, 100, 50, 100}, {3, 133.33, 66.67, 100}, {4, 150, 75, 100}, {8, 175, 87.5, 100}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (int o = 0; o < COLLECTIVE_OPERATIONS; o++) {
            collective_operation operation = (collective_operation)o;
            int whole = operation == COLLECTIVE_BROADCAST || operation == COLLECTIVE_SEND_RECEIVE;
            double wanted = operation == COLLECTIVE_ALL_REDUCE ? known[i].all_reduce
                            : whole                            ? known[i].broadcast
                                                               : known[i].others;
            assert_close(100 * collective_bus_factor(operation, known[i].n), wanted, 0.01);
        }
    }
    for (int i = 0; i < COLLECTIVE_OPERATIONS; i++)
        assert_close(collective_bus_factor((collective_operation)i, 1), 0, 0);
}

static collective_shape shape_of(collective_operation operation, kernel_dtype dtype, int ranks,
                                 int64_t bytes)
{
    collective_shape s = {.operation = operation, .dtype = dtype, .ranks = ranks};
    s.block = collective_block(operation, dtype, ranks, bytes);
    return s;
}

/* 1,000,003 floats on 3 ranks: 333,334 each would be one too many. */
static void size_is_what_was_moved(void **state)
{
    collective_shape s = shape_of(COLLECTIVE_REDUCE_SCATTER, KERNEL_F32, 3, 4000012);
    (void)state;
    assert_int_equal(s.block, 333334);
    assert_int_equal(collective_bytes(&s), 4000008);
    assert_int_equal(collective_send_count(&s), 1000002);
    assert_int_equal(collective_receive_count(&s), 333334);
    s = shape_of(COLLECTIVE_ALL_REDUCE, KERNEL_F32, 3, 4000012);
    assert_int_equal(collective_bytes(&s), 4000012);
    s = shape_of(COLLECTIVE_ALL_GATHER, KERNEL_BF16, 8, 8); /* half an element each */
    assert_int_equal(collective_bytes(&s), 16);
    s.block = INT64_MAX;
    assert_true(collective_bytes(&s) == UINT64_MAX);
    s.operation = COLLECTIVE_ALL_TO_ALL;
    assert_true(collective_send_count(&s) == INT64_MAX && collective_receive_count(&s) == INT64_MAX);
    assert_true(collective_memory_bytes(&s) == SIZE_MAX);
}

/* Whole numbers whose sum over all ranks bf16 holds. */
static void counted_inputs_sum_exactly(void **state)
{
    static const int ranks[] = {1, 2, 7, 32, 100, 256};
    (void)state;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        collective_shape s = shape_of(COLLECTIVE_ALL_REDUCE, KERNEL_BF16, ranks[i], 2000);
        int different = 0;
        for (int64_t at = 0; at < s.block; at++) {
            double most = 0;
            for (int rank = 0; rank < s.ranks; rank++) {
                double value = (double)collective_input(&s, COLLECTIVE_COUNTED, 5, rank, at);
                assert_close(value, round(value), 0);
                most += fabs(value);
                different += value != (double)collective_input(&s, COLLECTIVE_COUNTED, 6, rank, at);
            }
            assert_true(most <= 256);
            assert_close(collective_output(&s, COLLECTIVE_COUNTED, 5, 0, at).tolerance, 0, 0);
        }
        assert_true(different > s.ranks * s.block / 4); /* another seed, other inputs */
    }
}

enum { RANKS = 3, BLOCK = 5, WHOLE = RANKS * BLOCK };

/* Cards by local rank, unless each process sees its own one only. */
static void cards(void **state)
{
    (void)state;
    assert_int_equal(collective_pick_device(0, 2, 4), 0);
    assert_int_equal(collective_pick_device(1, 2, 4), 1);
    assert_int_equal(collective_pick_device(1, 2, 1), 0);
    assert_int_equal(collective_pick_device(1, 4, 2), -1);
    assert_int_equal(collective_pick_device(3, 4, 4), 3); /* just enough */
}

/* What rank `rank` must have at `index`, from the inputs of all as arrays. */
static double by_hand(collective_operation operation, double in[RANKS][WHOLE], int rank, int index)
{
    double sum = 0;
    switch (operation) {
    case COLLECTIVE_ALL_REDUCE:
        for (int i = 0; i < RANKS; i++) sum += in[i][index];
        return sum;
    case COLLECTIVE_REDUCE_SCATTER:
        for (int i = 0; i < RANKS; i++) sum += in[i][rank * BLOCK + index];
        return sum;
    case COLLECTIVE_ALL_GATHER: return in[index / BLOCK][index % BLOCK];
    case COLLECTIVE_ALL_TO_ALL: return in[index / BLOCK][rank * BLOCK + index % BLOCK];
    case COLLECTIVE_BROADCAST: return in[0][index];
    case COLLECTIVE_SEND_RECEIVE: break;
    }
    return in[rank == 0 ? RANKS - 1 : rank - 1][index];
}

static void oracle_is_the_operation(void **state)
{
    (void)state;
    for (int o = 0; o < COLLECTIVE_OPERATIONS * 2; o++) {
        collective_shape s = {.operation = (collective_operation)(o / 2), .dtype = KERNEL_F32,
                              .ranks = RANKS, .block = BLOCK};
        collective_data data = o % 2 ? COLLECTIVE_RANDOM : COLLECTIVE_COUNTED;
        double in[RANKS][WHOLE];
        for (int rank = 0; rank < RANKS; rank++)
            for (int i = 0; i < WHOLE; i++)
                in[rank][i] = (double)collective_input(&s, data, 9, rank, i);
        for (int rank = 0; rank < RANKS; rank++)
            for (int i = 0; i < collective_receive_count(&s); i++) {
                collective_expected e = collective_output(&s, data, 9, rank, i);
                assert_close(e.value, by_hand(s.operation, in, rank, i), 1e-15);
                assert_true(e.tolerance < 1e-5);
            }
    }
}

/* (n-1) roundings of half an ulp, twice, of the amounts' sum; none where all ranks sum exactly,
 * and none of one rank, which adds nothing. */
static void the_tolerance_of_a_sum(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < 2; dtype++)
        for (int ranks = 1; ranks <= 5; ranks++) {
            collective_shape s = {.operation = COLLECTIVE_ALL_REDUCE,
                                  .dtype = dtype ? KERNEL_BF16 : KERNEL_F32, .ranks = ranks, .block = 4};
            double amounts = 0;
            for (int rank = 0; rank < ranks; rank++)
                amounts += fabs((double)collective_input(&s, COLLECTIVE_RANDOM, 3, rank, 2));
            assert_close(collective_output(&s, COLLECTIVE_RANDOM, 3, 0, 2).tolerance,
                         (ranks - 1) * amounts / (dtype ? 128 : 8388608), 1e-15);
        }
}

/* Where runs of elements come from, of three ranks with blocks of five. */
static void origins(void **state)
{
    static const struct {
        collective_operation operation;
        int rank, index, from, at, count;
    } known[] = {{COLLECTIVE_ALL_GATHER, 1, 7, 1, 2, 3},
                 {COLLECTIVE_ALL_TO_ALL, 2, 7, 1, 12, 3},
                 {COLLECTIVE_REDUCE_SCATTER, 2, 1, COLLECTIVE_SUM, 11, 4},
                 {COLLECTIVE_ALL_REDUCE, 2, 1, COLLECTIVE_SUM, 1, 4},
                 {COLLECTIVE_BROADCAST, 2, 3, 0, 3, 2},
                 {COLLECTIVE_SEND_RECEIVE, 0, 0, 2, 0, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        collective_shape s = {.operation = known[i].operation, .ranks = RANKS, .block = BLOCK};
        collective_origin o = collective_origin_of(&s, known[i].rank, known[i].index);
        assert_int_equal(o.from, known[i].from);
        assert_int_equal(o.at, known[i].at);
        assert_int_equal(o.count, known[i].count);
    }
}

/* What is copied as memory is what was made, and blocks of a power of two do not look alike. */
static void inputs_begin_anew(void **state)
{
    collective_shape s = shape_of(COLLECTIVE_ALL_REDUCE, KERNEL_F32, 2, 1 << 24);
    int alike = 0;
    (void)state;
    for (int64_t at = 0; at < 1000; at++) {
        float value = collective_input(&s, COLLECTIVE_RANDOM, 3, 1, at);
        assert_true(value == collective_input(&s, COLLECTIVE_RANDOM, 3, 1, at + COLLECTIVE_PERIOD));
        for (int64_t block = 512; block < 1 << 22; block *= 2)
            alike += value == collective_input(&s, COLLECTIVE_RANDOM, 3, 1, at + block);
    }
    assert_int_equal(alike, 0);
    for (int divisor = 2; divisor * divisor <= COLLECTIVE_PERIOD; divisor++)
        assert_true(COLLECTIVE_PERIOD % divisor != 0);
}

/* In place, what a rank gives or gets is its own block of the larger buffer. */
static void buffers_in_place(void **state)
{
    char memory[4096];
    collective_buffers b = {.memory = memory};
    collective_shape s = {COLLECTIVE_ALL_GATHER, KERNEL_BF16, 4, 1, 7};
    (void)state;
    collective_place(&s, 3, &b);
    assert_ptr_equal(b.receive, memory);
    assert_ptr_equal(b.send, memory + 3 * 14);
    s.operation = COLLECTIVE_REDUCE_SCATTER;
    collective_place(&s, 3, &b);
    assert_ptr_equal(b.send, memory);
    assert_ptr_equal(b.receive, memory + 3 * 14);
    s.in_place = 0;
    collective_place(&s, 3, &b);
    assert_ptr_equal(b.send, memory);
    assert_ptr_equal(b.receive, memory + 512);
    assert_int_equal(b.bytes, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bus_bandwidth),
        cmocka_unit_test(size_is_what_was_moved),
        cmocka_unit_test(counted_inputs_sum_exactly),
        cmocka_unit_test(oracle_is_the_operation),
        cmocka_unit_test(origins),
        cmocka_unit_test(inputs_begin_anew),
        cmocka_unit_test(buffers_in_place),
        cmocka_unit_test(cards), cmocka_unit_test(the_tolerance_of_a_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
