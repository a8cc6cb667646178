// Loads the pack, and the comparison that all its tests use.
#include "pack_library.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

namespace pack {
namespace {

std::string load() {
    namespace fs = std::filesystem;
    for (const auto& file : fs::directory_iterator(TWINKLE_PACK_DIR)) {
        if (file.path().extension() != ".so") continue;
        if (!dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL))
            throw std::runtime_error(dlerror());
        return file.path().stem().string().substr(1);
    }
    throw std::runtime_error("no library in " TWINKLE_PACK_DIR);
}

c10::OperatorHandle find(const std::string& name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow((op_namespace() + "::" + name).c_str(),
                                                          "");
}

}  // namespace

const std::string& op_namespace() {
    static const std::string name = load();
    return name;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
    static const auto op =
        find("rms_norm").typed<at::Tensor(const at::Tensor&, const at::Tensor&, double)>();
    return op.call(x, weight, eps);
}

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
    static const auto op =
        find("silu_mul").typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
    return op.call(gate, up);
}

at::Tensor original_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor normal = wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps);
    return weight * normal.to(x.scalar_type());
}

at::Tensor original_silu_mul(const at::Tensor& gate, const at::Tensor& up) {
    return at::silu(gate) * up;
}

at::Tensor exact_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
    const at::Tensor wide = x.to(at::kDouble);
    return weight.to(at::kDouble) * wide * at::rsqrt(wide.pow(2).mean(-1, true) + eps);
}

at::Tensor exact_silu_mul(const at::Tensor& gate, const at::Tensor& up) {
    return at::silu(gate.to(at::kDouble)) * up.to(at::kDouble);
}

Verdict judge(const at::Tensor& result, const at::Tensor& original, const at::Tensor& exact) {
    if (result.sizes() != original.sizes()) return {false, "another shape"};
    if (result.scalar_type() != original.scalar_type()) return {false, "another dtype"};
    if (!result.is_contiguous()) return {false, "not contiguous"};
    if (result.numel() == 0) return {true, ""};
    const double error = (result.to(at::kDouble) - exact).abs().max().item<double>();
    const double own = (original.to(at::kDouble) - exact).abs().max().item<double>();
    const double largest = exact.abs().max().item<double>();
    double epsilon = 0;
    switch (result.scalar_type()) {
        case at::kDouble: epsilon = 2.2e-16; break;
        case at::kFloat: epsilon = 1.2e-7; break;
        case at::kHalf: epsilon = 9.8e-4; break;
        default: epsilon = 7.8e-3; break;
    }
    // Double: the series of exp is good to a few units.
    const double floor = largest * epsilon * (result.scalar_type() == at::kDouble ? 4 : 0.5);
    const bool right = error <= std::max(1.5 * own, floor);
    return {right, "error " + std::to_string(error / largest / epsilon) + " eps, the original's " +
                       std::to_string(own / largest / epsilon)};
}

}  // namespace pack
