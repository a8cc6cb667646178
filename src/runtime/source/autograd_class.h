#pragma once
// The source of an autograd.Function: the class, its bases in the package, their methods.

#include "runtime/source/kernel_package.h"

#include <string>
#include <vector>

namespace twinkle::runtime {

struct ClassSource {
    const PackageModule* module = nullptr;
    const python::ClassDef* type = nullptr;
};

struct MethodSource {
    const PackageModule* module = nullptr;
    const python::FunctionDef* def = nullptr;
};

[[noreturn]] inline void refuse(const MethodSource& at, const std::string& why) {
    refuse(*at.module, *at.def, why);
}

// Whether the class is one, by itself or through a base class of the package.
bool is_autograd_function(KernelPackage& package, const ClassSource& type);

// Searches base classes, too; has no definition where there is none.
MethodSource find_method(KernelPackage& package, const ClassSource& type, const std::string& name);

std::vector<std::string> positional_parameters(const python::FunctionDef& def);

// Throws CannotCompile for decorators that may change what is computed (make inputs contiguous,
// say) and would be lost.
void check_decorators(const MethodSource& method);

}  // namespace twinkle::runtime
