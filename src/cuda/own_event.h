#pragma once
// A point on a stream, for places that must not throw: c10::Event's functions do. What a device
// that has failed refuses here, it refuses to whoever uses it next.

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace twinkle::cuda {

class OwnEvent {
public:
    explicit OwnEvent(c10::Device device) {
        const c10::DeviceGuard guard(device);
        C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    }
    ~OwnEvent() { (void)cudaEventDestroy(event_); }
    OwnEvent(const OwnEvent&) = delete;
    OwnEvent& operator=(const OwnEvent&) = delete;

    // On a stream of the same device.
    void record(cudaStream_t stream) noexcept { (void)cudaEventRecord(event_, stream); }
    // What comes on this stream waits; nothing does before the first record().
    void block(cudaStream_t stream) const {
        C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
    }
    // The host waits, in whatever capture the thread's streams may be.
    void synchronize() const noexcept {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
        (void)cudaEventSynchronize(event_);
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace twinkle::cuda
