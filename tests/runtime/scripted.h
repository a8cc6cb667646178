#pragma once
// Kernels made of Python text, for the tests of libtwinkle's parts.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/source/layer_compiler.h"
#include "runtime/source/package_values.h"
#include "twinkle/error.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/sha256.h"
#include "torchscript.h"

namespace twinkle::tests {

// A plain Python package as a kernel, with one layer bound to one class.
inline Mapping mapping_to_package(const Folder& folder, const std::string& layers_py,
                                  const std::string& layer, const std::string& class_name) {
    MappedKernel kernel;
    kernel.name = "package";
    kernel.device = "any";
    kernel.path = folder.path();
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"__init__.py", ""}, {"layers.py", layers_py}}) {
        folder.write(name, text);
        kernel.files.push_back({name, text.size(), base::sha256_hex(text)});
    }
    MappedLayer bound;
    bound.kernel_name = layer;
    bound.classes = {class_name};
    bound.candidates.push_back({"package", layer, "any", std::nullopt, "fallback", true, true});
    Mapping mapping;
    mapping.kernels.push_back(kernel);
    mapping.layers.push_back(bound);
    return mapping;
}

}  // namespace twinkle::tests
