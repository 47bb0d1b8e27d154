/* A file of tensors from anywhere: it is refused with a reason, or its tensors' data lie in
 * the file, every byte of them readable. */
#define _GNU_SOURCE
#include "../../kernels/common/safetensors.h"
#include "fuzz.h"

static void check_tensor(const safetensors_file *file, const safetensors_tensor *tensor,
                         size_t size)
{
    const unsigned char *data = tensor->data;
    uint64_t elements = 1;
    volatile unsigned char sum = 0;
    require(tensor->rank >= 0 && tensor->rank <= SAFETENSORS_RANK && tensor->bytes <= size);
    for (int i = 0; i < tensor->rank; i++)
        elements *= (uint64_t)tensor->shape[i];
    require(tensor->bytes == elements * safetensors_element_bytes(tensor->dtype));
    for (uint64_t i = 0; i < tensor->bytes; i++)
        sum = (unsigned char)(sum + data[i]);
    require(safetensors_find(file, tensor->name) == tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char reason[SAFETENSORS_REASON] = "";
    struct memory_file memory = memory_file_open(data, size);
    safetensors_file file;
    int code = safetensors_read(memory.path, &file, reason);
    require((code == 0) == (reason[0] == '\0'));
    require(code == 0 || (file.count == 0 && !file.tensors && !file.memory));
    for (size_t i = 0; i < file.count; i++)
        check_tensor(&file, &file.tensors[i], size);
    safetensors_close(&file);
    memory_file_close(&memory);
    return 0;
}
