#pragma once
// Compiles a kernel's layer, from its source, onto a class of a saved model.

#include "runtime/source/host_value.h"
#include "runtime/source/package_values.h"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct LayerParameter {
    std::string name;
    bool has_default = false;
    // Of how many tensors the annotation says that it is a tuple.
    std::optional<std::size_t> tuple{};
};

// A layer of layers.py and the forward that it has or inherits. Throws CannotCompile where there is
// none.
struct LayerDefinition {
    const PackageModule* module = nullptr;  // of forward
    const python::ClassDef* type = nullptr;
    const python::FunctionDef* forward = nullptr;
};
LayerDefinition find_layer(KernelPackage& package, const std::string& layer);

// The parameters of the layer's forward, without self. The error says where the source is not a
// layer.
tl::expected<std::vector<LayerParameter>, std::string> layer_parameters(KernelPackage& package,
                                                                        const std::string& layer);

// What the compiled method takes: a parameter of the layer, or a parameter of the module that its
// callers pass.
struct LayerArgument {
    std::string name;
    c10::TypePtr type;
};

struct LayerSignature {
    std::vector<LayerArgument> arguments;  // in the order of the layer; the others keep defaults
    std::vector<LayerArgument> passed;     // after them, under the names of the host's attributes
};

// Adds the layer's forward to `type` as the method `method`. On an error (the reason, with file and
// line) the class is as it was.
tl::expected<torch::jit::Function*, std::string> compile_layer(
    Compilation& compilation, const std::string& layer, const c10::ClassTypePtr& type,
    const std::string& method, const LayerSignature& signature, HostAttributes host);

// Takes a compiled method off the class again, as if it had never been there.
void remove_method(const c10::ClassTypePtr& type, const std::string& method);

}  // namespace twinkle::runtime
