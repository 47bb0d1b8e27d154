/*
 * nccl_gate.h - a gate on streams: what is enqueued behind it begins when it opens, so that times
 * are those of the GPUs and not of the host that enqueues. For one thread of a process.
 */
#ifndef KERNEL_NCCL_GATE_H
#define KERNEL_NCCL_GATE_H

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <thread>

/* Outlives every communicator, as what an aborted one has enqueued may come to it later. */
class nccl_gate {
public:
    static void close()
    {
        is_open.store(false);
        timed_out.store(false);
    }

    static cudaError_t enqueue(cudaStream_t stream)
    {
        return cudaLaunchHostFunc(stream, wait, nullptr);
    }

    /* Did it open by itself meanwhile? */
    static bool open()
    {
        is_open.store(true);
        return timed_out.load();
    }

private:
    static inline std::atomic<bool> is_open, timed_out;

    /* On each stream. One at a time may wait: what opens it opens it for the others. Opens by
     * itself after a while, lest a call that waits for a device waits for ever. */
    static void CUDART_CB wait(void *)
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (!is_open.load() && !timed_out.load()) {
            if (std::chrono::steady_clock::now() > end) timed_out.store(true);
            std::this_thread::yield();
        }
    }
};

#endif
