/* Loaded in front of libc: the system's clock is set back by a minute at each look, and the
 * monotonic one, which the kernel lets nobody set, stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

/* How many looks there were: an hour ahead at first. */
static time_t behind(void)
{
    static time_t looks;
    return 60 * looks++ - 3600;
}

time_t time(time_t *told)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*libc)(clockid_t, struct timespec *);
    int code;
    if (!libc)
        *(void **)&libc = dlsym(RTLD_NEXT, "clock_gettime");
    code = libc(clock, now);
    if (code == 0 && clock == CLOCK_REALTIME)
        now->tv_sec -= behind();
    return code;
}
