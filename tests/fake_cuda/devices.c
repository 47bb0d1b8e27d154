/* See cuda_runtime_api.h: devices and their memory. */
#define _GNU_SOURCE
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands in front of a block, as far from the caller as malloc aligns. */
typedef union block {
    struct {
        size_t bytes;
        union block *next;
        int device; /* HOST_MEMORY, or the device that was current */
    } is;
    long double align;
} block;

enum { HOST_MEMORY = -1, DEVICES = 3 };

static const size_t memory_bytes = (size_t)1 << 30;
static block *blocks;
static int has_access[DEVICES][DEVICES]; /* of the first one to the second */
static size_t used_bytes;
static uint64_t release_threshold;

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = fake_cuda.count_error || fake_cuda.no_devices ? 0
             : fake_cuda.one_device                        ? 1
             : fake_cuda.three_devices                     ? 3
                                                           : 2;
    return fake_answer_locked(fake_cuda.count_error);
}

static int is_device(int device)
{
    return device >= 0 && device < (fake_cuda.three_devices ? 3 : 2);
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t code = fake_answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
    if (code == cudaSuccess)
        fake_device = device;
    return code;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = fake_device;
    return fake_answer_locked(cudaSuccess);
}

static int are_two(int device, int peer)
{
    return is_device(device) && is_device(peer) && device != peer;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    int are_ends = device + peer == DEVICES - 1 && device != peer;
    *can = !fake_cuda.no_peer_access && !(fake_cuda.no_access_of_ends && are_ends);
    return fake_answer_locked(are_two(device, peer) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer_take(flags || !are_two(fake_device, peer) ? cudaErrorInvalidDevice
                       : has_access[fake_device][peer]      ? cudaErrorPeerAccessAlreadyEnabled
                                                               : cudaSuccess);
    if (code == cudaSuccess)
        has_access[fake_device][peer] = 1;
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    int enabled = are_two(fake_device, peer) && has_access[fake_device][peer];
    if (enabled)
        has_access[fake_device][peer] = 0;
    return fake_answer_locked(enabled ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    cudaError_t code = fake_cuda.properties_error;
    int i;
    code = fake_answer_locked(is_device(device) ? code : cudaErrorInvalidDevice);
    if (code != cudaSuccess)
        return code;
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
    /* Bytes 0x10 to 0x1f, or 0xa0 to 0xaf. */
    for (i = 0; i < 16; i++)
        properties->uuid.bytes[i] = (char)((device ? 0xa0 : 0x10) + i);
    properties->totalGlobalMem = memory_bytes;
    properties->major = device ? 8 : 9;
    properties->minor = 0;
    properties->multiProcessorCount = device ? 108 : 132;
    properties->l2CacheSize = 1 << 20;
    properties->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    snprintf(text, (size_t)bytes, "0000:%02x:00.0", fake_cuda.first_device + device + 1);
    return fake_answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    *pool = (cudaMemPool_t)(void *)&release_threshold;
    return fake_answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    memcpy(value, pool, sizeof release_threshold);
    return fake_answer_locked(attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute,
                                    void *value)
{
    memcpy(pool, value, sizeof release_threshold);
    return fake_answer_locked(attribute == cudaMemPoolAttrReleaseThreshold ? cudaSuccess
                                                                      : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    switch (attribute) {
    case cudaDevAttrClockRate: *value = 1980000; break;
    case cudaDevAttrMultiProcessorCount: *value = device ? 108 : 132; break;
    case cudaDevAttrL2CacheSize: *value = 1 << 20; break;
    case cudaDevAttrMemoryClockRate: *value = 2619000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 5120; break;
    case cudaDevAttrComputeCapabilityMajor: *value = device ? 8 : 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (device ? 163 : 227) * 1024; break;
    }
    return fake_answer_locked(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return fake_answer_locked(cudaSuccess);
}

/* ---- memory ---- */

/* With the lock held. */
static void *take_block(size_t bytes, int device)
{
    block *made = malloc(sizeof *made + bytes);
    if (!made)
        return NULL;
    made->is.bytes = bytes;
    made->is.device = device;
    made->is.next = blocks;
    blocks = made;
    if (device != HOST_MEMORY)
        used_bytes += bytes;
    fake_objects++;
    return made + 1;
}

static void drop_block(void *memory)
{
    block *made = (block *)memory - 1, **link = &blocks;
    while (*link != made)
        link = &(*link)->is.next;
    *link = made->is.next;
    if (made->is.device != HOST_MEMORY)
        used_bytes -= made->is.bytes;
    fake_objects--;
    free(made);
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t code;
    *memory = NULL;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer_take(fake_cuda.malloc_error != cudaSuccess   ? fake_cuda.malloc_error
                       : bytes > memory_bytes - used_bytes ? cudaErrorMemoryAllocation
                                                           : cudaSuccess);
    if (code == cudaSuccess && bytes > 0)
        *memory = take_block(bytes, fake_device);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

/* Like the real one it waits for the device, so a hung kernel hangs it. */
static cudaError_t free_block(void *memory)
{
    cudaError_t code;
    pthread_mutex_lock(&fake_lock);
    if (memory)
        fake_wait_idle();
    code = fake_answer(cudaSuccess);
    if (memory)
        drop_block(memory);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaFree(void *memory)
{
    return free_block(memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    cudaError_t code;
    *memory = NULL;
    pthread_mutex_lock(&fake_lock);
    code = fake_answer(flags != cudaHostAllocDefault || bytes > memory_bytes ? cudaErrorMemoryAllocation
                                                                        : cudaSuccess);
    if (code == cudaSuccess)
        *memory = take_block(bytes, HOST_MEMORY);
    pthread_mutex_unlock(&fake_lock);
    return code;
}

cudaError_t cudaFreeHost(void *memory)
{
    return free_block(memory);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = memory_bytes - used_bytes;
    *total = memory_bytes;
    return fake_answer_locked(cudaSuccess);
}

cudaError_t cudaMemcpy(void *destination, const void *source, size_t bytes,
                       enum cudaMemcpyKind kind)
{
    cudaError_t code = cudaDeviceSynchronize();
    if (code == cudaSuccess && kind == cudaMemcpyDefault)
        memcpy(destination, source, bytes);
    return code;
}

/* 50 GB/s, and 2 us for starting. */
cudaError_t cudaMemcpyAsync(void *destination, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    operation op = {.kind = COPY, .memory = destination, .source = source, .bytes = bytes};
    (void)kind;
    op.us = 2 + (double)bytes / 5e4;
    return fake_enqueue(stream, &op);
}

cudaError_t cudaMemcpyPeerAsync(void *destination, int destination_device, const void *source,
                                int source_device, size_t bytes, cudaStream_t stream)
{
    if (fake_device_of(destination) != destination_device ||
        fake_device_of(source) != source_device)
        return fake_answer_locked(cudaErrorInvalidValue);
    return cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemset(void *memory, int byte, size_t bytes)
{
    cudaError_t code = cudaDeviceSynchronize();
    if (code == cudaSuccess)
        memset(memory, byte, bytes);
    return code;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    return fake_launch_write(stream, memory, byte, bytes);
}

/* ---- what only the tests use ---- */

int fake_current_device(void)
{
    return fake_device;
}

int fake_device_of(const void *memory)
{
    int device = HOST_MEMORY;
    const block *one;
    pthread_mutex_lock(&fake_lock);
    for (one = blocks; one; one = one->is.next) {
        uintptr_t offset = (uintptr_t)memory - (uintptr_t)(one + 1);
        if (offset < one->is.bytes)
            device = one->is.device;
    }
    pthread_mutex_unlock(&fake_lock);
    return device;
}

int fake_peer_accesses(void)
{
    int count = 0, device, peer;
    for (device = 0; device < DEVICES; device++)
        for (peer = 0; peer < DEVICES; peer++)
            count += has_access[device][peer];
    return count;
}

size_t fake_used_bytes(void)
{
    size_t bytes;
    pthread_mutex_lock(&fake_lock);
    bytes = used_bytes;
    pthread_mutex_unlock(&fake_lock);
    return bytes;
}

uint64_t fake_release_threshold(void)
{
    return release_threshold;
}

int fake_live_objects(void)
{
    int count;
    pthread_mutex_lock(&fake_lock);
    count = fake_objects;
    pthread_mutex_unlock(&fake_lock);
    return count;
}

void fake_start(void)
{
    pthread_mutex_lock(&fake_lock);
    memset(&fake_cuda, 0, sizeof fake_cuda);
    fake_forget_errors();
    memset(has_access, 0, sizeof has_access);
    fake_device = 0;
    release_threshold = 0;
    pthread_mutex_unlock(&fake_lock);
}
