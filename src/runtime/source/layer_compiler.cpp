#include "runtime/source/layer_compiler.h"

#include "runtime/source/compile_report.h"

#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

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

// The method takes what callers pass of the module's own parameters after the layer's parameters.
jit::Def with_passed(const jit::Def& method, const std::vector<jit::Param>& passed) {
    std::vector<jit::Param> params;
    for (const jit::Param& param : method.decl().params()) {
        params.push_back(param);
    }
    params.insert(params.end(), passed.begin(), passed.end());
    const jit::SourceRange& range = method.range();
    const auto decl = jit::Decl::create(range, jit::List<jit::Param>::create(range, params),
                                        method.decl().return_type());
    return jit::Def::create(range, method.name(), decl, method.statements());
}

std::string self_of(const py::FunctionDef& method) {
    const py::Arguments& args = method.args;
    return args.posonlyargs.empty() ? args.args.front().arg : args.posonlyargs.front().arg;
}

// Compiles this method of a layer onto the class, with `passed` as its last parameters.
jit::Function* define(Compilation& compilation, const LayerDefinition& definition,
                      const std::string& layer, const std::string& method,
                      const std::vector<LoweredParameter>& parameters,
                      const std::vector<jit::Param>& passed, HostSelf& host) {
    const PackageModule& module = *definition.module;
    host.kept_by_traces = declared_tensors(compilation, module, *definition.type);
    compilation.begin(&host);
    compilation.charge(module, *definition.forward, layer);
    const Bindings local = compilation.package().imports_in(module, *definition.forward);
    const auto tree = with_passed(
        compilation.lower(module, local, *definition.forward, method, parameters), passed);
    const auto made = compilation.unit().define(host.type->name(), {}, {}, {tree},
                                                {compilation.scope_of(module, local)}, &host);
    compilation.begin(nullptr);
    return made.front();
}

// What the work returns; on an error its reason, and the class has no such method.
template <typename Work>
auto undone_on_error(Compilation& compilation, const c10::ClassTypePtr& type,
                     const std::string& method, const Work& work)
    -> tl::expected<jit::Function*, std::string> {
    std::string why;
    try {
        return work();
    } catch (const std::exception& error) {
        why = compile_report(error);
    }
    compilation.begin(nullptr);
    remove_method(type, method);
    return tl::make_unexpected(std::move(why));
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

tl::expected<jit::Function*, std::string> compile_layer(
    Compilation& compilation, const std::string& layer, const c10::ClassTypePtr& type,
    const std::string& method, const LayerSignature& signature, HostAttributes host) {
    return undone_on_error(compilation, type, method, [&] {
        const LayerDefinition definition = find_layer(compilation.package(), layer);
        std::vector<LoweredParameter> parameters{{self_of(*definition.forward), ""}};
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
        return define(compilation, definition, layer, method, parameters, passed, host_self);
    });
}

tl::expected<jit::Function*, std::string> compile_prepare(Compilation& compilation,
                                                          const std::string& layer,
                                                          const c10::ClassTypePtr& type,
                                                          const std::string& method,
                                                          HostAttributes host) {
    return undone_on_error(compilation, type, method, [&] {
        const LayerDefinition definition = find_prepare(compilation.package(), layer);
        HostSelf host_self(type, std::move(host));
        return define(compilation, definition, layer, method, {{self_of(*definition.forward), ""}},
                      {}, host_self);
    });
}

}  // namespace twinkle::runtime
