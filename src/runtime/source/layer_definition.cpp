#include "runtime/source/layer_definition.h"

#include "runtime/source/python_values.h"

#include <algorithm>
#include <utility>

namespace twinkle::runtime {

namespace py = twinkle::python;

namespace {

const py::FunctionDef* method_of(const py::ClassDef& type, const std::string& name) {
    const py::FunctionDef* found = nullptr;
    for (const py::StmtPtr& statement : type.body) {
        if (const auto* method = py::as<py::FunctionDef>(statement);
            method != nullptr && method->name == name) {
            found = method;  // the last one counts
        }
    }
    return found;
}

// A method of a class of the package, or the one that it inherits.
LayerDefinition find_method(KernelPackage& package, const PackageModule& module,
                            const py::ClassDef& type, const std::string& method, int depth = 0) {
    constexpr int deepest = 8;
    if (const auto* found = method_of(type, method)) {
        return {&module, &type, found};
    }
    for (const py::ExprPtr& base : type.bases) {
        const auto* name = py::as<py::Name>(base);
        const auto found = name ? package.find(module.name, name->id) : KernelPackage::Definition{};
        const auto* parent =
            found.module ? std::get_if<const py::ClassDef*>(found.binding) : nullptr;
        if (parent != nullptr && *parent != &type && depth < deepest) {
            const auto inherited = find_method(package, *found.module, **parent, method, depth + 1);
            if (inherited.forward != nullptr) {
                return inherited;
            }
        }
    }
    return {};
}

// The class of a layer of layers.py, and its module. Throws CannotCompile.
std::pair<const PackageModule*, const py::ClassDef*> find_class(KernelPackage& package,
                                                                const std::string& layer) {
    const auto definition = package.find("layers", layer);
    const auto* unclear =
        definition.module == nullptr ? nullptr : std::get_if<UnclearName>(definition.binding);
    if (unclear != nullptr) {
        throw CannotCompile(unclear->why);
    }
    const auto* type = definition.module == nullptr
                           ? nullptr
                           : std::get_if<const py::ClassDef*>(definition.binding);
    if (type == nullptr) {
        throw CannotCompile("layers.py: there is no layer " + layer);
    }
    if (!(*type)->decorator_list.empty()) {
        refuse(*definition.module, *(*type)->decorator_list.front(),
               "a decorator of the layer " + layer + " that may change what it computes");
    }
    return {definition.module, *type};
}

}  // namespace

LayerDefinition find_layer(KernelPackage& package, const std::string& layer) {
    const auto [module, type] = find_class(package, layer);
    const auto found = find_method(package, *module, *type, "forward");
    if (found.forward == nullptr) {
        refuse(*module, *type, "the layer " + layer + " has no forward of its own");
    }
    if (found.forward->args.posonlyargs.empty() && found.forward->args.args.empty()) {
        refuse(*found.module, *found.forward, "forward has no parameter self");
    }
    return {found.module, type, found.forward};
}

LayerDefinition find_prepare(KernelPackage& package, const std::string& layer) {
    const auto [module, type] = find_class(package, layer);
    auto found = find_method(package, *module, *type, "prepare");
    if (found.forward != nullptr) {
        const py::Arguments& args = found.forward->args;
        if (args.posonlyargs.size() + args.args.size() != 1 || !args.kwonlyargs.empty() ||
            args.vararg || args.kwarg) {
            refuse(*found.module, *found.forward, "prepare takes nothing but self");
        }
        found.type = type;
    }
    return found;
}

namespace {

const py::Expr* without_optional(const py::Expr& annotation) {
    if (const auto* either = py::as<py::BinOp>(&annotation)) {  // X | None
        return py::as<py::Constant>(either->right) != nullptr ? either->left.get() : nullptr;
    }
    if (const auto* subscript = py::as<py::Subscript>(&annotation)) {
        const auto* name = py::as<py::Name>(subscript->value.get());
        if (name != nullptr && name->id == "Optional") {
            return subscript->slice.get();
        }
    }
    return &annotation;
}

bool is_tensor(const py::Expr& annotation) {
    const auto* name = py::as<py::Name>(&annotation);
    const auto* attribute = py::as<py::Attribute>(&annotation);
    return (name != nullptr && name->id == "Tensor") ||
           (attribute != nullptr && attribute->attr == "Tensor");
}

// tuple[torch.Tensor, torch.Tensor]: 2. A trace flattens such a parameter.
std::optional<std::size_t> tensors_in_tuple(const py::ExprPtr& annotation) {
    const py::Expr* type = annotation ? without_optional(*annotation) : nullptr;
    const auto* subscript = type == nullptr ? nullptr : py::as<py::Subscript>(type);
    const auto* name = subscript == nullptr ? nullptr : py::as<py::Name>(subscript->value.get());
    const auto* elements =
        subscript == nullptr ? nullptr : py::as<py::Tuple>(subscript->slice.get());
    if (name == nullptr || elements == nullptr || (name->id != "tuple" && name->id != "Tuple")) {
        return std::nullopt;
    }
    const bool all = std::all_of(elements->elts.begin(), elements->elts.end(),
                                 [](const py::ExprPtr& one) { return one && is_tensor(*one); });
    return all ? std::optional(elements->elts.size()) : std::nullopt;
}

std::vector<LayerParameter> parameters_of(const py::FunctionDef& forward) {
    std::vector<LayerParameter> result;
    for (const py::Arg& arg : forward.args.posonlyargs) {
        result.push_back({arg.arg, false, tensors_in_tuple(arg.annotation)});
    }
    for (const py::Arg& arg : forward.args.args) {
        result.push_back({arg.arg, false, tensors_in_tuple(arg.annotation)});
    }
    for (std::size_t i = result.size() - forward.args.defaults.size(); i < result.size(); ++i) {
        result[i].has_default = true;
    }
    result.erase(result.begin());  // self
    for (std::size_t i = 0; i < forward.args.kwonlyargs.size(); ++i) {
        const py::Arg& arg = forward.args.kwonlyargs[i];
        result.push_back(
            {arg.arg, forward.args.kw_defaults[i] != nullptr, tensors_in_tuple(arg.annotation)});
    }
    return result;
}

}  // namespace

tl::expected<std::vector<LayerParameter>, std::string> layer_parameters(KernelPackage& package,
                                                                        const std::string& layer) {
    try {
        return parameters_of(*find_layer(package, layer).forward);
    } catch (const CannotCompile& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

tl::expected<std::vector<std::string>, std::string> prepared_names(KernelPackage& package,
                                                                   const std::string& layer) {
    try {
        const LayerDefinition definition = find_prepare(package, layer);
        std::vector<std::string> names;
        if (definition.forward == nullptr) {
            return names;
        }
        const auto* last = py::as<py::Return>(definition.forward->body.back());
        const auto* made = last && last->value ? py::as<py::Dict>(last->value) : nullptr;
        const std::size_t count = made != nullptr ? made->keys.size() : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto* text = made->keys[i] ? py::as<py::Constant>(made->keys[i]) : nullptr;
            if (text != nullptr && text->string() != nullptr) {
                names.push_back(*text->string());
            }
        }
        if (count == 0 || names.size() != count) {
            refuse(*definition.module, *definition.forward,
                   "prepare must end with `return {\"name\": tensor, …}`, so that the names are "
                   "known without running it");
        }
        return names;
    } catch (const CannotCompile& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

}  // namespace twinkle::runtime
