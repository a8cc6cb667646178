#pragma once
// A stream that nothing else runs on. LibTorch's own are handed out in turn to whoever asks, and
// cuBLAS keeps one workspace for a stream: runs that were captured on the same one must not
// overlap.

#include <c10/core/Stream.h>

namespace twinkle::cuda {

// Taken from those that were given back, else made; never destroyed, as what libraries hold for it
// is not.
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
