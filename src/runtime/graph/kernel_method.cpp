#include "runtime/graph/kernel_method.h"

#include <algorithm>
#include <string_view>

namespace twinkle::runtime {

namespace {

constexpr std::string_view kernel_prefix = "twinkle_";
constexpr std::string_view prepare_suffix = "_prepare";

}  // namespace

std::string name_of_kernel_method(const std::string& layer, const std::string& forward) {
    return std::string(kernel_prefix) + layer + "_" + forward;
}

std::string name_of_prepare_method(const std::string& layer) {
    return std::string(kernel_prefix) + layer + std::string(prepare_suffix);
}

torch::jit::Function* prepare_method(const c10::ClassType& type) {
    const auto& methods = type.methods();
    const auto found = std::find_if(methods.begin(), methods.end(), [](const auto* method) {
        return is_of_a_kernel(*method) && method->name().ends_with(prepare_suffix);
    });
    return found != methods.end() ? *found : nullptr;
}

bool is_of_a_kernel(const torch::jit::Function& method) {
    return method.name().starts_with(kernel_prefix);
}

bool is_kernelized(const torch::jit::Module& module) {
    const auto& methods = module.type()->methods();
    return std::any_of(methods.begin(), methods.end(),
                       [](const torch::jit::Function* method) { return is_of_a_kernel(*method); });
}

bool may_have_own_weights(const c10::ClassType& type) {
    if (prepare_method(type) != nullptr) {
        return true;
    }
    const auto& methods = type.methods();
    bool buffers = false;
    for (std::size_t i = 0; i < type.numAttributes(); ++i) {
        buffers = buffers || type.is_buffer(i);
    }
    return buffers && std::any_of(methods.begin(), methods.end(),
                                  [](const auto* method) { return is_of_a_kernel(*method); });
}

}  // namespace twinkle::runtime
