#include "cuda/capture.h"

#include <ATen/cuda/CUDAGraph.h>

namespace twinkle::cuda {

namespace allocator = c10::cuda::CUDACachingAllocator;

namespace {

// Newer allocators have separate calls for captures and pools.
template <class Allocator>
void mark_capture(Allocator& of, c10::DeviceIndex device, bool begins) {
    if constexpr (requires { of.markCaptureBegin(device); }) {
        if (begins) {
            of.markCaptureBegin(device);
        } else {
            of.markCaptureEnd(device);
        }
    }
}

// A capture on a stream by this thread; always ended.
class StreamCapture {
public:
    explicit StreamCapture(const c10::cuda::CUDAStream& stream) : stream_(stream) {
        mark_capture(*allocator::get(), stream_.device_index(), true);
        // Other threads may go on doing what a capture forbids this one.
        const cudaError_t error =
            cudaStreamBeginCapture(stream_.stream(), cudaStreamCaptureModeThreadLocal);
        if (error != cudaSuccess) {
            mark_capture(*allocator::get(), stream_.device_index(), false);
            C10_CUDA_CHECK(error);
        }
    }
    ~StreamCapture() {
        if (!ended_) {
            cudaGraph_t graph = nullptr;
            (void)end(&graph);
            if (graph) {
                (void)cudaGraphDestroy(graph);
            }
            // The exception already reports what ended it; clears the error, which the next call
            // would repeat.
            (void)cudaGetLastError();
        }
    }
    StreamCapture(const StreamCapture&) = delete;
    StreamCapture& operator=(const StreamCapture&) = delete;

    cudaError_t end(cudaGraph_t* graph) {
        ended_ = true;
        const cudaError_t error = cudaStreamEndCapture(stream_.stream(), graph);
        mark_capture(*allocator::get(), stream_.device_index(), false);
        return error;
    }

private:
    c10::cuda::CUDAStream stream_;
    bool ended_ = false;
};

}  // namespace

PrivatePool::PrivatePool(c10::DeviceIndex device)
    : device_(device), id_(at::cuda::graph_pool_handle()) {}

PrivatePool::~PrivatePool() {
    for (; used_ > 0; --used_) {
        allocator::releasePool(device_, id_);
    }
}

std::size_t PrivatePool::bytes() const {
    std::size_t bytes = 0;
    for (const auto& segment : allocator::snapshot().segments) {
        if (segment.owner_private_pool_id == id_) {
            bytes += segment.total_size;
        }
    }
    return bytes;
}

PoolScope::PoolScope(PrivatePool& pool, const c10::Stream& stream) : pool_(pool) {
    const cudaStream_t ours =
        c10::cuda::CUDAStream(c10::cuda::CUDAStream::UNCHECKED, stream).stream();
    allocator::beginAllocateToPool(pool_.device_, pool_.id_,
                                   [ours](cudaStream_t one) { return one == ours; });
    ++pool_.used_;
}

PoolScope::~PoolScope() {
    allocator::endAllocateToPool(pool_.device_, pool_.id_);
}

CudaRun::CudaRun(const c10::Stream& side)
    : memory_(side.device_index()), side_(side), last_replay_(side.device()) {}

CudaRun::~CudaRun() {
    last_replay_.synchronize();
    if (executable_) {
        (void)cudaGraphExecDestroy(executable_);
    }
    outputs = {};
}

void CudaRun::capture(const std::function<c10::IValue()>& run) {
    cudaGraph_t graph = nullptr;
    {
        StreamCapture capture(side_);
        outputs = run();
        C10_CUDA_CHECK(capture.end(&graph));
    }
    const cudaError_t error = cudaGraphInstantiateWithFlags(&executable_, graph, 0);
    (void)cudaGraphDestroy(graph);
    C10_CUDA_CHECK(error);
    bytes_ = memory_.bytes();
}

void CudaRun::replay() {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(side_.device_index());
    C10_CUDA_CHECK(cudaGraphLaunch(executable_, stream.stream()));
    last_replay_.record(stream);
}

}  // namespace twinkle::cuda
