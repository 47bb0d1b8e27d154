/* For what measures on the host and looks at something else than the caches: cold samples are
 * swept of 1 MiB, whatever caches the machine has, of which a sweep takes 5 ms to a second.
 * Behind the implementation; C and C++. */
#ifndef GPUBENCH_TESTS_SMALL_SWEEP_H
#define GPUBENCH_TESTS_SMALL_SWEEP_H

static inline int small_sweep_open(gpubench *bench)
{
    int code = gpb_host_backend.open(bench);
    ((gpb_host *)bench->device_state)->sweep_bytes = 1 << 20;
    return code;
}

/* Behind gpubench_open. */
static inline void small_sweep(gpubench *bench)
{
    static gpb_backend backend;
    if (bench->backend != &gpb_host_backend)
        return;
    backend = gpb_host_backend;
    backend.open = small_sweep_open;
    bench->backend = &backend;
}

#endif
