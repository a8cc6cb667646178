#pragma once
// Memory for many tensors that are read one after the other in every call: large blocks, in huge
// pages where the system has them.

#include <torch/script.h>

#include <cstddef>

namespace twinkle::runtime {

class WeightMemory {
public:
    // A copy of a dense tensor behind the last one, aligned to 64 bytes; a large one has a block of
    // its own. Throws c10::OutOfMemoryError.
    at::Tensor copy(const at::Tensor& tensor);

private:
    at::Tensor block_;
    std::size_t used_ = 0, size_ = 0;  // of the block, bytes
};

}  // namespace twinkle::runtime
