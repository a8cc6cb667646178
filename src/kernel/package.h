#pragma once
// A Python package as text: its modules, parsed on first use, and what each name at module level
// stands for. Nothing is run.

#include "kernel/layers.h"
#include "python/parser.h"
#include "python/syntax_tree.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace twinkle::kernel {

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
    std::string name;         // within the package
    bool is_package = false;  // an __init__.py
    std::string file;         // relative to the package
    std::string_view source;
    std::unique_ptr<python::Module> tree;
    Bindings names;
    // The same, where of alternatives (the branches of if and try) the first counts: it is what the
    // package means to use where it can.
    Bindings likely;
    std::vector<std::string> star_imports;  // modules of this package
};

class Package {
public:
    explicit Package(PackageSources sources) : sources_(std::move(sources)) {}
    virtual ~Package() = default;
    Package(const Package&) = delete;
    Package& operator=(const Package&) = delete;

    // Null if there is no such module, or it is no Python.
    const PackageModule* module(const std::string& name);
    const PackageModule* module_in(const std::string& file);

    // The names that imports in a function bind.
    Bindings imports_in(const PackageModule& module, const python::FunctionDef& function);

    // Lists of the modules read those that are no Python, and imports that lead nowhere.
    const std::vector<Problem>& problems() const { return problems_; }

protected:
    // Says what is to become of a module that is no Python. It may throw.
    virtual void cannot_parse(const python::SyntaxError& error);

    bool has_module(const std::string& name) const { return file_of(name).has_value(); }
    static std::string dotted(const std::string& base, const std::string& name);

private:
    // From what always happens to what happens where something else does not.
    enum class Certainty { certain, tried, perhaps, otherwise };
    void bind(PackageModule& module, const python::Block& body, Certainty certainty);
    void bind(PackageModule& module, const std::string& name, const Binding& binding,
              Certainty certainty, const python::Node& at);
    void bind_targets(PackageModule& module, const python::Assign& assign, Certainty certainty);
    void bind_import(PackageModule& module, const python::ImportFrom& from, Certainty certainty);
    void bind_alternatives(PackageModule& module, const python::Stmt& statement,
                           Certainty certainty);
    std::optional<std::string> file_of(const std::string& name) const;

    PackageSources sources_;
    std::map<std::string, std::unique_ptr<PackageModule>> modules_;  // by file
    std::vector<Problem> problems_;
};

}  // namespace twinkle::kernel
