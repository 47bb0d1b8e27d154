/*
 * nccl_api.h - the part of NCCL's C interface that is used, looked up in the library when
 * it is needed. Declared here, by NCCL's documented interface, which has kept these since
 * version 2.7: so that one program works with whatever version a machine has, is built
 * where NCCL is not, and can say what is missing instead of not being loaded.
 */
#ifndef COLLECTIVE_NCCL_API_H
#define COLLECTIVE_NCCL_API_H

#include <cuda_runtime_api.h>
#include <stddef.h>

typedef struct ncclComm *nccl_communicator;
typedef struct nccl_id {
    char bytes[128];
} nccl_id; /* passed by value */

enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 }; /* of ncclResult_t */
enum { NCCL_FLOAT32 = 7, NCCL_BFLOAT16 = 9 };    /* of ncclDataType_t */
enum { NCCL_SUM = 0 };                           /* of ncclRedOp_t */

/* bf16 came with 2.10. */
enum { NCCL_OLDEST = 21000 };

#define NCCL_FUNCTIONS(X)                                                                  \
    X(GetVersion, (int *version))                                                          \
    X(GetUniqueId, (nccl_id *id))                                                          \
    X(CommInitAll, (nccl_communicator * all, int count, const int *devices))               \
    X(CommInitRank, (nccl_communicator * one, int count, nccl_id id, int rank))            \
    X(CommDestroy, (nccl_communicator one))                                                \
    X(CommAbort, (nccl_communicator one))                                                  \
    X(CommGetAsyncError, (nccl_communicator one, int *error))                              \
    X(GroupStart, (void))                                                                  \
    X(GroupEnd, (void))                                                                    \
    X(AllReduce, (const void *send, void *receive, size_t count, int type, int operation,  \
                  nccl_communicator one, cudaStream_t stream))                             \
    X(AllGather, (const void *send, void *receive, size_t count, int type,                 \
                  nccl_communicator one, cudaStream_t stream))                             \
    X(ReduceScatter, (const void *send, void *receive, size_t count, int type,             \
                      int operation, nccl_communicator one, cudaStream_t stream))          \
    X(Broadcast, (const void *send, void *receive, size_t count, int type, int root,       \
                  nccl_communicator one, cudaStream_t stream))                             \
    X(Send, (const void *send, size_t count, int type, int peer, nccl_communicator one,    \
             cudaStream_t stream))                                                         \
    X(Recv, (void *receive, size_t count, int type, int peer, nccl_communicator one,       \
             cudaStream_t stream))

#define NCCL_MEMBER(name, parameters) int(*name) parameters;
struct nccl_api {
    NCCL_FUNCTIONS(NCCL_MEMBER)
    const char *(*GetErrorString)(int code);
};

/* The library, loaded once. NULL: there is none that will do, and *why says so. version
 * becomes its own text: "NCCL 2.28.9". */
const nccl_api *nccl_load(const char **why, const char **version);

/* The file to load instead of looking for one. */
void nccl_use(const char *path);

#endif
