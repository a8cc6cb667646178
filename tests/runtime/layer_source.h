#pragma once
// Layers of a few lines, compiled onto a host that has an epsilon, submodules and a list.

#include "runtime/scripted.h"

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace twinkle::tests {

using Sources = std::map<std::string, std::string>;

// A host with weight (4), eps, helper(x) = x + 1, the submodules gate (× 2) and experts (two of
// them), and attributes of every kind.
inline torch::jit::Module host_module() {
    auto unit = std::make_shared<torch::jit::CompilationUnit>();
    auto module = module_of("Host",
                            "def forward(self, x):\n    return x\n"
                            "def helper(self, x):\n    return x + 1\n",
                            unit);
    auto gate = module_of("Gate", "def forward(self, x):\n    return x * 2\n", unit);
    auto experts = torch::jit::Module("__torch__.torch.nn.modules.container.ModuleList", unit);
    experts.register_module("0", gate);
    experts.register_module("1",
                            module_of("Other", "def forward(self, x):\n    return x * 3\n", unit));
    module.register_module("gate", gate);
    module.register_module("experts", experts);
    module.register_attribute("splits", c10::ListType::ofInts(),
                              c10::IValue(c10::List<std::int64_t>({1, 3})));
    module.register_attribute("name", c10::StringType::get(), "silu");
    module.register_attribute("pair",
                              c10::TupleType::create({c10::IntType::get(), c10::FloatType::get()}),
                              c10::ivalue::Tuple::create({std::int64_t{2}, 0.5}));
    module.register_attribute("bias", c10::OptionalType::ofTensor(), c10::IValue());
    return module;
}

struct CompiledLayer {
    torch::jit::Module module;
    tl::expected<torch::jit::Function*, std::string> method;
};

// The types of the layer's first parameters.
inline runtime::LayerSignature signature_of(runtime::KernelPackage& package,
                                            const std::string& layer,
                                            const std::vector<c10::TypePtr>& types) {
    const auto parameters = runtime::layer_parameters(package, layer);
    runtime::LayerSignature signature;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const bool known = parameters && i < parameters->size();
        signature.arguments.push_back(
            {known ? (*parameters)[i].name : "x" + std::to_string(i), types[i]});
    }
    return signature;
}

inline CompiledLayer compile_onto(torch::jit::Module module, const Sources& sources,
                                  const std::vector<c10::TypePtr>& types,
                                  const runtime::AttributeMap& supplied = {}) {
    const auto package = std::make_shared<runtime::KernelPackage>(sources);
    const auto compilation =
        std::make_shared<runtime::Compilation>(package, module.type()->compilation_unit());
    auto method =
        runtime::compile_layer(*compilation, "Layer", module.type(), "replaced",
                               signature_of(*package, "Layer", types), {supplied, {}, {}});
    return {module, std::move(method)};
}

inline std::vector<std::string> method_names(const torch::jit::Module& module) {
    std::vector<std::string> names;
    for (const torch::jit::Function* method : module.type()->methods()) {
        names.push_back(method->name());
    }
    return names;
}

}  // namespace twinkle::tests
