#pragma once
// Elements of a dtype for the kernels that tests call directly.

#include <vector>

#include "half.h"
#include "view.h"

namespace {

struct alignas(16) Vector {
    char bytes[16];
};

// Elements at an address that 16 divides.
template <class T>
class Elements {
public:
    explicit Elements(size_t count) : vectors_(count * sizeof(T) / 16 + 1) {}
    T* data() { return reinterpret_cast<T*>(vectors_.data()); }
    T& operator[](size_t i) { return data()[i]; }

private:
    std::vector<Vector> vectors_;
};

template <class T>
constexpr twinkle_pack::DType dtype = twinkle_pack::DType::float32;
template <>
constexpr twinkle_pack::DType dtype<twinkle_pack::BFloat16> = twinkle_pack::DType::bfloat16;
template <>
constexpr twinkle_pack::DType dtype<twinkle_pack::Float16> = twinkle_pack::DType::float16;

}  // namespace
