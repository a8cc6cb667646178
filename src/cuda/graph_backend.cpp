// CUDA graphs, captured by CUDA's own calls and LibTorch's allocator instead of
// at::cuda::CUDAGraph: what that leaves behind after a failed capture differs between versions (a
// pool that is never freed, an allocator that still serves it, a generator that refuses to draw),
// and here a failure must leave nothing behind.
#include "runtime/replay/graph_backend.h"

#include "cuda/capture.h"
#include "cuda/own_event.h"
#include "cuda/own_stream.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace twinkle::cuda {

namespace {

using c10::cuda::CUDAStream;
using runtime::CapturedRun;
using runtime::Recipe;

class Lane : public runtime::GraphLane {
public:
    explicit Lane(at::Device device) : device_(device), side_(device), last_use_(device) {}

    std::unique_ptr<CapturedRun> capture(const Recipe& recipe) override;

    void enter() override {
        const CUDAStream caller = current();
        if (used_on_ != caller.stream()) {
            last_use_.block(caller);
        }
    }
    void leave() noexcept override {
        const CUDAStream caller = current();
        last_use_.record(caller);
        used_on_ = caller.stream();
    }

    void wait() override { current().synchronize(); }

    std::size_t free_memory() override {
        const c10::DeviceGuard guard(device_);
        std::size_t free = 0, total = 0;
        C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        // Adds LibTorch's reserved but unused memory; the first of each statistic is the sum.
        const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device_.index());
        return free + static_cast<std::size_t>(stats.reserved_bytes[0].current -
                                               stats.allocated_bytes[0].current);
    }
    void release_cached_memory() override { c10::cuda::CUDACachingAllocator::emptyCache(); }

private:
    CUDAStream current() const { return c10::cuda::getCurrentCUDAStream(device_.index()); }
    // A thread's first product on a stream allocates a cuBLAS workspace that stays. It must not be
    // in the memory of one captured run, which could then never be freed.
    void initialize_libraries() const;

    at::Device device_;
    OwnStream side_;
    OwnEvent last_use_;
    std::optional<cudaStream_t> used_on_;
};

std::unique_ptr<CapturedRun> Lane::capture(const Recipe& recipe) {
    const c10::DeviceGuard guard(device_);
    const CUDAStream caller = current();
    const CUDAStream side(CUDAStream::UNCHECKED, side_.stream());
    OwnEvent before(device_);
    before.record(caller);
    before.block(side);
    last_use_.block(side);
    initialize_libraries();
    auto run = std::make_unique<CudaRun>(side_.stream());
    {
        const PoolScope pool(run->memory(), side_.stream());
        const c10::StreamGuard on_side(side_.stream());
        c10::IValue outputs;
        recipe.prepare();
        for (int i = 0; i < recipe.warm_up; ++i) {
            outputs = {};
            outputs = recipe.run();
        }
        side.synchronize();
        {
            const c10::StreamGuard on_callers(caller.unwrap());
            recipe.warmed(outputs);
            caller.synchronize();
        }
        outputs = {};
        run->capture(recipe.run);
    }
    {
        const c10::StreamGuard on_side(side_.stream());
        run->replay();
    }
    side.synchronize();
    recipe.replayed(run->outputs);
    return run;
}

void Lane::initialize_libraries() const {
    const c10::StreamGuard on_side(side_.stream());
    for (const auto dtype : {at::kFloat, at::kHalf}) {
        const at::Tensor one = at::ones({16, 16}, at::device(device_).dtype(dtype));
        at::addmm(one[0], one, one);
    }
}

class Backend : public runtime::GraphBackend {
public:
    bool stream_is_capturing(at::Device device) override {
        const c10::DeviceGuard guard(device);
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        const auto stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
        if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
            // The default stream, while another thread captures one that waits for it.
            (void)cudaGetLastError();
            return true;
        }
        return status != cudaStreamCaptureStatusNone;
    }
    std::unique_ptr<runtime::GraphLane> lane(at::Device device) override {
        return std::make_unique<Lane>(device);
    }
};

}  // namespace

}  // namespace twinkle::cuda

extern "C" __attribute__((visibility("default"))) twinkle::runtime::GraphBackend*
twinkle_cuda_graphs() {
    static auto& backend = *new twinkle::cuda::Backend;
    return &backend;
}

static_assert(std::is_same_v<decltype(twinkle_cuda_graphs), twinkle::runtime::CudaGraphsFunction>);
