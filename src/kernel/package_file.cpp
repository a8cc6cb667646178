#include <algorithm>

#include "base/file.h"
#include "base/sha256.h"
#include "kernel/build.h"
#include "twinkle/error.h"

namespace twinkle::kernel {
namespace {

constexpr std::size_t namespace_digits = 16;

std::string annotation(const CompiledParameter& parameter) {
    return parameter.name + ": " + (parameter.is_tensor() ? "torch.Tensor" : parameter.type);
}

// The layer that calls the operator: parameters that it finds in its host are attributes.
std::string layer_text(const CompiledOperator& op) {
    std::string attributes;
    std::string parameters;
    std::string arguments;
    for (const CompiledParameter& parameter : op.parameters) {
        const bool attribute = std::find(op.attributes.begin(), op.attributes.end(),
                                         parameter.name) != op.attributes.end();
        if (attribute) {
            attributes += "    " + annotation(parameter) + "\n";
        } else {
            parameters += ", " + annotation(parameter);
        }
        arguments += (arguments.empty() ? "" : ", ") + std::string(attribute ? "self." : "") +
                     parameter.name;
    }
    std::string results = "torch.Tensor";
    for (std::size_t i = 1; i < op.results; ++i) {
        results += ", torch.Tensor";
    }
    return "import torch\n"
           "from torch import nn\n\n"
           "from ._ops import ops\n\n\n"
           "class " +
           op.name +
           "(nn.Module):\n    has_backward: bool = False\n"
           "    can_torch_compile: bool = True\n" +
           attributes + "\n    def forward(self" + parameters + ") -> " +
           (op.results == 1 ? results : "tuple[" + results + "]") + ":\n        return ops." +
           op.name + "(" + arguments + ")\n";
}

}  // namespace

bool is_package(std::string_view path) {
    return path.ends_with(".pt2");
}

std::string package_namespace(std::string_view sha256) {
    return "pt2_" + std::string(sha256.substr(0, namespace_digits));
}

bool is_package_file(const MappedKernel& kernel) {
    return kernel.variant == package_variant && kernel.files.size() == 1 &&
           is_package(kernel.files.front().path);
}

Build read_mapped_build(const MappedKernel& kernel) {
    if (!is_package_file(kernel)) {
        return read_build(kernel.path);
    }
    const auto file = kernel.path / kernel.files.front().path;
    if (auto build = read_package_file(file)) {
        return *std::move(build);
    }
    throw Error(ErrorCode::verification, {.what = "a package is no kernel any more",
                                          .where = base::display_path(file),
                                          .why = "it does not say which operator it computes",
                                          .hint = "resolve again"});
}

PackageSources package_file_sources(const CompiledOperator& op, const std::string& op_namespace) {
    return {{"__init__.py", ""},
            {"_ops.py", "import torch\n\nops = torch.ops." + op_namespace + "\n"},
            {"layers.py", layer_text(op)}};
}

std::optional<Build> read_package_file(const std::filesystem::path& file) {
    auto package = read_operator_package(file, base::display_path(file));
    if (!package) {
        return std::nullopt;
    }
    const base::FileHash hash = base::hash_file(file);
    const std::string name = file.filename().string();
    Build build;
    build.path = file.parent_path();
    build.package = build.path;
    build.files = {{name, hash.size, hash.sha256}};
    build.sources = package_file_sources(package->op, package_namespace(hash.sha256));
    const LayerList layers = read_layers(build.sources);
    const auto& parameters = package->op.parameters;
    const bool has_self = std::any_of(parameters.begin(), parameters.end(),
                                      [](const auto& one) { return one.name == "self"; });
    if (has_self || layers.layers.size() != 1 || !layers.layers.front().problems.empty()) {
        throw Error(ErrorCode::malformed,
                    {.what = "the package cannot be a kernel",
                     .where = base::display_path(file),
                     .why = "no layer in Python can call " + package->op.schema.substr(0, 200),
                     .hint = "give its operator and parameters other names"});
    }
    build.operators = {{package->op.name, package->op.schema}};
    build.packages.push_back({name, *std::move(package)});
    return build;
}

}  // namespace twinkle::kernel
