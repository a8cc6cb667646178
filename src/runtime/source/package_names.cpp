// What is told from names alone, without types: annotations, decorators, context managers.

#include "runtime/source/package_values.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

// Decorators after which a function computes what its body says.
bool changes_nothing(const std::string& decorator) {
    static const std::set<std::string> known = {"builtins.staticmethod",
                                                "functools.cache",
                                                "functools.lru_cache",
                                                "torch._dynamo.disable",
                                                "torch._dynamo.allow_in_graph",
                                                "torch.compile",
                                                "torch.compiler.allow_in_graph",
                                                "torch.compiler.assume_constant_result",
                                                "torch.compiler.disable",
                                                "torch.fx.wrap",
                                                "torch.jit.export",
                                                "torch.jit.ignore",
                                                "torch.jit.script",
                                                "torch.jit.script_if_tracing",
                                                "torch.jit.unused",
                                                "torch.library.custom_op",
                                                "torch.no_grad",
                                                "typing.no_type_check",
                                                "typing_extensions.deprecated",
                                                "warnings.deprecated"};
    return known.contains(decorator);
}

c10::TypePtr plain_type(const std::string& name) {
    static const std::map<std::string, c10::TypePtr> types = {
        {"builtins.int", c10::IntType::get()},
        {"builtins.float", c10::FloatType::get()},
        {"builtins.bool", c10::BoolType::get()},
        {"builtins.str", c10::StringType::get()},
        {"torch.Tensor", c10::TensorType::get()},
        {"torch.FloatTensor", c10::TensorType::get()},
        {"torch.LongTensor", c10::TensorType::get()},
        {"torch.nn.Parameter", c10::TensorType::get()},
        {"torch.nn.parameter.Parameter", c10::TensorType::get()},
        {"torch.dtype", c10::IntType::get()},
        {"torch.device", c10::DeviceObjType::get()}};
    const auto known = types.find(name);
    return known == types.end() ? nullptr : known->second;
}

const py::Expr* decorator_name(const py::ExprPtr& decorator) {
    const auto* call = py::as<py::Call>(decorator);
    return call ? call->func.get() : decorator.get();
}

}  // namespace

std::string Compilation::external_name(const PackageModule& module, const Bindings& local,
                                       const py::Expr& expr, int depth) {
    constexpr int deepest = 16;
    if (depth >= deepest) {
        return "";
    }
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        const std::string base = external_name(module, local, *attribute->value, depth + 1);
        return base.empty() ? "" : base + "." + attribute->attr;
    }
    const auto* name = py::as<py::Name>(expr);
    if (name == nullptr) {
        return "";
    }
    const auto imported = local.find(name->id);
    const auto found = imported == local.end() ? package_->find(module.name, name->id)
                                               : package_->follow(module, imported->second);
    if (found.module == nullptr) {
        return "builtins." + name->id;
    }
    if (const auto* foreign = std::get_if<ForeignModule>(found.binding)) {
        return foreign->name;
    }
    if (const auto* foreign = std::get_if<ForeignName>(found.binding)) {
        return foreign->module + "." + foreign->name;
    }
    const auto* value = std::get_if<const py::Expr*>(found.binding);
    const bool alias = value != nullptr && (py::as<py::Name>(**value) != nullptr ||
                                            py::as<py::Attribute>(**value) != nullptr);
    return alias ? external_name(*found.module, {}, **value, depth + 1) : "";
}

c10::TypePtr Compilation::type_of(const PackageModule& module, const Bindings& local,
                                  const py::Expr& annotation, int depth) {
    constexpr int deepest = 16;
    if (depth >= deepest) {
        return nullptr;
    }
    const auto inner = [&](const py::Expr& one) { return type_of(module, local, one, depth + 1); };
    const auto optional = [](const c10::TypePtr& type) -> c10::TypePtr {
        return type ? c10::OptionalType::create(type) : nullptr;
    };
    if (const auto* either = py::as<py::BinOp>(annotation);
        either != nullptr && either->op == py::Operator::BitOr) {
        const auto is_none = [](const py::ExprPtr& one) {
            const auto* constant = py::as<py::Constant>(one);
            return constant != nullptr && constant->is_none();
        };
        return is_none(either->right)  ? optional(inner(*either->left))
               : is_none(either->left) ? optional(inner(*either->right))
                                       : nullptr;
    }
    const auto* of = py::as<py::Subscript>(annotation);
    if (of == nullptr) {
        return plain_type(external_name(module, local, annotation));
    }
    std::string outer = external_name(module, local, *of->value);
    outer = outer.substr(outer.rfind('.') + 1);
    std::vector<c10::TypePtr> parts;
    if (const auto* tuple = py::as<py::Tuple>(of->slice)) {
        for (const py::ExprPtr& element : tuple->elts) {
            parts.push_back(inner(*element));
        }
    } else {
        parts.push_back(inner(*of->slice));
    }
    if (std::find(parts.begin(), parts.end(), nullptr) != parts.end()) {
        return nullptr;
    }
    if (outer == "Optional" && parts.size() == 1) {
        return optional(parts[0]);
    }
    if ((outer == "List" || outer == "list" || outer == "Sequence") && parts.size() == 1) {
        return c10::ListType::create(parts[0]);
    }
    if (outer == "Tuple" || outer == "tuple") {
        return c10::TupleType::create(parts);
    }
    if ((outer == "Dict" || outer == "dict") && parts.size() == 2 &&
        (*parts[0] == *c10::StringType::get() || *parts[0] == *c10::IntType::get())) {
        return c10::DictType::create(parts[0], parts[1]);
    }
    return nullptr;
}

NameScope Compilation::names_in(const PackageModule& module, const Bindings& local) {
    NameScope names;
    names.binds = [this, &module, &local](const std::string& name) {
        return local.contains(name) || package_->find(module.name, name).module != nullptr;
    };
    names.annotation = [this, &module, &local](const py::Expr& annotation) {
        const c10::TypePtr type = type_of(module, local, annotation);
        return type ? name_of(type) : std::string();
    };
    names.optional_annotation = [this, &module, &local](const py::Expr& annotation) {
        const c10::TypePtr type = type_of(module, local, annotation);
        return type ? name_of(c10::OptionalType::create(type)) : std::string();
    };
    names.external = [this, &module, &local](const py::Expr& expr) {
        return external_name(module, local, expr);
    };
    names.context = [this, &module, &local](const py::Expr& manager) {
        const auto* call = py::as<py::Call>(manager);
        const std::string name = call ? external_name(module, local, *call->func) : "";
        const auto context = kernel::context_of(name);
        return context == kernel::Context::no_grad && !call->args.empty() ? kernel::Context::unknown
                                                                          : context;
    };
    return names;
}

jit::Def Compilation::lower(const PackageModule& module, const Bindings& local,
                            const py::FunctionDef& def, const std::string& name,
                            const std::vector<LoweredParameter>& parameters, StoredValues* stored) {
    NameScope names = names_in(module, local);
    names.stored = stored;
    const bool any_decorator = stored != nullptr;  // checked by check_decorators
    for (const py::ExprPtr& decorator : def.decorator_list) {
        const std::string known = external_name(module, {}, *decorator_name(decorator));
        if (known.starts_with("triton.")) {
            refuse(module, def, "the Triton kernel " + def.name);
        }
        if (!any_decorator && !changes_nothing(known)) {
            refuse(module, *decorator,
                   "a decorator of " + def.name + " that may change what it computes" +
                       (known.empty() ? "" : ": " + known));
        }
        names.no_grad = names.no_grad || known == "torch.no_grad";
    }
    std::vector<LoweredParameter> marked = parameters;
    for (LoweredParameter& parameter : marked) {
        const c10::TypePtr type = type_named(parameter.type);
        if (type != nullptr && type->kind() == c10::TypeKind::NoneType && !parameter.in_rest) {
            parameter.constant = py::None{};
            parameter.is_passed = true;
        }
    }
    return lower_function(package_->file(module), def, name, marked, names);
}

}  // namespace twinkle::runtime
