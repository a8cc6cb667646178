#pragma once
// What the source of a kernel's layer says of it, before anything is compiled.

#include "runtime/source/kernel_package.h"

#include <tl/expected.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct LayerParameter {
    std::string name;
    bool has_default = false;
    // If annotated as a tuple of tensors: how many.
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
// Its method `prepare` in the place of forward, or nothing. Throws CannotCompile.
LayerDefinition find_prepare(KernelPackage& package, const std::string& layer);

// The parameters of the layer's forward, without self. The error says where the source is not a
// layer.
tl::expected<std::vector<LayerParameter>, std::string> layer_parameters(KernelPackage& package,
                                                                        const std::string& layer);

// The names of the tensors that the layer's method `prepare` makes, as its last statement, the
// return of a dictionary, has them; empty: it has no such method. The error says why they cannot be
// told.
tl::expected<std::vector<std::string>, std::string> prepared_names(KernelPackage& package,
                                                                   const std::string& layer);

}  // namespace twinkle::runtime
