#include "view.h"

#include <array>
#include <cstddef>

namespace twinkle_pack {

int64_t View::elements() const {
    int64_t count = 1;
    for (int64_t d = 0; d < dims; ++d) count *= sizes[d];
    return count;
}

bool View::is_contiguous() const {
    int64_t stride = 1;
    for (int64_t d = dims - 1; d >= 0; --d) {
        if (sizes[d] != 1 && strides[d] != stride) return false;
        stride *= sizes[d];
    }
    return true;
}

std::string dtype_name(int scalar_type) {
    static constexpr std::array names{
        "uint8",     "int8",      "int16",      "int32", "int64", "float16", "float32", "float64",
        "complex32", "complex64", "complex128", "bool",  "qint8", "quint8",  "qint32",  "bfloat16"};
    if (scalar_type >= 0 && static_cast<size_t>(scalar_type) < names.size())
        return names[static_cast<size_t>(scalar_type)];
    return "dtype " + std::to_string(scalar_type);
}

int scalar_type_of(DType dtype) {
    switch (dtype) {
        case DType::float32: return 6;
        case DType::bfloat16: return 15;
        case DType::float16: return 5;
        case DType::float64: return 7;
        case DType::fp8: return scalar_type_fp8;
    }
    return -1;
}

int64_t element_size(DType dtype) {
    switch (dtype) {
        case DType::float32: return 4;
        case DType::bfloat16:
        case DType::float16: return 2;
        case DType::float64: return 8;
        case DType::fp8: return 1;
    }
    return 0;
}

bool is_supported(int scalar_type) {
    return scalar_type >= 5 && (scalar_type <= 7 || scalar_type == 15);
}

DType dtype_of(const View& view) {
    switch (view.scalar_type) {
        case 15: return DType::bfloat16;
        case 5: return DType::float16;
        case 7: return DType::float64;
        default: return DType::float32;
    }
}

}  // namespace twinkle_pack
