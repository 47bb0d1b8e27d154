/* cmocka wants these before itself. */
#ifndef GPUBENCH_TESTS_COMPARE_CMOCKA_ALL_H
#define GPUBENCH_TESTS_COMPARE_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
