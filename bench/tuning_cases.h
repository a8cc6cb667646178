#pragma once
// The calls that tuning_bench measures: every typed function over the bundled kernels.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Size {
    std::int64_t tokens;  // of images, pixels: its square root each way
    std::int64_t width;   // of images, sixteen times the channels
    at::ScalarType dtype;
    c10::Device device;
};

struct Case {
    std::vector<at::Tensor> leaves;  // whose gradients training asks for
    std::function<std::vector<at::Tensor>()> call;
};

struct NamedCase {
    std::string op;                         // of twinkle::ops, and its form behind a space
    std::function<Case(const Size&)> make;  // takes the memory
};

const std::vector<NamedCase>& all_cases();

}  // namespace bench
