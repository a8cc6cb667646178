#pragma once
// What the names in a package stand for, as far as that is told without compiling anything. Imports
// are followed within the package only.

#include "kernel/package.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::kernel {

// The module that a build writes, as an external name: `_ops` and what is in it, where the package
// is read without it. "<ops>.ops.norm" is the operator norm.
inline constexpr std::string_view own_operators = "<ops>";

// A class or function and the module that it stands in.
struct Definition {
    const PackageModule* module = nullptr;
    const python::Stmt* node = nullptr;
};

class PackageModules : public Package {
public:
    using Package::Package;

    // The names that a module offers to importers, its star imports included.
    std::vector<std::string> public_names(const PackageModule& module);

    // The class or function that `name` stands for in a module of the package, if it is one.
    std::optional<Definition> find(const PackageModule& module, const std::string& name);
    std::optional<Definition> find(const PackageModule& module, const python::Expr& expression);

    // The full name of something outside: "torch.nn.Module" for `nn.Module`. Empty if unknown.
    std::string external_name(const PackageModule& module, const python::Expr& expression);

    // The operators' namespace that `_ops.py` names: "_activation_1a2b"; empty without one.
    std::string own_namespace();

private:
    struct Target {
        Definition definition;
        const PackageModule* module = nullptr;  // a module of the package
        std::string external;
    };
    Target resolve(const PackageModule& module, const std::string& name, int depth);
    Target resolve(const PackageModule& module, const python::Expr& expression, int depth);
    Target imported(const PackageModule& module, const OwnName& name, int depth);
    const std::vector<const PackageModule*>& star_modules(const PackageModule& module);

    // What star imports lead to, each module once; found when first asked for.
    std::map<const PackageModule*, std::vector<const PackageModule*>> star_modules_;
};

}  // namespace twinkle::kernel
