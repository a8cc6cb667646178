#pragma once
// A CUDA event for code that must not throw, as c10::Event's functions do. Errors ignored here come
// back at the next use of a failed device.

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

    // Takes a stream of the same device.
    void record(cudaStream_t stream) noexcept { (void)cudaEventRecord(event_, stream); }
    // Makes later work on this stream wait; does nothing before the first record().
    void block(cudaStream_t stream) const {
        C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
    }
    // The host waits, even if the thread's streams are being captured.
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
