/*
 * safetensors.h - tensors in a file in the layout that huggingface/safetensors
 * documents: 8 bytes with the header's length, little endian; the header, JSON,
 * {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...};
 * the data, to which the offsets refer, without holes.
 *
 * Both directions are for little-endian machines, as GPUs' hosts are.
 */
#ifndef KERNEL_SAFETENSORS_H
#define KERNEL_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SAFETENSORS_RANK = 8, SAFETENSORS_NAME = 256, SAFETENSORS_REASON = 512 };

/* name: at most SAFETENSORS_NAME - 1 bytes of UTF-8. dtype as in the file: "F32",
 * "BF16", "F16", ... data: elements in row-major order, at any address. */
typedef struct safetensors_tensor {
    char name[SAFETENSORS_NAME];
    char dtype[16];
    int rank;
    int64_t shape[SAFETENSORS_RANK];
    const void *data;
    uint64_t bytes;
} safetensors_tensor;

/* Bytes of an element, 0 of a dtype that is not known. */
uint64_t safetensors_element_bytes(const char *dtype);

/* Writes the tensors to path: beside it first, complete and on the disk before it
 * takes the name, so that a file that was there stays until then. 0; or -1, a
 * reason that names the path in `reason`, and nothing left behind. */
int safetensors_write(const char *path, const safetensors_tensor *tensors, size_t count,
                      char reason[SAFETENSORS_REASON]);

/* The same bytes, as safely on the disk, into a file that has lost its name before the
 * first is written: what measures writing leaves nothing behind, however it ends. In the
 * folder that TMPDIR names, else /tmp. */
int safetensors_write_scratch(const safetensors_tensor *tensors, size_t count,
                              char reason[SAFETENSORS_REASON]);

/* What was read: tensors in the order of the header, data pointing into memory
 * that safetensors_close frees. */
typedef struct safetensors_file {
    safetensors_tensor *tensors;
    size_t count;
    unsigned char *memory;
} safetensors_file;

/* Reads all of a file, of which nothing is trusted: lengths are held against the
 * file's, products checked for overflow, data must be covered without holes,
 * overlaps or rest, names must not repeat. 0; or -1, a reason that names the path,
 * and a file of zeros. */
int safetensors_read(const char *path, safetensors_file *file, char reason[SAFETENSORS_REASON]);

/* The tensor of that name, NULL if there is none. */
const safetensors_tensor *safetensors_find(const safetensors_file *file, const char *name);

/* Also one of zeros. */
void safetensors_close(safetensors_file *file);

#ifdef __cplusplus
}
#endif
#endif
