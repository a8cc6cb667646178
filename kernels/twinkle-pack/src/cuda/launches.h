#pragma once
// The operators on CUDA devices, like `Operator::compute` on the CPU. Uses nothing of CUDA or
// LibTorch, so that every compiler can include it.

#include "operator.h"

namespace twinkle_pack::cuda {

struct Queue {
    void* stream;
    int device;       // the current one
    void* workspace;  // with as many bytes as requested
    Config config;
};

struct Kernel {
    const char* name;
    // Inputs with any strides; results as planned. Asynchronous.
    void (*launch)(const Inputs& inputs, const Plan& plan, void* const* results,
                   const Queue& queue);
    // Bytes of device memory needed during the call; null: none.
    int64_t (*workspace)(const Inputs& inputs) = nullptr;
    // Whether it can and should be used for these inputs on this device, which is the current one;
    // else the operator's composition is. Null: always.
    bool (*serves)(const Inputs& inputs, int device) = nullptr;
    // Whether the composition is the one by Composition::round. Null: never.
    bool (*rounds)(const Inputs& inputs, int device) = nullptr;
};

// Null: none.
const Kernel* kernel_of(const char* name);

}  // namespace twinkle_pack::cuda
