/* The thread for what may hang, while the system's clock is set back by an hour. */
#define _DEFAULT_SOURCE /* syscall */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "suites/worker.c"

#include <cmocka.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

/* In front of the C library's: when it is asked, the time of day is still the later one. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    long code = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += 3600;
    return (int)code;
}

static int wait_for_lock(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    return 7;
}

static void a_clock_that_is_set_back_lengthens_no_wait(void **state)
{
    (void)state;
    alarm(60); /* which ends a wait of an hour */
    assert_int_equal(worker_open(), 0);
    pthread_mutex_lock(&held);
    assert_int_equal(worker_do(wait_for_lock, NULL, 0.05), WORKER_LATE);
    pthread_mutex_unlock(&held);
    assert_int_equal(worker_wait(50), 7);
    worker_close();
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_is_set_back_lengthens_no_wait),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
