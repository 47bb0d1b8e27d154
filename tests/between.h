/* A number in a range, both ends included, behind cmocka.h: its own macro for that has another
 * name from version 2 on. */
#ifndef GPUBENCH_TESTS_BETWEEN_H
#define GPUBENCH_TESTS_BETWEEN_H

#define assert_between(value, least, most) \
    assert_between_numbers((double)(value), (double)(least), (double)(most))

static inline void assert_between_numbers(double value, double least, double most)
{
    if (!(value >= least && value <= most))
        fail_msg("%.17g is not within %.17g to %.17g", value, least, most);
}

#endif
