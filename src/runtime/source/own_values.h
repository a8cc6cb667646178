#pragma once
// The values of what a kernel's package defines: modules, functions, classes.

#include "runtime/source/package_values.h"

namespace twinkle::runtime {

std::shared_ptr<torch::jit::SugaredValue> own_module_value(std::shared_ptr<Compilation> compilation,
                                                           const PackageModule& module);
std::shared_ptr<torch::jit::SugaredValue> own_function_value(
    std::shared_ptr<Compilation> compilation, const PackageModule& module,
    const python::FunctionDef& def);
// An exception, a record (dataclass, NamedTuple), an IntEnum or a namespace of constants.
std::shared_ptr<torch::jit::SugaredValue> own_class_value(std::shared_ptr<Compilation> compilation,
                                                          const PackageModule& module,
                                                          const python::ClassDef& type);

// A module constant that is computed: the function is called where it is used.
std::shared_ptr<torch::jit::SugaredValue> computed_constant(torch::jit::Function* function);

// Names that only lowered trees use (lowering.h); null for others.
std::shared_ptr<torch::jit::SugaredValue> lowered_name_value(Compilation& compilation,
                                                             const std::string& name);

}  // namespace twinkle::runtime
