// All kernels by their operator's name.
#include "cuda/launches.h"

#include <cstring>

#include "cuda/families.h"

namespace twinkle_pack::cuda {

const Kernel* kernel_of(const char* name) {
    for (const KernelList& list : {unary_kernels(), gated_kernels(), rms_norm_kernels(),
                                   layer_norm_kernels(), norm_gradient_kernels(), rotary_kernels(),
                                   linear_kernels(), bits_linear_kernels(), packing_kernels()})
        for (int i = 0; i < list.count; ++i)
            if (std::strcmp(list.first[i].name, name) == 0) return list.first + i;
    return nullptr;
}

}  // namespace twinkle_pack::cuda
