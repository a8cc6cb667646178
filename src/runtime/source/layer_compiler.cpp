#include "runtime/source/layer_compiler.h"
#include "runtime/format.h"

#include "runtime/source/compile_report.h"

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
        const auto tree =
            lower_function(*definition.module->file, *definition.forward, method, parameters);
        const HostSelf host(type, supplied);
        const auto made = compilation.unit().define(
            type->name(), {}, {}, {tree}, {compilation.scope_of(*definition.module)}, &host);
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
