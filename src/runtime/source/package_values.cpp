#include "runtime/source/package_values.h"
#include "runtime/format.h"

#include "runtime/source/autograd_function.h"
#include "runtime/source/torch_names.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

using Value = std::shared_ptr<jit::SugaredValue>;

constexpr std::size_t max_nested_functions = 32;

struct OwnModuleValue : jit::SugaredValue {
    OwnModuleValue(std::shared_ptr<Compilation> in, const PackageModule& which)
        : compilation(std::move(in)), module(which) {}
    std::string kind() const override { return "module " + module.name; }
    Value attr(const jit::SourceRange& loc, jit::GraphFunction&,
               const std::string& field) override {
        if (Value value = compilation->value_of(module, field, loc)) {
            return value;
        }
        throw(jit::ErrorReport(loc)
              << "the kernel's module " << module.name << " has no " << field);
    }
    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
};

// Compiled when it is called, for the types that it is called with.
struct OwnFunctionValue : jit::SugaredValue {
    OwnFunctionValue(std::shared_ptr<Compilation> in, const PackageModule& which,
                     const py::FunctionDef& definition)
        : compilation(std::move(in)), module(which), def(definition) {}

    std::string kind() const override { return "function " + def.name; }

    Value call(const jit::SourceRange& loc, jit::GraphFunction& m,
               at::ArrayRef<jit::NamedValue> args, at::ArrayRef<jit::NamedValue> kwargs,
               size_t n_binders) override {
        std::vector<std::string> positional;
        for (const py::Arg& arg : def.args.posonlyargs) {
            positional.push_back(arg.arg);
        }
        for (const py::Arg& arg : def.args.args) {
            positional.push_back(arg.arg);
        }
        if (args.size() > positional.size()) {
            throw(jit::ErrorReport(loc) << def.name << " takes " << positional.size()
                                        << " positional arguments, not " << args.size());
        }
        std::vector<LoweredParameter> parameters;
        std::vector<jit::NamedValue> named;
        const auto give = [&](const std::string& name, const jit::NamedValue& argument) {
            jit::Value* value = argument.value(*m.graph());
            parameters.push_back({name, compilation->name_of(value->type())});
            named.emplace_back(loc, name, value);
        };
        for (std::size_t i = 0; i < args.size(); ++i) {
            give(positional[i], args[i]);
        }
        for (const jit::NamedValue& argument : kwargs) {
            give(argument.name(), argument);
        }
        jit::Function* function = compilation->function(module, def, parameters);
        return jit::FunctionValue(function).call(loc, m, {}, named, n_binders);
    }

    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
    const py::FunctionDef& def;
};

struct ModuleScope : jit::Resolver {
    ModuleScope(std::shared_ptr<Compilation> in, const PackageModule& which)
        : compilation(std::move(in)), module(which) {}

    Value resolveValue(const std::string& name, jit::GraphFunction&,
                       const jit::SourceRange& loc) override {
        return compilation->value_of(module, name, loc);
    }
    c10::TypePtr resolveType(const std::string& name, const jit::SourceRange&) override {
        return compilation->type_named(name);
    }

    std::shared_ptr<Compilation> compilation;
    const PackageModule& module;
};

std::string identifier(std::string text) {
    for (char& c : text) {
        c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    }
    return text;
}

}  // namespace

Compilation::Compilation(std::shared_ptr<KernelPackage> package,
                         std::shared_ptr<jit::CompilationUnit> unit, bool trains)
    : package_(std::move(package)), unit_(std::move(unit)), trains_(trains) {}

std::string Compilation::name_of(const c10::TypePtr& type) {
    const c10::TypePtr plain = c10::unshapedType(type);
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

jit::ResolverPtr Compilation::scope_of(const PackageModule& module) {
    return std::make_shared<ModuleScope>(shared_from_this(), module);
}

Value Compilation::value_of(const PackageModule& module, const std::string& name,
                            const jit::SourceRange& loc) {
    const auto definition = package_->find(module.name, name);
    if (definition.module != nullptr) {
        return value_of_binding(*definition.module, *definition.binding, loc);
    }
    return builtin_name(name);
}

Value Compilation::value_of_binding(const PackageModule& module, const Binding& binding,
                                    const jit::SourceRange& loc) {
    if (const auto* foreign = std::get_if<ForeignModule>(&binding)) {
        return foreign_module(foreign->name);
    }
    if (const auto* foreign = std::get_if<ForeignName>(&binding)) {
        return foreign_name(foreign->module, foreign->name);
    }
    if (const auto* own = std::get_if<OwnModule>(&binding)) {
        const PackageModule* target = package_->module(own->name);
        return target ? std::make_shared<OwnModuleValue>(shared_from_this(), *target) : nullptr;
    }
    if (const auto* function = std::get_if<const py::FunctionDef*>(&binding)) {
        return std::make_shared<OwnFunctionValue>(shared_from_this(), module, **function);
    }
    if (const auto* expr = std::get_if<const py::Expr*>(&binding)) {
        return value_of_expression(module, **expr, loc);
    }
    const auto* type = std::get_if<const py::ClassDef*>(&binding);
    if (type != nullptr && is_autograd_function(*package_, module, **type)) {
        return autograd_function_value(shared_from_this(), module, **type);
    }
    return nullptr;  // other classes have no value
}

// Module constants: literals, and chains of attributes (ops = torch.ops._activation_abc).
Value Compilation::value_of_expression(const PackageModule& module, const py::Expr& expr,
                                       const jit::SourceRange& loc) {
    if (const auto* constant = py::as<py::Constant>(expr)) {
        if (const auto* boolean = std::get_if<bool>(&constant->value)) {
            return constant_value(*boolean);
        }
        if (const auto* integer = std::get_if<std::int64_t>(&constant->value)) {
            return constant_value(*integer);
        }
        if (const auto* number = std::get_if<double>(&constant->value)) {
            return constant_value(*number);
        }
        return constant->string()    ? constant_value(*constant->string())
               : constant->is_none() ? constant_value(c10::IValue())
                                     : nullptr;
    }
    if (const auto* name = py::as<py::Name>(expr)) {
        return value_of(module, name->id, loc);
    }
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        const Value base = value_of_expression(module, *attribute->value, loc);
        jit::GraphFunction unused(c10::QualifiedName("twinkle.constant"),
                                  std::make_shared<jit::Graph>(), nullptr);
        return base ? base->attr(loc, unused, attribute->attr) : nullptr;
    }
    throw(jit::ErrorReport(loc) << "a module constant that is no literal: " << module.file->path()
                                << ":" << expr.span.line);
}

jit::Function* Compilation::function(const PackageModule& module, const py::FunctionDef& def,
                                     const std::vector<LoweredParameter>& parameters) {
    std::string key = module.name + ":" + def.name;
    for (const LoweredParameter& parameter : parameters) {
        key += "," + parameter.name + "=" + parameter.type;
    }
    if (const auto known = functions_.find(key); known != functions_.end()) {
        return known->second;
    }
    if (in_progress_.size() >= max_nested_functions || !in_progress_.insert(key).second) {
        module.file->refuse(def, "the function " + def.name + " calls itself or nests too deeply");
    }
    const c10::QualifiedName prefix("__torch__.twinkle_kernels." +
                                    (module.name.empty() ? "package" : identifier(module.name)));
    const auto tree = lower_function(*module.file, def, identifier(def.name), parameters);
    const auto made =
        unit_->define(prefix, {}, {}, {tree}, {scope_of(module)}, nullptr, /*shouldMangle=*/true);
    in_progress_.erase(key);
    functions_.emplace(key, made.front());
    return made.front();
}

}  // namespace twinkle::runtime
