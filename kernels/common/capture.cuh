/*
 * capture.cuh - what an operation enqueues, captured once into a CUDA graph.
 */
#ifndef KERNEL_CAPTURE_CUH
#define KERNEL_CAPTURE_CUH

#include <cuda_runtime.h>

#include "kernel.h"

/* Captures enqueue(stream) after one warm_up(stream) outside: what a first launch
 * loads cannot be loaded while capturing. Both return error codes. */
template <typename WarmUp, typename Enqueue>
int capture_graph(WarmUp warm_up, Enqueue enqueue, cudaGraphExec_t *graph,
                  size_t *launches = nullptr)
{
    cudaStream_t stream;
    cudaGraph_t captured = nullptr;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return error;
    int code = warm_up(stream);
    if (!code) code = cudaStreamSynchronize(stream);
    if (!code) code = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (!code) {
        code = enqueue(stream);
        error = cudaStreamEndCapture(stream, &captured);
        if (!code) code = error;
    }
    if (!code && launches) code = cudaGraphGetNodes(captured, nullptr, launches);
    if (!code) code = cudaGraphInstantiate(graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    cudaStreamDestroy(stream);
    return code;
}

/* Launches the graph; a stream that is being captured takes none, and there
 * enqueue(stream) comes to the same. */
template <typename Enqueue>
int capture_launch(cudaGraphExec_t graph, Enqueue enqueue, kernel_stream stream)
{
    cudaStreamCaptureStatus status;
    cudaError_t error = cudaStreamIsCapturing(stream, &status);
    if (error != cudaSuccess) return error;
    if (status == cudaStreamCaptureStatusNone) return cudaGraphLaunch(graph, stream);
    return enqueue(stream);
}

#endif
