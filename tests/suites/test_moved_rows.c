/*
 * test_moved_rows.c - a suite whose tables of variants are turned around still
 * measures and verifies every case: it takes variants by their names. Compiled
 * once for each suite, SUITE_FILE, with a small SHAPE for it.
 */
#include "../../suites/parallel.c"
#include "../../suites/peaks.c"

#include "../../suites/gpubench.c"

#include "../../suites/suite.c"

#include "../../suites/once.c"

#include "../kernels/kernel_test.h"

#include "../../kernels/attention/attention.h"
#include "../../kernels/block/block.h"
#include "../../kernels/ffn/ffn.h"
#include "../../kernels/loss/loss.h"
#include "../../kernels/memcpy/memcpy.h"
#include "../../kernels/model/model.h"
#include "../../kernels/norm/norm.h"
#include "../../kernels/optimizer/optimizer.h"

#define TABLES(X) X(attention_forward_cpu) X(attention_backward_cpu) \
    X(block_forward_cpu) X(block_backward_cpu) X(ffn_forward_cpu) X(ffn_backward_cpu) \
    X(loss_forward_cpu) X(loss_backward_cpu) X(loss_forward_backward_cpu) \
    X(memcpy_copy_cpu) X(model_cpu) X(norm_forward_cpu) X(norm_backward_cpu) \
    X(optimizer_adamw_cpu) X(optimizer_sgd_cpu) X(optimizer_clip_norm_cpu) \
    X(optimizer_clip_scale_cpu)

/* A table of our own in place of each, of the same rows, the last first. */
#define DECLARE(name) static kernel_table turned_##name;
TABLES(DECLARE)

static void turn(const kernel_table *table, kernel_table *turned)
{
    kernel_variant *rows = malloc(table->count * sizeof *rows);
    assert_non_null(rows);
    for (size_t row = 0; row < table->count; row++)
        rows[row] = table->rows[table->count - 1 - row];
    *turned = (kernel_table){rows, table->count};
}

static void turn_all(void)
{
#define TURN(name) turn(&name, &turned_##name);
    TABLES(TURN)
}

#define attention_forward_cpu turned_attention_forward_cpu
#define attention_backward_cpu turned_attention_backward_cpu
#define block_forward_cpu turned_block_forward_cpu
#define block_backward_cpu turned_block_backward_cpu
#define ffn_forward_cpu turned_ffn_forward_cpu
#define ffn_backward_cpu turned_ffn_backward_cpu
#define loss_forward_cpu turned_loss_forward_cpu
#define loss_backward_cpu turned_loss_backward_cpu
#define loss_forward_backward_cpu turned_loss_forward_backward_cpu
#define memcpy_copy_cpu turned_memcpy_copy_cpu
#define model_cpu turned_model_cpu
#define norm_forward_cpu turned_norm_forward_cpu
#define norm_backward_cpu turned_norm_backward_cpu
#define optimizer_adamw_cpu turned_optimizer_adamw_cpu
#define optimizer_sgd_cpu turned_optimizer_sgd_cpu
#define optimizer_clip_norm_cpu turned_optimizer_clip_norm_cpu
#define optimizer_clip_scale_cpu turned_optimizer_clip_scale_cpu

#define main suite_main
#include SUITE_FILE
#undef main

static void test_every_case_verifies(void **unused)
{
    char words[][16] = {"suite", "--device", "cpu", "--quiet", "--max-samples", "1", "--warmup",
                        "1", "--mode", "hot", "--shape"};
    static char shape[] = SHAPE;
    char *arguments[sizeof words / sizeof *words + 1];
    int count = 0;
    (void)unused;
    while (count < (int)(sizeof words / sizeof *words)) {
        arguments[count] = words[count];
        count++;
    }
    arguments[count++] = shape;
    turn_all();
    assert_int_equal(suite_main(count, arguments), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_case_verifies)};
    return cmocka_run_group_tests_name("moved_rows of " SUITE_FILE, tests, NULL, NULL);
}
