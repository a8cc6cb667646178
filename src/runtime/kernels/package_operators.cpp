#include "runtime/kernels/package_operators.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>

namespace twinkle::runtime {

namespace {

using kernel::CompiledOperator;
using kernel::CompiledParameter;

// Inductor's code for GPUs, and Triton's, rely on it.
constexpr std::uintptr_t alignment = 16;

std::string dtype_name(at::ScalarType dtype) {
    switch (dtype) {
        case at::kFloat: return "float32";
        case at::kDouble: return "float64";
        case at::kHalf: return "float16";
        case at::kBFloat16: return "bfloat16";
        case at::kChar: return "int8";
        case at::kByte: return "uint8";
        case at::kInt: return "int32";
        case at::kLong: return "int64";
        case at::kBool: return "bool";
        default: return c10::toString(dtype);
    }
}

// Sizes with a name, as a call has them.
using Sizes = std::vector<std::pair<const std::string*, std::int64_t>>;

bool fits(const kernel::CompiledSize& wanted, std::int64_t size, Sizes& sizes) {
    if (size < wanted.least || size > wanted.most) {
        return false;
    }
    if (wanted.name.empty()) {
        return true;
    }
    const auto known = std::find_if(sizes.begin(), sizes.end(),
                                    [&](const auto& one) { return *one.first == wanted.name; });
    if (known != sizes.end()) {
        return known->second == size;
    }
    sizes.emplace_back(&wanted.name, size);
    return true;
}

bool fits(const CompiledParameter& parameter, const at::Tensor& tensor, Sizes& sizes) {
    if (!tensor.defined() || tensor.layout() != at::kStrided ||
        dtype_name(tensor.scalar_type()) != parameter.dtype ||
        tensor.dim() != static_cast<std::int64_t>(parameter.sizes.size())) {
        return false;
    }
    for (std::size_t i = 0; i < parameter.sizes.size(); ++i) {
        if (!fits(parameter.sizes[i], tensor.size(static_cast<std::int64_t>(i)), sizes)) {
            return false;
        }
    }
    return true;
}

bool fits(const AttributeValue& constant, const c10::IValue& value) {
    if (const auto* wanted = std::get_if<bool>(&constant)) {
        return value.isBool() && value.toBool() == *wanted;
    }
    if (const auto* wanted = std::get_if<std::int64_t>(&constant)) {
        return value.isInt() && value.toInt() == *wanted;
    }
    const auto* wanted = std::get_if<double>(&constant);
    return wanted != nullptr && value.isDouble() && value.toDouble() == *wanted;
}

bool fits(const CompiledOperator& op, c10::ArrayRef<c10::IValue> arguments) {
    Sizes sizes;
    for (std::size_t i = 0; i < op.parameters.size(); ++i) {
        const CompiledParameter& parameter = op.parameters[i];
        const bool one = parameter.is_tensor() ? arguments[i].isTensor() &&
                                                     fits(parameter, arguments[i].toTensor(), sizes)
                                               : fits(*parameter.constant, arguments[i]);
        if (!one) {
            return false;
        }
    }
    return true;
}

std::string text_of(const c10::IValue& argument) {
    std::ostringstream out;
    if (argument.isTensor() && argument.toTensor().defined()) {
        const at::Tensor& tensor = argument.toTensor();
        out << dtype_name(tensor.scalar_type()) << tensor.sizes() << " on " << tensor.device();
    } else if (argument.isTensor()) {
        out << "no tensor";
    } else {
        out << argument;
    }
    return out.str();
}

at::Tensor as_compiled(const at::Tensor& tensor) {
    at::Tensor plain = tensor.resolve_conj().resolve_neg().contiguous();
    const auto address = reinterpret_cast<std::uintptr_t>(plain.const_data_ptr());
    return address % alignment == 0 ? plain : plain.clone();
}

// Sends calls on one device to the first package that fits.
class PackagedOperator : public c10::OperatorKernel {
public:
    explicit PackagedOperator(std::vector<OpenedPackage> packages)
        : packages_(std::move(packages)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                    torch::jit::Stack* stack) {
        const std::size_t count = packages_.front().op.parameters.size();
        const auto arguments = torch::jit::last(*stack, count);
        const auto package =
            std::find_if(packages_.begin(), packages_.end(),
                         [&](const OpenedPackage& one) { return fits(one.op, arguments); });
        if (package == packages_.end()) {
            refuse(op, arguments);
        }
        std::vector<at::Tensor> results = call(*package, arguments);
        torch::jit::drop(*stack, count);
        for (at::Tensor& result : results) {
            stack->emplace_back(std::move(result));
        }
    }

private:
    [[noreturn]] void refuse(const c10::OperatorHandle& op,
                             c10::ArrayRef<c10::IValue> arguments) const {
        std::string compiled;
        for (const OpenedPackage& package : packages_) {
            compiled += (compiled.empty() ? "" : "; ") + kernel::compiled_for_text(package.op);
        }
        std::string called;
        for (const c10::IValue& argument : arguments) {
            called += (called.empty() ? "" : ", ") + text_of(argument);
        }
        TORCH_CHECK(false, op.operator_name(), " is compiled for (", compiled,
                    "); it was called with (", called, ")");
    }

    static std::vector<at::Tensor> call(const OpenedPackage& package,
                                        c10::ArrayRef<c10::IValue> arguments) {
        const at::AutoDispatchBelowADInplaceOrView without_autograd;
        std::vector<at::Tensor> inputs;
        for (const c10::IValue& argument : arguments) {
            if (argument.isTensor()) {
                inputs.push_back(as_compiled(argument.toTensor()));
            }
        }
        const c10::Device device = inputs.front().device();
        for (const at::Tensor& input : inputs) {
            TORCH_CHECK(input.device() == device, "the inputs of ", package.op.name,
                        " are on several devices: ", device, " and ", input.device());
        }
        std::vector<at::Tensor> results = package.code->run(inputs, package.op.results, device);
        // The schema says that results are new.
        for (at::Tensor& result : results) {
            TORCH_CHECK(result.defined(), package.op.name, " returns no tensor");
            if (std::any_of(inputs.begin(), inputs.end(),
                            [&](const at::Tensor& input) { return result.is_alias_of(input); })) {
                result = result.clone();
            }
        }
        return results;
    }

    std::vector<OpenedPackage> packages_;
};

c10::DispatchKey key_of(const std::string& device) {
    return device == "cuda" ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
}

}  // namespace

void register_packages(const std::string& op_namespace, std::vector<OpenedPackage> packages) {
    if (packages.empty()) {
        return;
    }
    static auto& for_good = *new std::vector<std::unique_ptr<torch::Library>>();
    auto library = std::make_unique<torch::Library>(torch::Library::FRAGMENT, op_namespace,
                                                    std::nullopt, "a package of twinkle", 0);
    std::map<std::string, std::map<std::string, std::vector<OpenedPackage>>> by_operator;
    for (OpenedPackage& package : packages) {
        by_operator[package.op.schema][package.device].push_back(std::move(package));
    }
    for (auto& [schema, by_device] : by_operator) {
        library->def(torch::schema(schema.c_str(), c10::AliasAnalysisKind::FROM_SCHEMA));
        for (auto& [device, same] : by_device) {
            const std::string name = same.front().op.name;
            library->impl(
                name.c_str(),
                torch::dispatch(key_of(device),
                                torch::CppFunction::makeFromBoxedFunctor(
                                    std::make_unique<PackagedOperator>(std::move(same)))));
        }
    }
    for_good.push_back(std::move(library));
}

}  // namespace twinkle::runtime
