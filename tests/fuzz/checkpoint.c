/* A model's parameters from a file from anywhere: it is the model's, or refused with a reason;
 * nothing is written behind the values. */
#define _GNU_SOURCE
#include "../../kernels/model/checkpoint.h"
#include "fuzz.h"

/* One whose head is its table, padded, and one with a head, both smaller than any model. */
static const model_shape shapes[] = {{1, 4, 2, 1, 3, 1, 3, 4, 1}, {1, 2, 2, 1, 2, 1, 3, 3, 0}};
static const kernel_dtype dtypes[] = {KERNEL_F32, KERNEL_BF16};

static void read_as(const char *path, const model_shape *shape, kernel_dtype dtype)
{
    char reason[SAFETENSORS_REASON] = "";
    const model_args args = {.shape = *shape, .dtype = dtype};
    model_plan plan = model_plan_of(&args);
    void *values = malloc((size_t)plan.bytes[MODEL_VALUES]);
    require(values != NULL);
    int code = model_checkpoint_read(path, shape, dtype, values, reason);
    require((code == 0) == (reason[0] == '\0'));
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct memory_file file = memory_file_open(data, size);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t j = 0; j < sizeof dtypes / sizeof dtypes[0]; j++)
            read_as(file.path, &shapes[i], dtypes[j]);
    memory_file_close(&file);
    return 0;
}
