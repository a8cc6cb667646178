#pragma once
// The Python package of a kernel, as it is compiled: what running it would decide stands for
// nothing.

#include "kernel/package.h"
#include "runtime/source/lowering.h"

#include <map>
#include <set>
#include <string>

namespace twinkle::runtime {

using kernel::Binding;
using kernel::Bindings;
using kernel::ForeignModule;
using kernel::ForeignName;
using kernel::OwnModule;
using kernel::OwnName;
using kernel::PackageModule;
using kernel::UnclearName;

// The sources of the package alone, by their path in it: the package is the folder of the build, or
// (in the older layout) the one folder below it.
std::map<std::string, std::string> package_sources(
    const std::map<std::string, std::string>& build_sources);

class KernelPackage : public kernel::Package {
public:
    // `sources`: path → text of every .py of the build.
    explicit KernelPackage(const std::map<std::string, std::string>& sources);

    const SourceFile& file(const PackageModule& module);

    // Where a name leads, through re-exports of this package: the module that defines it and its
    // binding. The module is null if the name is unknown.
    struct Definition {
        const PackageModule* module = nullptr;
        const Binding* binding = nullptr;
    };
    // Throws CannotCompile for imports that lead in a circle, and for what is no Python.
    Definition find(const std::string& module, const std::string& name);
    Definition follow(const PackageModule& module, const Binding& binding);
    // The same through assignments: what `g` is after `g = f` or `g = module.f`.
    Definition find_definition(const std::string& module, const std::string& name);
    // Whether it is a function, or what may be one: `g = ops.norm`, `g = functools.partial(f, 1)`.
    bool is_callable(const std::string& module, const std::string& name);

private:
    void cannot_parse(const python::SyntaxError& error) override;
    Definition find(const std::string& module, const std::string& name, int depth,
                    std::set<std::string>& stars);
    const Binding& submodule(const std::string& name);

    std::map<const PackageModule*, SourceFile> files_;
    std::map<std::string, Binding> submodules_;
};

[[noreturn]] void refuse(const PackageModule& module, const python::Node& node,
                         const std::string& construct);

}  // namespace twinkle::runtime
