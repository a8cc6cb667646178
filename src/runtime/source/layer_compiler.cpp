#include "runtime/source/layer_compiler.h"
#include "runtime/format.h"

#include "runtime/source/compile_report.h"

#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

struct LayerDefinition {
    const PackageModule* module = nullptr;
    const py::ClassDef* type = nullptr;
    const py::FunctionDef* forward = nullptr;
};

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
    const auto found = find_forward(package, *definition.module, **type, 0);
    if (found.forward == nullptr) {
        definition.module->file->refuse(**type,
                                        "the layer " + layer + " has no forward of its own");
    }
    if (found.forward->args.posonlyargs.empty() && found.forward->args.args.empty()) {
        found.module->file->refuse(*found.forward, "forward has no parameter self");
    }
    return {found.module, *type, found.forward};
}

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

std::vector<LayerParameter> parameters_of(const py::FunctionDef& forward) {
    std::vector<LayerParameter> result;
    for (const py::Arg& arg : forward.args.posonlyargs) {
        result.push_back({arg.arg, false});
    }
    for (const py::Arg& arg : forward.args.args) {
        result.push_back({arg.arg, false});
    }
    for (std::size_t i = result.size() - forward.args.defaults.size(); i < result.size(); ++i) {
        result[i].has_default = true;
    }
    result.erase(result.begin());  // self
    for (std::size_t i = 0; i < forward.args.kwonlyargs.size(); ++i) {
        result.push_back({forward.args.kwonlyargs[i].arg, forward.args.kw_defaults[i] != nullptr});
    }
    return result;
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
    const std::string& method, const std::vector<c10::TypePtr>& argument_types,
    const AttributeMap& supplied) {
    try {
        const LayerDefinition definition = find_layer(compilation.package(), layer);
        const auto& args = definition.forward->args;
        const std::string self =
            args.posonlyargs.empty() ? args.args.front().arg : args.posonlyargs.front().arg;
        std::vector<LoweredParameter> parameters{{self, ""}};
        const auto layer_arguments = parameters_of(*definition.forward);
        for (std::size_t i = 0; i < argument_types.size(); ++i) {
            parameters.push_back(
                {layer_arguments.at(i).name, compilation.name_of(argument_types[i])});
        }
        HostSelf host(type, supplied);
        host.kept_by_traces = declared_tensors(compilation, *definition.module, *definition.type);
        compilation.begin(&host);
        compilation.charge(*definition.module, *definition.forward, layer);
        const Bindings local =
            compilation.package().imports_in(*definition.module, *definition.forward);
        const auto tree =
            compilation.lower(*definition.module, local, *definition.forward, method, parameters);
        const auto made = compilation.unit().define(
            type->name(), {}, {}, {tree}, {compilation.scope_of(*definition.module, local)}, &host);
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
