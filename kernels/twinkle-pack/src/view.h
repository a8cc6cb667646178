#pragma once
// What the computing code knows of a tensor. Nothing in this folder but register_*.cpp includes
// LibTorch.

#include <cstdint>
#include <string>

namespace twinkle_pack {

enum class DType { float32, bfloat16, float16, float64 };

// A tensor of any dtype; `scalar_type` is LibTorch's number for it (the same in all its versions).
struct View {
    const void* data;
    int scalar_type;
    int64_t dims;
    const int64_t* sizes;
    const int64_t* strides;  // in elements

    int64_t elements() const;
};

std::string dtype_name(int scalar_type);
int scalar_type_of(DType dtype);
int64_t element_size(DType dtype);

}  // namespace twinkle_pack
