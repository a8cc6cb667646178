#include "runtime/graph/kernel_method.h"

#include <algorithm>
#include <string_view>

namespace twinkle::runtime {

namespace {

constexpr std::string_view kernel_prefix = "twinkle_";

}  // namespace

std::string name_of_kernel_method(const std::string& layer, const std::string& forward) {
    return std::string(kernel_prefix) + layer + "_" + forward;
}

bool is_of_a_kernel(const torch::jit::Function& method) {
    return method.name().starts_with(kernel_prefix);
}

bool is_kernelized(const torch::jit::Module& module) {
    const auto& methods = module.type()->methods();
    return std::any_of(methods.begin(), methods.end(),
                       [](const torch::jit::Function* method) { return is_of_a_kernel(*method); });
}

}  // namespace twinkle::runtime
