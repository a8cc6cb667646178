#pragma once
// One CUDA graph with its memory.

#include "cuda/own_event.h"
#include "runtime/replay/graph_backend.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

namespace twinkle::cuda {

// A private pool of LibTorch's allocator. Tensors in it may outlive it.
class PrivatePool {
public:
    explicit PrivatePool(c10::DeviceIndex device);
    ~PrivatePool();
    PrivatePool(const PrivatePool&) = delete;
    PrivatePool& operator=(const PrivatePool&) = delete;

    std::size_t bytes() const;  // that it holds of the device

private:
    friend class PoolScope;
    c10::DeviceIndex device_;
    c10::cuda::MempoolId_t id_;
    int used_ = 0;  // how often it was begun to be used, which is how often it has to be released
};

// Directs allocations on this stream to the pool.
class PoolScope {
public:
    PoolScope(PrivatePool& pool, const c10::Stream& stream);
    ~PoolScope();
    PoolScope(const PoolScope&) = delete;
    PoolScope& operator=(const PoolScope&) = delete;

private:
    PrivatePool& pool_;
};

class CudaRun : public runtime::CapturedRun {
public:
    explicit CudaRun(const c10::Stream& side);
    ~CudaRun() override;  // waits for the last replay

    PrivatePool& memory() { return memory_; }
    // Runs with the side stream as the current one. After an exception no stream is being
    // captured.
    void capture(const std::function<c10::IValue()>& run);
    void replay() override;
    std::size_t bytes() const override { return bytes_; }

private:
    PrivatePool memory_;  // the last to go
    c10::cuda::CUDAStream side_;
    OwnEvent last_replay_;
    cudaGraphExec_t executable_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace twinkle::cuda
