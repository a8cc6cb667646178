#pragma once
// What the names in a kernel's Python source mean to LibTorch's compiler: torch and its modules,
// operators, functions, classes and constants of the package.

#include "runtime/source/kernel_package.h"

#include <torch/csrc/jit/frontend/resolver.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct HostSelf;

// What one layer may cost; shared by the packages that it is compiled from.
struct CompileBudget {
    std::set<std::string> in_progress;
    std::size_t functions = 0;
    std::size_t nodes = 0;   // of the syntax trees
    std::size_t height = 0;  // of the functions that are in progress
};

// One compilation of kernel source into one model: the package, the model's compilation unit, the
// types that parameters were given, the functions compiled so far.
class Compilation : public std::enable_shared_from_this<Compilation> {
public:
    // A kernel that the package depends on, by its repository. Null, or throws CannotCompile.
    using Dependencies = std::function<std::shared_ptr<KernelPackage>(const std::string& repo_id)>;

    // `trains`: gradients will be asked for, so that an autograd.Function must become a node.
    Compilation(std::shared_ptr<KernelPackage> package,
                std::shared_ptr<torch::jit::CompilationUnit> unit, bool trains = false);

    KernelPackage& package() { return *package_; }
    torch::jit::CompilationUnit& unit() { return *unit_; }
    const std::shared_ptr<torch::jit::CompilationUnit>& shared_unit() const { return unit_; }
    bool trains() const { return trains_; }
    void set_dependencies(Dependencies dependencies) { dependencies_ = std::move(dependencies); }
    // Sets the variant of the build that is compiled: torch.version.cuda follows from it.
    void set_variant(std::string variant) { variant_ = std::move(variant); }

    // What autograd_function.cpp has compiled, by Function and argument types.
    struct AutogradCache {
        std::map<std::string, c10::ClassTypePtr> classes;
        std::map<std::string, torch::jit::Function*> forwards;
    };
    AutogradCache& autograd_cache() { return autograd_cache_; }

    // The host of the layer that is being compiled, or null.
    const HostSelf* host() const { return host_; }
    // Begins a layer: for this host, with a fresh budget.
    void begin(const HostSelf* host);

    // The name under which the resolver answers this type.
    std::string name_of(const c10::TypePtr& type);
    c10::TypePtr type_named(const std::string& name) const;
    // The type that an annotation means; null if TorchScript has none.
    c10::TypePtr type_of(const PackageModule& module, const Bindings& local,
                         const python::Expr& annotation, int depth = 0);

    // Resolves names as a function in a module of the package sees them; `local` are those that
    // imports in the function bind.
    torch::jit::ResolverPtr scope_of(const PackageModule& module, const Bindings& local = {});

    // Null for a name that the module does not have.
    std::shared_ptr<torch::jit::SugaredValue> value_of(const PackageModule& module,
                                                       const Bindings& local,
                                                       const std::string& name,
                                                       const torch::jit::SourceRange& loc);

    // "torch.nn.functional" for `F`, "builtins.int" for `int`; empty for what is the package's own.
    std::string external_name(const PackageModule& module, const Bindings& local,
                              const python::Expr& expr, int depth = 0);

    // The tree of a function of the package, its decorators looked at; of a method of an
    // autograd.Function with what it stores. Throws CannotCompile.
    torch::jit::Def lower(const PackageModule& module, const Bindings& local,
                          const python::FunctionDef& def, const std::string& name,
                          const std::vector<LoweredParameter>& parameters,
                          StoredValues* stored = nullptr);

    // While it lives, a function is being compiled: the same again is a recursion. Throws
    // CannotCompile for that, and for calls that nest too deeply.
    class [[nodiscard]] InProgress {
    public:
        InProgress(std::shared_ptr<CompileBudget> budget, std::string key, std::size_t height);
        ~InProgress();
        InProgress(const InProgress&) = delete;
        InProgress& operator=(const InProgress&) = delete;

    private:
        std::shared_ptr<CompileBudget> budget_;
        std::string key_;
        std::size_t height_;
    };
    InProgress enter(const PackageModule& module, const python::Node& at, const std::string& key,
                     const std::string& name);

    // Counts what is compiled next. Throws CannotCompile where the layer is too large.
    void charge(const PackageModule& module, const python::Node& at, const std::string& name);

    // A package function for these argument types, compiled once (each time if `again`). Throws
    // CannotCompile.
    torch::jit::Function* function(const PackageModule& module, const python::FunctionDef& def,
                                   const std::vector<LoweredParameter>& parameters, bool again);

    // A class with a value for each field: the named tuple of these types.
    c10::TupleTypePtr record(const PackageModule& module, const python::ClassDef& type,
                             const std::vector<std::string>& fields,
                             const std::vector<c10::TypePtr>& types);

private:
    std::shared_ptr<torch::jit::SugaredValue> value_of_binding(const PackageModule& module,
                                                               const Binding& binding,
                                                               const std::string& name,
                                                               const torch::jit::SourceRange& loc);
    std::shared_ptr<torch::jit::SugaredValue> value_of_expression(
        const PackageModule& module, const std::string& name, const python::Expr& expr,
        const torch::jit::SourceRange& loc, int depth);
    std::shared_ptr<torch::jit::SugaredValue> dependency(const PackageModule& module,
                                                         const python::Call& call);
    std::shared_ptr<torch::jit::SugaredValue> partial(const PackageModule& module,
                                                      const std::string& name,
                                                      const python::Call& call,
                                                      const torch::jit::SourceRange& loc,
                                                      int depth);
    std::shared_ptr<torch::jit::SugaredValue> forwarding_object(const PackageModule& module,
                                                                const std::string& name,
                                                                const python::Call& call,
                                                                const torch::jit::SourceRange& loc,
                                                                int depth);
    // Functions of torch.nn.functional that are compiled from source, and torch.version.
    std::shared_ptr<torch::jit::SugaredValue> python_function(const std::string& module,
                                                              const std::string& name);
    std::shared_ptr<Compilation> part(std::shared_ptr<KernelPackage> package);
    NameScope names_in(const PackageModule& module, const Bindings& local);
    torch::jit::Function* define(const PackageModule& module, const std::string& key,
                                 const python::Node& at, const std::string& name,
                                 const Bindings& local,
                                 const std::function<torch::jit::Def()>& lowered);

    std::shared_ptr<KernelPackage> package_;
    std::shared_ptr<torch::jit::CompilationUnit> unit_;
    Dependencies dependencies_;
    std::map<std::string, std::shared_ptr<Compilation>> compiled_dependencies_;
    std::shared_ptr<CompileBudget> budget_ = std::make_shared<CompileBudget>();
    const HostSelf* host_ = nullptr;
    std::string variant_;
    std::vector<c10::TypePtr> types_;
    std::map<std::string, torch::jit::Function*> functions_;
    AutogradCache autograd_cache_;
    bool trains_;
};

}  // namespace twinkle::runtime
