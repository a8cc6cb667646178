// Loads the pack; helpers of all its tests.
#include "pack_library.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace pack {
namespace {

// Loads the CPU's build, or the one in TWINKLE_PACK_TESTED.
std::string load() {
    namespace fs = std::filesystem;
    const char* const other = std::getenv("TWINKLE_PACK_TESTED");
    for (const auto& file : fs::directory_iterator(other ? other : TWINKLE_PACK_DIR)) {
        if (file.path().extension() != ".so") continue;
        if (!dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL))
            throw std::runtime_error(dlerror());
        return file.path().stem().string().substr(1);
    }
    throw std::runtime_error("no library in " TWINKLE_PACK_DIR);
}

}  // namespace

const std::string& op_namespace() {
    static const std::string name = load();
    return name;
}

Tensors call(const std::string& op, const Tensors& tensors,
             const std::vector<c10::IValue>& numbers) {
    const auto handle =
        c10::Dispatcher::singleton().findSchemaOrThrow((op_namespace() + "::" + op).c_str(), "");
    torch::jit::Stack stack;
    for (const Tensor& tensor : tensors)
        stack.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue());
    stack.insert(stack.end(), numbers.begin(), numbers.end());
    const auto& arguments = handle.schema().arguments();
    for (size_t i = stack.size(); i < arguments.size(); ++i)
        stack.push_back(*arguments[i].default_value());
    handle.callBoxed(stack);
    Tensors results;
    for (const auto& value : stack) results.push_back(value.toTensor());
    return results;
}

Verdict judge(const Tensor& result, const Tensor& original, const Tensor& exact,
              double float_units) {
    if (result.sizes() != original.sizes()) return {false, "another shape"};
    if (result.scalar_type() != original.scalar_type()) return {false, "another dtype"};
    if (!result.is_non_overlapping_and_dense()) return {false, "not dense"};
    if (result.numel() == 0) return {true, ""};
    const double error = (result.to(at::kDouble) - exact).abs().max().item<double>();
    const double own = (original.to(at::kDouble) - exact).abs().max().item<double>();
    const double largest = exact.abs().max().item<double>();
    // In a few values, PyTorch's roundings may happen to cancel.
    const bool few = result.numel() < 5000;
    double epsilon = 0, units = 0;
    switch (result.scalar_type()) {
        // The "exact" result is rounded in double, too; the series of exp is good to a few units.
        case at::kDouble: epsilon = 2.2e-16, units = 64; break;
        case at::kFloat: epsilon = 1.2e-7, units = few ? 2 : float_units; break;
        case at::kHalf: epsilon = 9.8e-4, units = few ? 0.8 : 0.5; break;
        default: epsilon = 7.8e-3, units = few ? 0.8 : 0.5; break;
    }
    const bool right = error <= std::max(1.5 * own, largest * epsilon * units);
    return {right, "error " + std::to_string(error / largest / epsilon) + " eps, the original's " +
                       std::to_string(own / largest / epsilon)};
}

at::Device device() {
    const char* const name = std::getenv("TWINKLE_PACK_DEVICE");
    return at::Device(name ? name : "cpu");
}

const std::vector<at::ScalarType>& dtypes() {
    static const std::vector all{at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
    return all;
}

Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale) {
    return here((at::randn(shape, at::kDouble) * scale).to(dtype));
}

Tensors layouts(int64_t n, at::ScalarType dtype) {
    return {
        random({4, 6, n}, dtype),                                    // contiguous
        random({4, 6, 2 * n}, dtype).slice(2, n),                    // right half of each row
        random({4, 6, 2 * n + 1}, dtype).slice(2, 1, n + 1),         // rows at odd addresses
        random({8, 9, n}, dtype).slice(0, 1, 8, 2).slice(1, 2, 8),   // every second, some rows
        random({6, 4, n}, dtype).transpose(0, 1),                    // rows in another order
        random({4, n, 6}, dtype).transpose(1, 2),                    // last dimension strided
        random({n, 6, 4}, dtype).permute({2, 1, 0}),                 // reversed
        random({4, 6, 2 * n}, dtype).slice(2, 0, 2 * n, 2),          // every second element
        random({1, 6, n}, dtype).expand({4, 6, n}),                  // one row many times
        random({4, 6, 1}, dtype).expand({4, 6, n}),                  // one element many times
        random({1 + 4 * 6 * n}, dtype).slice(0, 1).view({4, 6, n}),  // storage offset 1
    };
}

}  // namespace pack
