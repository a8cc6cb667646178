#pragma once
// Compiles a kernel's layer, from its source, onto a class of a saved model.

#include "runtime/source/host_value.h"
#include "runtime/source/package_values.h"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace twinkle::runtime {

struct LayerParameter {
    std::string name;
    bool has_default = false;
};

// The parameters of the layer's forward, without self. The error says where the source is not a
// layer.
tl::expected<std::vector<LayerParameter>, std::string> layer_parameters(KernelPackage& package,
                                                                        const std::string& layer);

// Adds the layer's forward to `type` as the method `method`, for these types of its first
// parameters; the other parameters keep their defaults. On an error (the reason, with file and
// line) the class is as it was.
tl::expected<torch::jit::Function*, std::string> compile_layer(
    Compilation& compilation, const std::string& layer, const c10::ClassTypePtr& type,
    const std::string& method, const std::vector<c10::TypePtr>& argument_types,
    const AttributeMap& supplied);

// Takes a compiled method off the class again, as if it had never been there.
void remove_method(const c10::ClassTypePtr& type, const std::string& method);

}  // namespace twinkle::runtime
