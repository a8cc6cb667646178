#pragma once
// A stream that nothing else runs on. LibTorch's own streams are handed out in turn to all
// callers, and cuBLAS keeps one workspace per stream: runs captured on the same one must not
// overlap.

#include <c10/core/Stream.h>

namespace twinkle::cuda {

// Reuses returned streams, else creates one; never destroys any, because libraries do not free
// their state for it.
class OwnStream {
public:
    explicit OwnStream(c10::Device device);
    ~OwnStream();  // gives it back
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;

    const c10::Stream& stream() const { return stream_; }

private:
    c10::Stream stream_;
};

}  // namespace twinkle::cuda
