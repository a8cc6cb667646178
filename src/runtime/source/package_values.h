#pragma once
// What the names in a kernel's Python source mean to LibTorch's compiler: torch and its modules,
// operators, functions and constants of the package.

#include "runtime/source/kernel_package.h"

#include <torch/csrc/jit/frontend/resolver.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

// One compilation of kernel source into one model: the package, the model's compilation unit, the
// types that parameters were given, the functions compiled so far.
class Compilation : public std::enable_shared_from_this<Compilation> {
public:
    // `trains`: gradients will be asked for, so that an autograd.Function must become a node.
    Compilation(std::shared_ptr<KernelPackage> package,
                std::shared_ptr<torch::jit::CompilationUnit> unit, bool trains = false);

    KernelPackage& package() { return *package_; }
    torch::jit::CompilationUnit& unit() { return *unit_; }
    const std::shared_ptr<torch::jit::CompilationUnit>& shared_unit() const { return unit_; }
    bool trains() const { return trains_; }

    // What autograd_function.cpp has compiled, by Function and argument types.
    struct AutogradCache {
        std::map<std::string, c10::ClassTypePtr> classes;
        std::map<std::string, torch::jit::Function*> forwards;
    };
    AutogradCache& autograd_cache() { return autograd_cache_; }

    // The name under which the resolver answers this type.
    std::string name_of(const c10::TypePtr& type);
    c10::TypePtr type_named(const std::string& name) const;

    // Resolves names as a module of the package sees them.
    torch::jit::ResolverPtr scope_of(const PackageModule& module);

    // Null for a name that the module does not have.
    std::shared_ptr<torch::jit::SugaredValue> value_of(const PackageModule& module,
                                                       const std::string& name,
                                                       const torch::jit::SourceRange& loc);

    // A package function for these argument types, compiled once. Throws CannotCompile.
    torch::jit::Function* function(const PackageModule& module, const python::FunctionDef& def,
                                   const std::vector<LoweredParameter>& parameters);

private:
    std::shared_ptr<torch::jit::SugaredValue> value_of_binding(const PackageModule& module,
                                                               const Binding& binding,
                                                               const torch::jit::SourceRange& loc);
    std::shared_ptr<torch::jit::SugaredValue> value_of_expression(
        const PackageModule& module, const python::Expr& expr, const torch::jit::SourceRange& loc);

    std::shared_ptr<KernelPackage> package_;
    std::shared_ptr<torch::jit::CompilationUnit> unit_;
    std::vector<c10::TypePtr> types_;
    std::map<std::string, torch::jit::Function*> functions_;
    std::set<std::string> in_progress_;
    AutogradCache autograd_cache_;
    bool trains_;
};

}  // namespace twinkle::runtime
