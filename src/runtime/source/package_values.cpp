#include "runtime/source/package_values.h"

#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"
#include "runtime/source/autograd_function.h"
#include "runtime/source/known_value.h"
#include "runtime/source/own_values.h"
#include "runtime/source/python_functions.h"
#include "runtime/source/torch_names.h"
#include "runtime/source/torch_version.h"

#include "python/walk.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

constexpr std::size_t max_nested_functions = 24;
constexpr std::size_t max_functions = 200;
constexpr std::size_t max_nodes = 30'000;
constexpr std::size_t max_height = 600;

struct ModuleScope : jit::Resolver {
    ModuleScope(std::shared_ptr<Compilation> in, const PackageModule& which, Bindings names)
        : compilation(std::move(in)), module(which), local(std::move(names)) {}

    Value resolveValue(const std::string& name, jit::GraphFunction&,
                       const jit::SourceRange& loc) override {
        return compilation->value_of(module, local, name, loc);
    }
    c10::TypePtr resolveType(const std::string& name, const jit::SourceRange&) override {
        return compilation->type_named(name);
    }

    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
    Bindings local;
};

std::string identifier(std::string text) {
    for (char& c : text) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    return text;
}

std::size_t size_of(const py::Node& tree) {
    std::size_t nodes = 0;
    py::walk(tree, [&](const py::Node&) { return ++nodes < max_nodes; });
    return nodes;
}

// Types grow with what is put into tuples; no real one is larger.
void refuse_large(const c10::TypePtr& type, int depth, std::size_t& parts) {
    constexpr int deepest = 16;
    constexpr std::size_t most = 256;
    if (depth > deepest || ++parts > most) {
        throw CannotCompile("a value has a type of too many parts");
    }
    for (const c10::TypePtr& inner : type->containedTypes()) {
        refuse_large(inner, depth + 1, parts);
    }
}

}  // namespace

Compilation::Compilation(std::shared_ptr<KernelPackage> package,
                         std::shared_ptr<jit::CompilationUnit> unit, bool trains)
    : package_(std::move(package)), unit_(std::move(unit)), trains_(trains) {}

void Compilation::begin(const HostSelf* host) {
    host_ = host;
    *budget_ = {};
    for (auto& [name, dependency] : compiled_dependencies_) {
        dependency->host_ = host;
    }
}

std::string Compilation::name_of(const c10::TypePtr& type) {
    const c10::TypePtr plain = c10::unshapedType(type);
    std::size_t parts = 0;
    refuse_large(plain, 0, parts);
    auto known = std::find_if(types_.begin(), types_.end(),
                              [&](const c10::TypePtr& one) { return *one == *plain; });
    if (known == types_.end()) {
        known = types_.insert(types_.end(), plain);
    }
    return fmt::format("_TwinkleType{}", known - types_.begin());
}

c10::TypePtr Compilation::type_named(const std::string& name) const {
    constexpr std::string_view prefix = "_TwinkleType";
    if (!name.starts_with(prefix)) {
        return nullptr;
    }
    const std::size_t index = std::strtoul(name.c_str() + prefix.size(), nullptr, 10);
    return index < types_.size() ? types_[index] : nullptr;
}

jit::ResolverPtr Compilation::scope_of(const PackageModule& module, const Bindings& local) {
    return std::make_shared<ModuleScope>(shared_from_this(), module, local);
}

Value Compilation::value_of(const PackageModule& module, const Bindings& local,
                            const std::string& name, const jit::SourceRange& loc) {
    if (name.starts_with(lowered_name::prefix)) {
        constexpr std::string_view own = lowered_name::own;
        return name.starts_with(own) ? value_of(module, local, name.substr(own.size()), loc)
                                     : lowered_name_value(*this, name);
    }
    const auto imported = local.find(name);
    const auto definition = imported == local.end() ? package_->find(module.name, name)
                                                    : package_->follow(module, imported->second);
    if (definition.module != nullptr) {
        return value_of_binding(*definition.module, *definition.binding, name, loc);
    }
    return builtin_name(name);
}

Value Compilation::value_of_binding(const PackageModule& module, const Binding& binding,
                                    const std::string& name, const jit::SourceRange& loc) {
    const auto functions = [in = shared_from_this()](const std::string& of,
                                                     const std::string& function) {
        return in->python_function(of, function);
    };
    if (const auto* foreign = std::get_if<ForeignModule>(&binding)) {
        Value value = foreign_module(foreign->name, functions);
        return value ? value : unknown_foreign(foreign->name);
    }
    if (const auto* foreign = std::get_if<ForeignName>(&binding)) {
        Value value = foreign_name(foreign->module, foreign->name, functions);
        return value ? value : unknown_foreign(foreign->module + "." + foreign->name);
    }
    if (const auto* own = std::get_if<OwnModule>(&binding)) {
        const PackageModule* target = package_->module(own->name);
        return target ? own_module_value(shared_from_this(), *target) : nullptr;
    }
    if (const auto* function = std::get_if<const py::FunctionDef*>(&binding)) {
        return own_function_value(shared_from_this(), module, **function);
    }
    if (const auto* type = std::get_if<const py::ClassDef*>(&binding)) {
        if (is_autograd_function(*package_, module, **type)) {
            return autograd_function_value(shared_from_this(), module, **type);
        }
        return own_class_value(shared_from_this(), module, **type);
    }
    if (const auto* expr = std::get_if<const py::Expr*>(&binding)) {
        return value_of_expression(module, name, **expr, loc, 0);
    }
    if (const auto* unclear = std::get_if<UnclearName>(&binding)) {
        throw CannotCompile(unclear->why);
    }
    return nullptr;
}

// Module constants: literals, other names, chains of attributes (ops = torch.ops._activation_abc);
// what is computed is compiled as a function without parameters.
Value Compilation::value_of_expression(const PackageModule& module, const std::string& name,
                                       const py::Expr& expr, const jit::SourceRange& loc,
                                       int depth) {
    constexpr int deepest = 16;
    if (depth >= deepest) {
        refuse(module, expr, "a module constant that leads back to itself");
    }
    if (const auto* constant = py::as<py::Constant>(expr)) {
        return literal_value(*constant);
    }
    if (const auto* other = py::as<py::Name>(expr)) {
        const auto found = package_->find(module.name, other->id);
        const auto* value = found.module ? std::get_if<const py::Expr*>(found.binding) : nullptr;
        return value ? value_of_expression(*found.module, other->id, **value, loc, depth + 1)
                     : value_of(module, {}, other->id, loc);
    }
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        const Value base = value_of_expression(module, name, *attribute->value, loc, depth + 1);
        jit::GraphFunction unused(c10::QualifiedName("twinkle.constant"),
                                  std::make_shared<jit::Graph>(), nullptr);
        return base ? base->attr(loc, unused, attribute->attr) : nullptr;
    }
    if (const auto* call = py::as<py::Call>(expr)) {
        if (Value kernel = dependency(module, *call)) {
            return kernel;
        }
        if (Value made = partial(module, name, *call, loc, depth)) {
            return made;
        }
        if (Value made = forwarding_object(module, name, *call, loc, depth)) {
            return made;
        }
    }
    jit::Function* computed = define(module, module.name + ":" + name, expr, name, {}, [&] {
        return lower_constant(package_->file(module), expr, identifier(name), names_in(module, {}));
    });
    return computed_constant(computed);
}

// get_kernel_dep("org/name") at the top of a module: the package of another kernel.
Value Compilation::dependency(const PackageModule& module, const py::Call& call) {
    const std::string called = external_name(module, {}, *call.func);
    if (called == "kernels.get_kernel" || called == "kernels.get_local_kernel") {
        refuse(module, call,
               called +
                   ": a kernel that is fetched while it is used; declare it"
                   " in kernel-depends and use get_kernel_dep");
    }
    if (called != "kernels.get_kernel_dep" && called != "kernels.deps.get_kernel_dep") {
        return nullptr;
    }
    const py::Expr* argument = call.args.size() == 1       ? call.args.front().get()
                               : call.keywords.size() == 1 ? call.keywords.front().value.get()
                                                           : nullptr;
    const auto* repo = py::as<py::Constant>(argument);
    if (repo == nullptr || repo->string() == nullptr) {
        refuse(module, call, "get_kernel_dep of something that is no literal name");
    }
    const std::string& name = *repo->string();
    auto known = compiled_dependencies_[name];
    if (known == nullptr) {
        compiled_dependencies_.erase(name);
        const auto package = dependencies_ ? dependencies_(name) : nullptr;
        if (package == nullptr) {
            refuse(
                module, call,
                "get_kernel_dep(\"" + name + "\"): the mapping has no such kernel for this device");
        }
        known = part(package);
        compiled_dependencies_[name] = known;
    }
    const PackageModule* root = known->package().module("");
    if (root == nullptr) {
        refuse(module, call, "get_kernel_dep(\"" + name + "\"): it has no __init__.py");
    }
    return own_module_value(known, *root);
}

std::shared_ptr<Compilation> Compilation::part(std::shared_ptr<KernelPackage> package) {
    auto result = std::make_shared<Compilation>(std::move(package), unit_, trains_);
    result->budget_ = budget_;
    result->host_ = host_;
    result->dependencies_ = dependencies_;
    result->variant_ = variant_;
    return result;
}

Value Compilation::python_function(const std::string& module, const std::string& name) {
    if (module == "torch.version" && name == "cuda") {
        const auto version = torch_cuda_version(variant_);
        return constant_value(version ? c10::IValue(*version) : c10::IValue());
    }
    if (module != "torch.nn.functional") {
        return nullptr;
    }
    auto& known = compiled_dependencies_["torch.nn.functional"];
    if (known == nullptr) {
        known = part(std::make_shared<KernelPackage>(
            std::map<std::string, std::string>{{"__init__.py", python_functions_source()}}));
    }
    const auto found = known->package().find("", name);
    const auto* function =
        found.module ? std::get_if<const py::FunctionDef*>(found.binding) : nullptr;
    return function ? own_function_value(known, *found.module, **function) : nullptr;
}

Compilation::InProgress::InProgress(std::shared_ptr<CompileBudget> budget, std::string key,
                                    std::size_t height)
    : budget_(std::move(budget)), key_(std::move(key)), height_(height) {
    budget_->in_progress.insert(key_);
    budget_->height += height_;
}

Compilation::InProgress::~InProgress() {
    budget_->in_progress.erase(key_);
    budget_->height -= height_;
}

Compilation::InProgress Compilation::enter(const PackageModule& module, const py::Node& at,
                                           const std::string& key, const std::string& name) {
    const std::string unique = fmt::format("{}:{}", static_cast<const void*>(this), key);
    if (budget_->in_progress.contains(unique)) {
        refuse(module, at, name + " is called recursively");
    }
    if (budget_->in_progress.size() >= max_nested_functions ||
        budget_->height + at.height > max_height) {
        refuse(module, at, "the calls that lead to " + name + " nest too deeply");
    }
    return {budget_, unique, at.height};
}

void Compilation::charge(const PackageModule& module, const py::Node& at, const std::string& name) {
    budget_->nodes += size_of(at);
    if (++budget_->functions > max_functions || budget_->nodes > max_nodes) {
        refuse(module, at,
               "the layer is too large: with " + name + " it is more than " +
                   std::to_string(max_functions) + " functions or " + std::to_string(max_nodes) +
                   " nodes of syntax");
    }
}

jit::Function* Compilation::define(const PackageModule& module, const std::string& key,
                                   const py::Node& at, const std::string& name,
                                   const Bindings& local,
                                   const std::function<jit::Def()>& lowered) {
    if (const auto known = functions_.find(key); known != functions_.end()) {
        return known->second;
    }
    const InProgress guard = enter(module, at, key, name);
    charge(module, at, name);
    const c10::QualifiedName prefix(kernel_code +
                                    (module.name.empty() ? "package" : identifier(module.name)));
    const c10::QualifiedName wanted = unit_->mangle(c10::QualifiedName(prefix, identifier(name)));
    const jit::Def tree = lowered().withName(wanted.name());
    try {
        const auto made = unit_->define(c10::QualifiedName(wanted.prefix()), {}, {}, {tree},
                                        {scope_of(module, local)}, nullptr);
        functions_.emplace(key, made.front());
        return made.front();
    } catch (...) {
        if (unit_->find_function(wanted) != nullptr) {
            unit_->unsafeRemoveMethod(wanted);
        }
        throw;
    }
}

jit::Function* Compilation::function(const PackageModule& module, const py::FunctionDef& def,
                                     const std::vector<LoweredParameter>& parameters, bool again) {
    std::string key = fmt::format("{}:{}:{}", module.name, def.name, def.span.begin);
    for (const LoweredParameter& parameter : parameters) {
        key += "," + parameter.name + "=" +
               (parameter.constant ? constant_key(*parameter.constant) : parameter.type);
    }
    const Bindings local = package_->imports_in(module, def);
    jit::Function* made = define(module, key, def, def.name, local, [&] {
        return lower(module, local, def, identifier(def.name), parameters);
    });
    if (again) {
        functions_.erase(key);
    }
    return made;
}

c10::TupleTypePtr Compilation::record(const PackageModule& module, const py::ClassDef& type,
                                      const std::vector<std::string>& fields,
                                      const std::vector<c10::TypePtr>& types) {
    std::string key;
    for (const c10::TypePtr& one : types) {
        key += "_" + name_of(one).substr(std::string_view("_TwinkleType").size());
    }
    return c10::TupleType::createNamed(
        c10::QualifiedName(kernel_code +
                           (module.name.empty() ? "package" : identifier(module.name)) + "." +
                           identifier(type.name) + key),
        fields, types);
}

}  // namespace twinkle::runtime
