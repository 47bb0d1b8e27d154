/*
 * parallel.c - loops over several threads: see parallel.h.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "parallel.h"

#include <sched.h>
#include <unistd.h>

static int64_t processors(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return CPU_COUNT(&allowed);
#endif
    return sysconf(_SC_NPROCESSORS_ONLN);
}

int64_t parallel_range_count(int64_t count, int64_t range_length)
{
    return count / range_length + (count % range_length > 0);
}

/* Takes ranges until none is left. */
static void *work(void *argument)
{
    parallel_loop *loop = argument;
    for (;;) {
        int64_t range = atomic_fetch_add(&loop->next_range, 1), begin, left;
        if (range >= loop->range_count)
            return NULL;
        begin = range * loop->range_length;
        left = loop->count - begin;
        loop->function(loop->context, begin,
                       begin + (left < loop->range_length ? left : loop->range_length));
    }
}

void parallel_start(parallel_loop *loop, int64_t count, int64_t range_length,
                    parallel_function *function, void *context)
{
    int64_t ranges = parallel_range_count(count, range_length), threads = processors();
    threads = threads < ranges ? threads : ranges;
    threads = threads < PARALLEL_MOST_THREADS ? threads : PARALLEL_MOST_THREADS;
    *loop = (parallel_loop){.function = function, .context = context, .count = count,
                            .range_length = range_length, .range_count = ranges};
    while (loop->helper_count < threads - 1 && atomic_load(&loop->next_range) < ranges &&
           pthread_create(&loop->helpers[loop->helper_count], NULL, work, loop) == 0)
        loop->helper_count++;
}

void parallel_finish(parallel_loop *loop)
{
    work(loop);
    while (loop->helper_count > 0)
        pthread_join(loop->helpers[--loop->helper_count], NULL);
}

void parallel_for(int64_t count, int64_t range_length, parallel_function *function, void *context)
{
    parallel_loop loop;
    parallel_start(&loop, count, range_length, function, context);
    parallel_finish(&loop);
}
