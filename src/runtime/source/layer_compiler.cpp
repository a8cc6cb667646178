#include "runtime/source/layer_compiler.h"

#include "runtime/source/compile_report.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
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

// The forward of a class of the package, or the one that it inherits.
LayerDefinition find_forward(KernelPackage& package, const PackageModule& module,
                             const py::ClassDef& type, int depth) {
    constexpr int deepest = 8;
    if (const auto* forward = method_of(type, "forward")) {
        return {&module, &type, forward};
    }
    for (const py::ExprPtr& base : type.bases) {
        const auto* name = py::as<py::Name>(base);
        const auto found = name ? package.find(module.name, name->id) : KernelPackage::Definition{};
        const auto* parent =
            found.module ? std::get_if<const py::ClassDef*>(found.binding) : nullptr;
        if (parent != nullptr && *parent != &type && depth < deepest) {
            const auto inherited = find_forward(package, *found.module, **parent, depth + 1);
            if (inherited.forward != nullptr) {
                return inherited;
            }
        }
    }
    return {};
}

}  // namespace

LayerDefinition find_layer(KernelPackage& package, const std::string& layer) {
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
    const auto found = find_forward(package, *definition.module, **type, 0);
    if (found.forward == nullptr) {
        refuse(*definition.module, **type, "the layer " + layer + " has no forward of its own");
    }
    if (found.forward->args.posonlyargs.empty() && found.forward->args.args.empty()) {
        refuse(*found.module, *found.forward, "forward has no parameter self");
    }
    return {found.module, *type, found.forward};
}

namespace {

// What the class body declares as a tensor or module of the host.
std::set<std::string> declared_tensors(Compilation& compilation, const PackageModule& module,
                                       const py::ClassDef& type) {
    std::set<std::string> names;
    for (const py::StmtPtr& statement : type.body) {
        const auto* declared = py::as<py::AnnAssign>(statement);
        const auto* name = declared ? py::as<py::Name>(declared->target) : nullptr;
        if (name == nullptr) {
            continue;
        }
        auto known = compilation.type_of(module, {}, *declared->annotation);
        if (const auto optional = known ? known->cast<c10::OptionalType>() : nullptr) {
            known = optional->getElementType();
        }
        const std::string external = compilation.external_name(module, {}, *declared->annotation);
        if ((known && known->kind() == c10::TypeKind::TensorType) ||
            external.starts_with("torch.nn.")) {
            names.insert(name->id);
        }
    }
    return names;
}

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

// The method takes what callers pass of the module's own parameters after the layer's parameters.
jit::Def with_passed(const jit::Def& method, const std::vector<jit::Param>& passed) {
    std::vector<jit::Param> params;
    for (const jit::Param& param : method.decl().params()) {
        params.push_back(param);
    }
    params.insert(params.end(), passed.begin(), passed.end());
    const jit::SourceRange range = method.range();
    const auto decl = jit::Decl::create(range, jit::List<jit::Param>::create(range, params),
                                        method.decl().return_type());
    return jit::Def::create(range, method.name(), decl, method.statements());
}

}  // namespace

void remove_method(const c10::ClassTypePtr& type, const std::string& method) {
    if (type->findMethod(method) != nullptr) {
        type->unsafeRemoveMethod(method);
    }
    const c10::QualifiedName name(*type->name(), method);
    if (type->compilation_unit()->find_function(name) != nullptr) {
        type->compilation_unit()->unsafeRemoveMethod(name);
    }
}

tl::expected<std::vector<LayerParameter>, std::string> layer_parameters(KernelPackage& package,
                                                                        const std::string& layer) {
    try {
        return parameters_of(*find_layer(package, layer).forward);
    } catch (const CannotCompile& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

tl::expected<jit::Function*, std::string> compile_layer(
    Compilation& compilation, const std::string& layer, const c10::ClassTypePtr& type,
    const std::string& method, const LayerSignature& signature, HostAttributes host) {
    try {
        const LayerDefinition definition = find_layer(compilation.package(), layer);
        const auto& args = definition.forward->args;
        const std::string self =
            args.posonlyargs.empty() ? args.args.front().arg : args.posonlyargs.front().arg;
        std::vector<LoweredParameter> parameters{{self, ""}};
        for (const LayerArgument& argument : signature.arguments) {
            parameters.push_back({argument.name, compilation.name_of(argument.type)});
        }
        std::vector<jit::Param> passed;
        const auto range =
            compilation.package().file(*definition.module).range(*definition.forward);
        for (const LayerArgument& argument : signature.passed) {
            host.passed[argument.name] = parameters.size() + passed.size();
            passed.push_back(
                jit::Param::create(range, jit::Ident::create(range, "passed_" + argument.name),
                                   jit::Maybe<jit::Expr>::create(
                                       range, type_reference(compilation.name_of(argument.type))),
                                   jit::Maybe<jit::Expr>::create(range), false));
        }
        HostSelf host_self(type, std::move(host));
        host_self.kept_by_traces =
            declared_tensors(compilation, *definition.module, *definition.type);
        compilation.begin(&host_self);
        compilation.charge(*definition.module, *definition.forward, layer);
        const Bindings local =
            compilation.package().imports_in(*definition.module, *definition.forward);
        const auto tree = with_passed(
            compilation.lower(*definition.module, local, *definition.forward, method, parameters),
            passed);
        const auto made = compilation.unit().define(
            type->name(), {}, {}, {tree}, {compilation.scope_of(*definition.module, local)},
            &host_self);
        compilation.begin(nullptr);
        return made.front();
    } catch (const CannotCompile& error) {
        compilation.begin(nullptr);
        remove_method(type, method);
        return tl::make_unexpected(std::string(error.what()));
    } catch (const std::exception& error) {
        compilation.begin(nullptr);
        remove_method(type, method);
        return tl::make_unexpected(compile_report(error.what()));
    }
}

}  // namespace twinkle::runtime
