#pragma once
// What a function of a kernel's package uses, and with it whether it can be compiled without
// Python. Nothing is run; what it calls within the package is followed.

#include <string>

#include "kernel/package_modules.h"
#include "kernel/reason.h"

namespace twinkle::kernel {

class UsageReader {
public:
    explicit UsageReader(PackageModules& modules) : modules_(modules) {}

    // `self` is the name of the parameter that is the host module, empty for a function.
    Usage read(const PackageModule& module, const python::FunctionDef& function,
               const std::string& self);

private:
    PackageModules& modules_;
};

}  // namespace twinkle::kernel
