#pragma once
// Compiles a kernel's layer, from its source, onto a class of a saved model.

#include "runtime/source/host_value.h"
#include "runtime/source/layer_definition.h"
#include "runtime/source/package_values.h"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

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

// Adds the layer's `prepare` to `type` as the method `method`: the host in, a dictionary out.
// Errors as above.
tl::expected<torch::jit::Function*, std::string> compile_prepare(Compilation& compilation,
                                                                 const std::string& layer,
                                                                 const c10::ClassTypePtr& type,
                                                                 const std::string& method,
                                                                 HostAttributes host);

// Takes a compiled method off the class again, as if it had never been there.
void remove_method(const c10::ClassTypePtr& type, const std::string& method);

}  // namespace twinkle::runtime
