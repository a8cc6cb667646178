#pragma once
// A tensor as the computing code sees it. Only register_*.cpp in this folder includes
// LibTorch.

#include <cstdint>
#include <string>

namespace twinkle_pack {

enum class DType { float32, bfloat16, float16, float64, fp8 };
constexpr int dtype_count = 4;  // that are computed in; fp8 (fp8.h) only stores

// A tensor of any dtype; `scalar_type` is LibTorch's number for it (the same in all its versions).
struct View {
    const void* data = nullptr;
    int scalar_type = -1;
    int64_t dims = 0;
    const int64_t* sizes = nullptr;
    const int64_t* strides = nullptr;  // in elements

    bool is_there() const { return scalar_type >= 0; }  // an optional tensor may not be
    int64_t elements() const;
    int64_t last_size() const { return dims == 0 ? 1 : sizes[dims - 1]; }
    bool is_contiguous() const;  // in the order of its dimensions
};

std::string dtype_name(int scalar_type);
int scalar_type_of(DType dtype);
constexpr int scalar_type_fp8 = 24;  // float8_e4m3fn
constexpr int scalar_type_bool = 11;
int64_t element_size(DType dtype);
bool is_supported(int scalar_type);
DType dtype_of(const View& view);  // for a supported dtype

}  // namespace twinkle_pack
