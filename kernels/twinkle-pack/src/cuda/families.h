#pragma once
// The kernels by family, like the operators in operators/families.h.

#include "cuda/launches.h"

namespace twinkle_pack::cuda {

struct KernelList {
    const Kernel* first;
    int count;
};

KernelList unary_kernels();
KernelList gated_kernels();
KernelList rms_norm_kernels();
KernelList layer_norm_kernels();
KernelList norm_gradient_kernels();
KernelList rotary_kernels();
KernelList linear_kernels();
KernelList bits_linear_kernels();
KernelList packing_kernels();

}  // namespace twinkle_pack::cuda
