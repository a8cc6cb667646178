#pragma once
// The operators on CUDA devices: what `Operator::compute` is on the CPU. Nothing here is CUDA's or
// LibTorch's, so that every compiler can include it.

#include "operator.h"

namespace twinkle_pack::cuda {

struct Queue {
    void* stream;
    int device;       // the current one
    void* workspace;  // of as many bytes as were asked for
};

struct Kernel {
    const char* name;
    // Inputs as they lie: any strides; results as planned. Returns at once.
    void (*launch)(const Inputs& inputs, const Plan& plan, void* const* results,
                   const Queue& queue);
    // Bytes of device memory for the time of the call; null: none.
    int64_t (*workspace)(const Inputs& inputs) = nullptr;
};

const Kernel& kernel_of(const char* name);  // std::logic_error if there is none

}  // namespace twinkle_pack::cuda
