/* What the tests of whole suites share: a suite that measures the CPU for as
 * short as it can, and the verdict on its only case. */
#ifndef SUITE_TEST_H
#define SUITE_TEST_H

#include "../kernels/kernel_test.h"
#include "../small_sweep.h"

static inline suite open_quick_suite(void)
{
    static char name[] = "test", device[] = "--device", cpu[] = "cpu", quiet[] = "--quiet",
                samples[] = "--max-samples", warmup[] = "--warmup", few[] = "1", mode[] = "--mode",
                cold[] = "cold", most[] = "--max-time", seconds[] = "60";
    static char *arguments[] = {name, device, cpu, quiet, samples, few, warmup, few,
                                mode, cold, most, seconds};
    suite s = suite_open("test", "none", sizeof arguments / sizeof *arguments, arguments);
    small_sweep(s.bench);
    return s;
}

/* Measures what is queued, one case, and closes the suite. */
static inline void assert_verdict(suite *s, const char *status)
{
    gpubench_run(s->bench);
    assert_int_equal(gpubench_row_count(s->bench), 1);
    assert_string_equal(gpubench_value(s->bench, 0, "status"), status);
    suite_close(s);
}

#endif
