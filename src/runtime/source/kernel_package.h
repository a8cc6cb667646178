#pragma once
// The Python package of a kernel, as text: its modules, parsed on first use, and what each name at
// module level stands for. Nothing is run.

#include "runtime/source/lowering.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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
// A name that stands for one thing or another, which only running the module would tell.
struct UnclearName {
    std::string why;
};
using Binding =
    std::variant<ForeignModule, ForeignName, OwnModule, OwnName, UnclearName,
                 const python::FunctionDef*, const python::ClassDef*, const python::Expr*>;
using Bindings = std::map<std::string, Binding>;

struct PackageModule {
    std::string name;
    bool is_package = false;  // an __init__.py
    std::unique_ptr<SourceFile> file;
    std::unique_ptr<python::Module> tree;
    Bindings names;
    std::vector<std::string> star_imports;  // modules of this package
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
    // Throws CannotCompile for imports that lead in a circle.
    Definition find(const std::string& module, const std::string& name);
    Definition follow(const PackageModule& module, const Binding& binding);
    // The same through assignments: what `g` is after `g = f` or `g = module.f`.
    Definition find_definition(const std::string& module, const std::string& name);
    // Whether it is a function, or what may be one: `g = ops.norm`, `g = functools.partial(f, 1)`.
    bool is_callable(const std::string& module, const std::string& name);

    // The names that imports in a function bind.
    Bindings imports_in(const PackageModule& module, const python::FunctionDef& function);

private:
    enum class Certainty { certain, perhaps, otherwise };
    Definition find(const std::string& module, const std::string& name, int depth,
                    std::set<std::string>& stars);
    void bind(PackageModule& module, const python::Block& body, Certainty certainty);
    void bind(PackageModule& module, const std::string& name, Binding binding, Certainty certainty,
              const python::Node& at);
    void bind_targets(PackageModule& module, const python::Assign& assign, Certainty certainty);
    void bind_alternatives(PackageModule& module, const python::Stmt& statement,
                           Certainty certainty);
    std::vector<std::pair<std::string, Binding>> imported(const PackageModule& module,
                                                          const python::Import& import) const;
    std::vector<std::pair<std::string, Binding>> imported(const PackageModule& module,
                                                          const python::ImportFrom& import) const;
    std::string origin_of(const PackageModule& module, const python::ImportFrom& import) const;
    bool has_module(const std::string& name) const;
    const Binding& submodule(const std::string& name);

    std::map<std::string, std::string> sources_;  // module path relative to the package root → text
    std::map<std::string, std::unique_ptr<PackageModule>> modules_;
    std::map<std::string, Binding> submodules_;
};

}  // namespace twinkle::runtime
