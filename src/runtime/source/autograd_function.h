#pragma once
// torch.autograd.Function classes of a kernel's package, called by `Name.apply(…)`. In training
// they become nodes of autograd (autograd/autograd_apply.h); for inference their forward is
// compiled as a plain function.

#include "runtime/source/package_values.h"

namespace twinkle::runtime {

// Whether the class is one, by itself or through a base class of the package.
bool is_autograd_function(KernelPackage& package, const PackageModule& module,
                          const python::ClassDef& type);

// What the class's name stands for.
std::shared_ptr<torch::jit::SugaredValue> autograd_function_value(
    std::shared_ptr<Compilation> compilation, const PackageModule& module,
    const python::ClassDef& type);

}  // namespace twinkle::runtime
