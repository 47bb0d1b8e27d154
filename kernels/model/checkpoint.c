/*
 * checkpoint.c - a model's parameters to a file and back: see checkpoint.h.
 */
#include "checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head_name[] = "head.weight";

const char *model_checkpoint_dtype(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32:
    case KERNEL_TF32: return "F32";
    case KERNEL_F16: return "F16";
    case KERNEL_BF16: return "BF16";
    case KERNEL_E4M3:
    case KERNEL_U8: break;
    }
    return "U8";
}

/* Biases and what belongs to norms; all else are matrices, also of one row. */
static int is_vector(const parameters_tensor *t)
{
    return strstr(t->name, ".bias") || !strncmp(t->name, "ln", 2);
}

/* A tensor as it is in the file: without the rows that pad a table. */
static safetensors_tensor entry_of(const model_shape *s, kernel_dtype dtype, int64_t index,
                                   const void *values)
{
    parameters_tensor t = model_tensor_at(s, index);
    size_t element = kernel_dtype_bytes(model_storage(dtype));
    safetensors_tensor entry = {.rank = is_vector(&t) ? 1 : 2};
    if (index == 0 || index == model_head_tensor(s)) t.rows = s->vocabulary;
    entry.shape[0] = entry.rank == 2 ? t.rows : t.columns;
    entry.shape[1] = entry.rank == 2 ? t.columns : 0;
    if (t.layer < 0)
        snprintf(entry.name, sizeof entry.name, "%s", t.name);
    else
        snprintf(entry.name, sizeof entry.name, "h.%lld.%s", (long long)t.layer, t.name);
    snprintf(entry.dtype, sizeof entry.dtype, "%s", model_checkpoint_dtype(dtype));
    entry.data = (const char *)values + (size_t)model_tensor_offset(s, index) * element;
    entry.bytes = (uint64_t)(t.rows * t.columns) * element;
    return entry;
}

/* All tensors of values, behind which there is room for `more`; NULL: no memory. */
static safetensors_tensor *entries_of(const model_shape *shape, kernel_dtype dtype,
                                      const void *values, int64_t more)
{
    int64_t count = model_tensor_count(shape);
    safetensors_tensor *entries = calloc((size_t)(count + more), sizeof *entries);
    for (int64_t i = 0; i < count && entries; i++) entries[i] = entry_of(shape, dtype, i, values);
    return entries;
}

/* path NULL: to a file without a name. */
static int write_and_free(const char *path, safetensors_tensor *entries, int64_t count,
                          char reason[SAFETENSORS_REASON])
{
    int code = -1;
    snprintf(reason, SAFETENSORS_REASON, "'%.300s': out of host memory", path ? path : "");
    if (entries)
        code = path ? safetensors_write(path, entries, (size_t)count, reason)
                    : safetensors_write_scratch(entries, (size_t)count, reason);
    free(entries);
    return code;
}

int model_checkpoint_write(const char *path, const model_shape *shape, kernel_dtype dtype,
                           const void *values, char reason[SAFETENSORS_REASON])
{
    return write_and_free(path, entries_of(shape, dtype, values, 0), model_tensor_count(shape),
                          reason);
}

int model_checkpoint_write_scratch(const model_shape *shape, kernel_dtype dtype,
                                   const void *values, char reason[SAFETENSORS_REASON])
{
    return write_and_free(NULL, entries_of(shape, dtype, values, 0), model_tensor_count(shape),
                          reason);
}

static safetensors_tensor ids_of(const model_shape *s, const char *name, const void *ids)
{
    safetensors_tensor entry = {.dtype = "I32", .rank = 2, .shape = {s->batch, s->tokens},
                                .data = ids, .bytes = 4 * (uint64_t)model_rows(s)};
    snprintf(entry.name, sizeof entry.name, "%s", name);
    return entry;
}

int model_outcome_write(const char *path, const model_shape *shape, kernel_dtype dtype,
                        const model_outcome *outcome, char reason[SAFETENSORS_REASON])
{
    enum { OTHERS = 3 };
    int64_t count = model_tensor_count(shape);
    safetensors_tensor *entries = entries_of(shape, dtype, outcome->gradients, OTHERS);
    if (entries) {
        entries[count] = ids_of(shape, "tokens", outcome->tokens);
        entries[count + 1] = ids_of(shape, "targets", outcome->targets);
        entries[count + 2] = (safetensors_tensor){.name = "loss", .dtype = "F32", .rank = 1,
                                                  .shape = {1}, .data = outcome->loss,
                                                  .bytes = sizeof(float)};
    }
    return write_and_free(path, entries, count + OTHERS, reason);
}

/* ---- reading ---------------------------------------------------------------------------- */

/* Why a tensor of the file is not the one that is wanted, or NULL. */
static const char *difference(const safetensors_tensor *found, const safetensors_tensor *wanted)
{
    if (!found) return "is missing";
    if (strcmp(found->dtype, wanted->dtype)) return "has another dtype";
    if (found->rank != wanted->rank || memcmp(found->shape, wanted->shape, sizeof found->shape))
        return "has another shape";
    return NULL;
}

/* Copies a tensor to its place, behind which its table's padding is. */
static void take(const model_shape *s, kernel_dtype dtype, int64_t index,
                 const safetensors_tensor *found, void *values)
{
    parameters_tensor t = model_tensor_at(s, index);
    size_t element = kernel_dtype_bytes(model_storage(dtype));
    char *place = (char *)values + (size_t)model_tensor_offset(s, index) * element;
    size_t bytes = (size_t)found->bytes; /* of a file that is in memory */
    memcpy(place, found->data, bytes);
    memset(place + bytes, 0, (size_t)parameters_elements(&t) * element - bytes);
}

/* A tied model's head may be in the file a second time, if it is the table. */
static const char *check_rest(const model_shape *s, const safetensors_file *file,
                              const char **name)
{
    size_t wanted = (size_t)model_tensor_count(s);
    const safetensors_tensor *table = safetensors_find(file, "token_embedding");
    const safetensors_tensor *head = s->tied ? safetensors_find(file, head_name) : NULL;
    *name = head_name;
    if (head && (difference(head, table) || memcmp(head->data, table->data, (size_t)table->bytes)))
        return "is not the token table, to which the model's head is tied";
    if (file->count == wanted + (head != NULL)) return NULL;
    *name = "";
    return "has more tensors than the model";
}

static const char *take_all(const model_shape *s, kernel_dtype dtype,
                            const safetensors_file *file, void *values, char name[])
{
    const char *why = NULL, *other;
    for (int64_t i = 0; i < model_tensor_count(s) && !why; i++) {
        safetensors_tensor wanted = entry_of(s, dtype, i, values);
        const safetensors_tensor *found = safetensors_find(file, wanted.name);
        why = difference(found, &wanted);
        memcpy(name, wanted.name, sizeof wanted.name);
        if (!why) take(s, dtype, i, found, values);
    }
    if (why) return why;
    why = check_rest(s, file, &other);
    snprintf(name, SAFETENSORS_NAME, "%s", other);
    return why;
}

int model_checkpoint_read(const char *path, const model_shape *shape, kernel_dtype dtype,
                          void *values, char reason[SAFETENSORS_REASON])
{
    char name[SAFETENSORS_NAME];
    safetensors_file file;
    const char *why;
    if (safetensors_read(path, &file, reason) != 0) return -1;
    why = take_all(shape, dtype, &file, values, name);
    if (why)
        snprintf(reason, SAFETENSORS_REASON, "'%.200s': %s%.100s %s", path,
                 name[0] ? "tensor " : "it", name, why);
    safetensors_close(&file);
    return why ? -1 : 0;
}
