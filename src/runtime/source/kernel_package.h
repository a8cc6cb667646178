#pragma once
// The Python package of a kernel, as text: its modules, parsed on first use, and what each name at
// module level stands for. Nothing is run.

#include "runtime/source/lowering.h"

#include <map>
#include <memory>
#include <string>
#include <variant>

namespace twinkle::runtime {

// `import torch.nn as nn`
struct ForeignModule {
    std::string name;  // "torch.nn"
};
// `from torch import nn`: a module or a name in one
struct ForeignName {
    std::string module;
    std::string name;
};
// A module of this package, by its name within it: "" for __init__.py, "_ops", "sub.mod"
struct OwnModule {
    std::string name;
};
struct OwnName {
    std::string module;
    std::string name;
};
using Binding =
    std::variant<ForeignModule, ForeignName, OwnModule, OwnName, const python::FunctionDef*,
                 const python::ClassDef*, const python::Expr*>;

struct PackageModule {
    std::string name;
    bool is_package = false;  // an __init__.py
    std::unique_ptr<SourceFile> file;
    std::unique_ptr<python::Module> tree;
    std::map<std::string, Binding> names;
};

// The sources of the package alone, by their path in it: the package is the folder of the build, or
// (in the older layout) the one folder below it.
std::map<std::string, std::string> package_sources(
    const std::map<std::string, std::string>& build_sources);

class KernelPackage {
public:
    // `sources`: path → text of every .py of the build.
    explicit KernelPackage(const std::map<std::string, std::string>& sources);

    // Null if there is no such module. Throws CannotCompile if it does not parse.
    const PackageModule* module(const std::string& name);

    // Where a name leads, through re-exports of this package: the module that defines it and its
    // binding. The module is null if the name is unknown.
    struct Definition {
        const PackageModule* module = nullptr;
        const Binding* binding = nullptr;
    };
    Definition find(const std::string& module, const std::string& name);

private:
    Definition follow(const std::string& module, const std::string& name, int depth);
    void bind(PackageModule& module, const python::Stmt& statement);
    void bind_import(PackageModule& module, const python::ImportFrom& import);

    std::map<std::string, std::string> sources_;  // module path relative to the package root → text
    std::map<std::string, std::unique_ptr<PackageModule>> modules_;
};

}  // namespace twinkle::runtime
