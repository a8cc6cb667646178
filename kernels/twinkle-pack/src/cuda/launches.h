#pragma once
// The operators on CUDA devices, like `Operator::compute` on the CPU. Uses nothing of CUDA or
// LibTorch, so that every compiler can include it.

#include "operator.h"

namespace twinkle_pack::cuda {

struct Queue {
    void* stream;
    int device;       // the current one
    void* workspace;  // with as many bytes as requested
};

struct Kernel {
    const char* name;
    // Inputs with any strides; results as planned. Asynchronous.
    void (*launch)(const Inputs& inputs, const Plan& plan, void* const* results,
                   const Queue& queue);
    // Bytes of device memory needed during the call; null: none.
    int64_t (*workspace)(const Inputs& inputs) = nullptr;
};

const Kernel& kernel_of(const char* name);  // std::logic_error if there is none

}  // namespace twinkle_pack::cuda
