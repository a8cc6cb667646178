#include "runtime/source/layer_compiler.h"
#include "runtime/format.h"

#include "runtime/source/compile_report.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

struct LayerDefinition {
    const PackageModule* module;
    const py::FunctionDef* forward;
};

LayerDefinition find_layer(KernelPackage& package, const std::string& layer) {
    const auto definition = package.find("layers", layer);
    const auto* type = definition.module == nullptr
                           ? nullptr
                           : std::get_if<const py::ClassDef*>(definition.binding);
    if (type == nullptr) {
        throw CannotCompile("layers.py: there is no layer " + layer);
    }
    for (const py::StmtPtr& statement : (*type)->body) {
        if (const auto* method = py::as<py::FunctionDef>(statement);
            method != nullptr && method->name == "forward") {
            if (method->args.posonlyargs.empty() && method->args.args.empty()) {
                definition.module->file->refuse(*method, "forward has no parameter self");
            }
            return {definition.module, method};
        }
    }
    definition.module->file->refuse(**type, "the layer " + layer + " has no forward of its own");
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
        auto tree =
            lower_function(*definition.module->file, *definition.forward, method, parameters);
        std::vector<jit::Param> passed;
        const jit::SourceRange range = tree.range();
        for (const LayerArgument& argument : signature.passed) {
            host.passed[argument.name] = parameters.size() + passed.size();
            passed.push_back(
                jit::Param::create(range, jit::Ident::create(range, "passed_" + argument.name),
                                   jit::Maybe<jit::Expr>::create(
                                       range, type_reference(compilation.name_of(argument.type))),
                                   jit::Maybe<jit::Expr>::create(range), false));
        }
        tree = with_passed(tree, passed);
        const HostSelf host_self(type, std::move(host));
        const auto made = compilation.unit().define(
            type->name(), {}, {}, {tree}, {compilation.scope_of(*definition.module)}, &host_self);
        return made.front();
    } catch (const CannotCompile& error) {
        remove_method(type, method);
        return tl::make_unexpected(std::string(error.what()));
    } catch (const std::exception& error) {
        remove_method(type, method);
        return tl::make_unexpected(compile_report(error.what()));
    }
}

}  // namespace twinkle::runtime
