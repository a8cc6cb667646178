#pragma once
// The modules of a Python package, parsed on demand, and what the names in them stand for. Imports
// are followed within the package only; nothing is run.

#include "kernel/layers.h"
#include "python/syntax_tree.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

// What binds a name at the top of a module.
struct Binding {
    const python::Stmt* definition = nullptr;  // a ClassDef or FunctionDef
    const python::Expr* value = nullptr;       // of `name = value`
    std::string external;                      // the dotted name of something outside
    std::string module_file;                   // imported from this file of the package
    std::string symbol;                        // its name there
    std::string submodule_file;  // the module that symbol names if module_file does not bind it
};

struct PackageModule {
    std::string file;
    std::string_view source;
    std::unique_ptr<python::Module> tree;
    std::map<std::string, Binding> bindings;
    std::vector<std::string> star_imports;  // files of modules imported with *
    // The modules that star imports lead to, each once; found when first asked for.
    mutable std::optional<std::vector<const PackageModule*>> star_modules;
};

// The module that a build writes, as an external name: `_ops` and what is in it, where the package
// is read without it. "<ops>.ops.norm" is the operator norm.
inline constexpr std::string_view own_operators = "<ops>";

// A class or function and the module that it stands in.
struct Definition {
    const PackageModule* module = nullptr;
    const python::Stmt* node = nullptr;
};

class PackageModules {
public:
    // `package` must outlive this.
    explicit PackageModules(const PackageSources& package) : package_(package) {}

    // Null if there is no such file, or it is no Python (then problems() says why).
    const PackageModule* module(const std::string& file);

    // The names that a module offers to importers, its star imports included.
    std::vector<std::string> public_names(const PackageModule& module);

    // The class or function that `name` stands for in a module of the package, if it is one.
    std::optional<Definition> find(const PackageModule& module, const std::string& name);
    std::optional<Definition> find(const PackageModule& module, const python::Expr& expression);

    // The full name of something outside: "torch.nn.Module" for `nn.Module`. Empty if unknown.
    std::string external_name(const PackageModule& module, const python::Expr& expression);

    // The operators' namespace that `_ops.py` names: "_activation_1a2b"; empty without one.
    std::string own_namespace();

    const std::vector<Problem>& problems() const { return problems_; }

private:
    struct Target {
        Definition definition;
        const PackageModule* module = nullptr;  // a module of the package
        std::string external;
    };
    Target resolve(const PackageModule& module, const std::string& name, int depth);
    Target resolve(const PackageModule& module, const python::Expr& expression, int depth);
    const std::vector<const PackageModule*>& star_modules(const PackageModule& module);

    void bind(PackageModule& module, const python::Block& block, bool weak);
    void bind_one(PackageModule& module, std::string name, Binding binding, bool weak);
    void bind_import(PackageModule& module, const python::Import& node, bool weak);
    void bind_import_from(PackageModule& module, const python::ImportFrom& node, bool weak);
    std::optional<std::string> file_of(const std::string& from, int level, std::string_view name);

    const PackageSources& package_;
    std::map<std::string, std::unique_ptr<PackageModule>> modules_;
    std::vector<Problem> problems_;
};

}  // namespace twinkle::kernel
