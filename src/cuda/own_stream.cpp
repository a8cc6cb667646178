#include "cuda/own_stream.h"

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#include <vector>

namespace twinkle::cuda {

namespace {

struct Streams {
    std::mutex mutex;
    std::map<c10::DeviceIndex, std::vector<c10::Stream>> free;
};

Streams& streams() {
    static auto& all = *new Streams;
    return all;
}

c10::Stream taken(c10::Device device) {
    {
        const std::lock_guard lock(streams().mutex);
        auto& free = streams().free[device.index()];
        if (!free.empty()) {
            const c10::Stream stream = free.back();
            free.pop_back();
            return stream;
        }
    }
    const c10::DeviceGuard guard(device);
    cudaStream_t stream = nullptr;
    // Must not wait for the default stream: launches by others on that would end a capture.
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return c10::cuda::getStreamFromExternal(stream, device.index()).unwrap();
}

}  // namespace

OwnStream::OwnStream(c10::Device device) : stream_(taken(device)) {}

OwnStream::~OwnStream() {
    const std::lock_guard lock(streams().mutex);
    streams().free[stream_.device_index()].push_back(stream_);
}

}  // namespace twinkle::cuda
