/*
 * once.c - one run of a variant while a case is built: see once.h.
 */
#include "once.h"

int suite_run_once(gpubench *bench, const kernel_variant *variant, const void *args)
{
    size_t bytes = variant->workspace_bytes ? variant->workspace_bytes(args) : 0;
    void *state = NULL, *workspace = NULL;
    int code = 0;
    if (bytes > 0 && !(workspace = gpubench_alloc(bench, bytes, GPUBENCH_DEVICE)))
        return GPUBENCH_OOM;
    if (variant->prepare) code = variant->prepare(args, &state);
    if (code == 0) code = variant->run(args, workspace, state, NULL);
    if (code == 0) code = gpubench_finish(bench); /* kernels may still use what release frees */
    if (state && variant->release) variant->release(state);
    return code;
}

int suite_run_named(gpubench *bench, const kernel_table *table, const char *name,
                    const void *args)
{
    const kernel_variant *variant = kernel_find(table, name);
    if (!variant)
        return gpubench_fail(bench, GPUBENCH_FAILED, "no variant '%s' to start from", name);
    return suite_run_once(bench, variant, args);
}
