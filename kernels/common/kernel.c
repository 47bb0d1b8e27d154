/*
 * kernel.c - a table's row by its name, names and sizes of dtypes, names of error codes. No CUDA here:
 * the libraries' statuses are shown by number.
 */
#include "kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const kernel_variant *kernel_find(const kernel_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(table->rows[i].name, name)) return &table->rows[i];
    return NULL;
}

typedef struct dtype_row {
    const char *name;
    size_t bytes;
} dtype_row;

/* An unknown dtype has 0 bytes and a name that nobody mistakes for one. A switch,
 * because a table would give a new dtype an empty row and say nothing. */
static dtype_row find_dtype(kernel_dtype dtype)
{
    switch (dtype) {
    case KERNEL_F32: return (dtype_row){"f32", 4};
    case KERNEL_TF32: return (dtype_row){"tf32", 4};
    case KERNEL_F16: return (dtype_row){"f16", 2};
    case KERNEL_BF16: return (dtype_row){"bf16", 2};
    case KERNEL_E4M3: return (dtype_row){"e4m3", 1};
    case KERNEL_U8: return (dtype_row){"u8", 1};
    }
    return (dtype_row){"unknown", 0};
}

kernel_dtype kernel_result_dtype(kernel_dtype dtype)
{
    return dtype == KERNEL_E4M3 ? KERNEL_BF16 : dtype;
}

size_t kernel_dtype_bytes(kernel_dtype dtype)
{
    return find_dtype(dtype).bytes;
}

const char *kernel_dtype_name(kernel_dtype dtype)
{
    return find_dtype(dtype).name;
}

/* The text lives until the thread asks for the next one. */
static const char *library_status(const char *library, int status)
{
    static _Thread_local char text[48];
    snprintf(text, sizeof text, "%s status %d", library, status);
    return text;
}

static _Thread_local char said[256];

int kernel_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    return KERNEL_ERROR_SAID;
}

const char *kernel_error_string(int code)
{
    switch (code) {
    case KERNEL_OK: return "success";
    case KERNEL_ERROR_ARGUMENT: return "shape or dtype that the kernel does not take";
    case KERNEL_ERROR_MEMORY: return "out of host memory";
    case KERNEL_ERROR_INDEX: return "index in the input data out of range";
    case KERNEL_ERROR_SAID: return said;
    default: break;
    }
    if (code > KERNEL_ERROR_ARGUMENT) return "unknown kernel error";
    if (code >= KERNEL_ERROR_CURAND) return library_status("cuRAND", code - KERNEL_ERROR_CURAND);
    if (code >= KERNEL_ERROR_CUBLAS) return library_status("cuBLAS", code - KERNEL_ERROR_CUBLAS);
    return code < 0 ? "unknown kernel error" : NULL;
}
