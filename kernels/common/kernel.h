/*
 * kernel.h - what every operation in kernels/ shares: dtypes, error codes and
 * the row of a variant table.
 *
 * An operation's header (attention.h, memcpy.h, ...) declares its shape, its
 * argument struct, the bytes and operations of a shape, and one table of
 * variants per backend. A new variant is one run function and one table row.
 *
 * Kernels know nothing of measuring: they enqueue work and return. What chooses
 * between a library's algorithms by timing them does so in prepare, in a file of
 * its own (../linear/tuner.cu), and reports nothing.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How an element is stored and, for products, which arithmetic is used:
 * tf32 is stored as f32 and multiplied with the tensor cores' tf32 mode. e4m3 is
 * what a product's operands are, with scales; what else belongs to the operation
 * is bf16, and the operation's header says which. */
typedef enum kernel_dtype {
    KERNEL_F32,
    KERNEL_TF32,
    KERNEL_F16,
    KERNEL_BF16,
    KERNEL_E4M3,
    KERNEL_U8
} kernel_dtype;

/* No member, so that a switch over all dtypes needs no case for it. Such a switch
 * has no default: kernels and suites are compiled with -Wswitch-enum, and a new
 * dtype shows every place that has to know what it means. */
enum { KERNEL_DTYPE_COUNT = KERNEL_U8 + 1 };

#define KERNEL_DTYPE_BIT(dtype) (1u << (dtype))

/* The CUDA runtime's cudaStream_t, spelled so that plain C needs no CUDA
 * header. The CPU backend gets NULL. */
typedef struct CUstream_st *kernel_stream;

/* What run and prepare return. 0 is success; 1 to 9999 is a cudaError_t; the
 * libraries' own status codes are shifted so that one int tells them apart. */
enum {
    KERNEL_OK = 0,
    KERNEL_ERROR_CUBLAS = 10000,   /* + cublasStatus_t */
    KERNEL_ERROR_CURAND = 20000,   /* + curandStatus_t */
    KERNEL_ERROR_ARGUMENT = 30000, /* a shape or dtype the variant does not take */
    KERNEL_ERROR_MEMORY = 30001,   /* host memory */
    KERNEL_ERROR_INDEX = 30002,    /* an index in the input data is out of range */
    KERNEL_ERROR_SAID = 30003      /* what kernel_fail was given */
};

/* One way to do an operation. args points at the operation's own argument
 * struct, whose pointers are device memory for CUDA variants and host memory
 * for CPU variants. */
typedef struct kernel_variant {
    const char *name;                             /* what the CSV calls it: "tiled" */
    const char *note;                             /* one line: how it works */
    unsigned dtypes;                              /* set of KERNEL_DTYPE_BIT */
    int min_compute_capability;                   /* 80 is sm_80; 0 on the CPU */
    int deterministic;                            /* 1: equal inputs give equal bits */
    const char *(*unsupported)(const void *args); /* why not this shape; NULL result: it is fine;
                                                     NULL function: every shape is. Asked
                                                     before the pointers in args are set */
    size_t (*workspace_bytes)(const void *args);  /* NULL: none needed */
    int (*prepare)(const void *args, void **state); /* handles, plans; not timed; NULL: none */
    void (*release)(void *state);                   /* undoes prepare */
    int (*run)(const void *args, void *workspace, void *state, kernel_stream stream);
    const char *(*runs_on)(void); /* what of the host it uses ("avx2, 2 threads"); NULL: not said */
} kernel_variant;

typedef struct kernel_table {
    const kernel_variant *rows;
    size_t count;
} kernel_table;

/* The row of that name, wherever in the table it is; NULL if there is none. */
const kernel_variant *kernel_find(const kernel_table *table, const char *name);

/* What a product of the dtype gives and adds to: bf16 for e4m3, else the dtype itself. */
kernel_dtype kernel_result_dtype(kernel_dtype dtype);

/* Bytes of one stored element: f32 and tf32 4, f16 and bf16 2, e4m3 and u8 1. */
size_t kernel_dtype_bytes(kernel_dtype dtype);

/* "f32", "tf32", "f16", "bf16", "e4m3", "u8": the words of the CSV's dtype column. */
const char *kernel_dtype_name(kernel_dtype dtype);

/* A name and meaning for any code that run or prepare returned, CUDA's own
 * codes excepted (those are the CUDA runtime's to explain): NULL for them. */
const char *kernel_error_string(int code);

/* For what no code tells: keeps the message, of up to 255 bytes, as this thread's text of
 * KERNEL_ERROR_SAID, and returns that. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
int kernel_fail(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
