/*
 * test_moved_rows.c - a suite whose tables of variants are turned around still
 * measures and verifies every case: it takes variants by their names. Compiled
 * once for each suite, SUITE_FILE, with a small SHAPE for it.
 */
#include "../../suites/parallel.c"

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

/* The same rows, the last first. */
static kernel_table turned(const kernel_table *table)
{
    enum { MOST_TABLES = 16, MOST_ROWS = 8 };
    static kernel_variant room[MOST_TABLES][MOST_ROWS];
    static const kernel_variant *taken[MOST_TABLES];
    size_t i = 0;
    while (taken[i] && taken[i] != table->rows) i++;
    assert_true(i + 1 < MOST_TABLES && table->count <= MOST_ROWS);
    taken[i] = table->rows;
    for (size_t row = 0; row < table->count; row++)
        room[i][row] = table->rows[table->count - 1 - row];
    return (kernel_table){room[i], table->count};
}

/* Inside its own expansion a macro's name means the table. */
#define attention_forward_cpu turned(&attention_forward_cpu)
#define attention_backward_cpu turned(&attention_backward_cpu)
#define block_forward_cpu turned(&block_forward_cpu)
#define block_backward_cpu turned(&block_backward_cpu)
#define ffn_forward_cpu turned(&ffn_forward_cpu)
#define ffn_backward_cpu turned(&ffn_backward_cpu)
#define loss_forward_cpu turned(&loss_forward_cpu)
#define loss_backward_cpu turned(&loss_backward_cpu)
#define loss_forward_backward_cpu turned(&loss_forward_backward_cpu)
#define memcpy_copy_cpu turned(&memcpy_copy_cpu)
#define model_cpu turned(&model_cpu)
#define norm_forward_cpu turned(&norm_forward_cpu)
#define norm_backward_cpu turned(&norm_backward_cpu)
#define optimizer_adamw_cpu turned(&optimizer_adamw_cpu)
#define optimizer_sgd_cpu turned(&optimizer_sgd_cpu)
#define optimizer_clip_norm_cpu turned(&optimizer_clip_norm_cpu)
#define optimizer_clip_scale_cpu turned(&optimizer_clip_scale_cpu)

#define main suite_main
#include SUITE_FILE
#undef main

static void test_every_case_verifies(void **unused)
{
    char words[][16] = {"suite", "--device", "cpu", "--quiet", "--max-samples", "1", "--warmup",
                        "1", "--mode", "cold", "--shape"};
    static char shape[] = SHAPE;
    char *arguments[sizeof words / sizeof *words + 1];
    int count = 0;
    (void)unused;
    while (count < (int)(sizeof words / sizeof *words)) {
        arguments[count] = words[count];
        count++;
    }
    arguments[count++] = shape;
    assert_int_equal(suite_main(count, arguments), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_case_verifies)};
    return cmocka_run_group_tests_name("moved_rows of " SUITE_FILE, tests, NULL, NULL);
}
