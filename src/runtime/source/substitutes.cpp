#include "runtime/source/substitutes.h"

#include "base/text.h"

#include "runtime/source/layer_compiler.h"
#include "runtime/source/torch_names.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <mutex>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

constexpr const char* host_class = "__torch__.twinkle_functions.host.Host";

jit::SourceRange range_of(const std::string& name) {
    return {std::make_shared<jit::Source>(name, "call", 1), 0, name.size()};
}

std::shared_ptr<jit::SugaredValue> operator_value(const std::string& qualified_name) {
    jit::GraphFunction unused(c10::QualifiedName("__torch__.twinkle_functions.unused"),
                              std::make_shared<jit::Graph>(), nullptr);
    const auto colons = qualified_name.find("::");
    const auto range = range_of(qualified_name);
    return foreign_module("torch.ops", {})
        ->attr(range, unused, qualified_name.substr(0, colons))
        ->attr(range, unused, qualified_name.substr(colons + 2));
}

std::vector<SubstituteParameter> parameters_of(const c10::FunctionSchema& schema) {
    std::vector<SubstituteParameter> list;
    for (const c10::Argument& argument : schema.arguments()) {
        list.push_back({argument.name(), argument.default_value().has_value(),
                        argument.kwarg_only(), argument.type()});
    }
    return list;
}

std::vector<SubstituteParameter> parameters_of(const py::FunctionDef& function) {
    std::vector<SubstituteParameter> list;
    for (const py::Arg& arg : function.args.posonlyargs) {
        list.push_back({arg.arg, false, false});
    }
    for (const py::Arg& arg : function.args.args) {
        list.push_back({arg.arg, false, false});
    }
    for (std::size_t i = list.size() - std::min(list.size(), function.args.defaults.size());
         i < list.size(); ++i) {
        list[i].has_default = true;
    }
    for (std::size_t i = 0; i < function.args.kwonlyargs.size(); ++i) {
        list.push_back(
            {function.args.kwonlyargs[i].arg, function.args.kw_defaults[i] != nullptr, true});
    }
    return list;
}

// A layer that reads nothing of its instance, compiled into its caller.
struct LayerAsFunction : jit::SugaredValue {
    LayerAsFunction(Compilation& in, std::string which, std::vector<SubstituteParameter> of)
        : compilation(in), layer(std::move(which)), parameters(std::move(of)) {}
    std::string kind() const override { return "layer " + layer; }

    std::shared_ptr<jit::SugaredValue> call(const jit::SourceRange& loc, jit::GraphFunction& m,
                                            at::ArrayRef<jit::NamedValue> args,
                                            at::ArrayRef<jit::NamedValue> kwargs, size_t) override {
        std::map<std::string, jit::Value*> given;
        for (std::size_t i = 0; i < args.size(); ++i) {
            given[parameters.at(i).name] = args[i].value(*m.graph());
        }
        for (const jit::NamedValue& argument : kwargs) {
            given[argument.name()] = argument.value(*m.graph());
        }
        LayerSignature signature;
        std::vector<jit::Value*> values;
        for (const SubstituteParameter& parameter : parameters) {
            if (const auto value = given.find(parameter.name); value != given.end()) {
                signature.arguments.push_back({parameter.name, value->second->type()});
                values.push_back(value->second);
            }
        }
        return std::make_shared<jit::SimpleValue>(inlined(loc, *m.graph(), signature, values));
    }

    jit::Value* inlined(const jit::SourceRange& loc, jit::Graph& into,
                        const LayerSignature& signature, const std::vector<jit::Value*>& values) {
        const auto& unit = compilation.shared_unit();
        const auto host = c10::ClassType::create(unit->mangle(c10::QualifiedName(host_class)), unit,
                                                 /*is_module=*/true);
        unit->register_type(host);
        const auto method = compile_layer(compilation, layer, host, "forward", signature, {});
        if (!method) {
            throw CannotCompile(method.error());
        }
        const auto body = jit::toGraphFunction(**method).graph()->copy();
        remove_method(host, "forward");
        if (body->inputs()[0]->hasUses()) {
            throw(jit::ErrorReport(loc)
                  << "the layer " << layer << " needs the module that it would stand in");
        }
        body->eraseInput(0);
        return jit::insertGraph(into, *body, values).at(0);
    }

    Compilation& compilation;
    std::string layer;
    std::vector<SubstituteParameter> parameters;
};

std::string as_identifier(std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; },
        '_');
    return name;
}

// The operators that C++ functions have become, by schema.
const jit::Operator& native_operator(const c10::FunctionSchema& schema,
                                     const Implementation& implementation) {
    static auto& mutex = *new std::mutex();
    static auto& known = *new std::map<std::string, std::shared_ptr<jit::Operator>>();
    const std::scoped_lock lock(mutex);
    const std::string text = c10::str(schema);
    const auto found = known.find(text);
    if (found != known.end()) {
        return *found->second;
    }
    const std::size_t count = schema.arguments().size();
    const auto made = std::make_shared<jit::Operator>(
        text,
        [implementation, count](jit::Stack& stack) {
            std::vector<c10::IValue> arguments = jit::pop(stack, count);
            stack.push_back(implementation.call(std::move(arguments)).value);
        },
        c10::AliasAnalysisKind::CONSERVATIVE);
    jit::registerOperator(jit::Operator(*made));
    return *known.emplace(text, made).first->second;
}

// "ns::name" for "torch.ops.ns.name"; empty for what is no operator.
std::string operator_name(const std::string& external) {
    constexpr std::string_view prefix = "torch.ops.";
    const auto dot = external.find('.', prefix.size());
    return external.starts_with(prefix) && dot != std::string::npos
               ? external.substr(prefix.size(), dot - prefix.size()) +
                     "::" + external.substr(dot + 1)
               : "";
}

std::string no_such_operator(const std::string& qualified_name) {
    std::vector<std::string> names;
    for (const auto& op : jit::getAllOperators()) {
        names.push_back(op->schema().name());
    }
    const auto near = base::nearest(qualified_name, names);
    return "no library has registered the operator " + qualified_name +
           (near ? "; the nearest is " + base::printable(*near) : "");
}

}  // namespace

tl::expected<Substitutes, std::string> operator_substitutes(const std::string& qualified_name) {
    Substitutes all;
    for (const auto& op : jit::getAllOperatorsFor(c10::Symbol::fromQualString(qualified_name))) {
        all.push_back({c10::toString(op->schema()), operator_value(qualified_name),
                       parameters_of(op->schema())});
    }
    if (all.empty()) {
        return tl::make_unexpected(no_such_operator(qualified_name));
    }
    return all;
}

tl::expected<Substitutes, std::string> package_substitutes(Compilation& compilation,
                                                           const std::string& name) {
    const auto dot = name.rfind('.');
    const std::string module = dot == std::string::npos ? "" : name.substr(0, dot);
    const std::string own = dot == std::string::npos ? name : name.substr(dot + 1);
    const auto begin = [&compilation] { compilation.begin(nullptr); };
    try {
        begin();
        KernelPackage& package = compilation.package();
        const PackageModule* source = package.module(module);
        const auto found =
            source == nullptr ? KernelPackage::Definition{} : package.find_definition(module, own);
        const auto* function =
            found.module == nullptr ? nullptr : std::get_if<const py::FunctionDef*>(found.binding);
        if (function != nullptr) {
            return Substitutes{{own, compilation.value_of(*source, {}, own, range_of(own)),
                                parameters_of(**function), begin}};
        }
        // norm = ops.rms_norm
        const auto* value =
            found.module == nullptr ? nullptr : std::get_if<const py::Expr*>(found.binding);
        const std::string external =
            value == nullptr ? "" : compilation.external_name(*found.module, {}, **value);
        if (const auto op = operator_name(external); !op.empty()) {
            return operator_substitutes(op);
        }
        if (auto parameters = layer_parameters(package, name)) {
            std::vector<SubstituteParameter> own_parameters;
            for (const LayerParameter& one : *parameters) {
                own_parameters.push_back({one.name, one.has_default, false});
            }
            return Substitutes{
                {own, std::make_shared<LayerAsFunction>(compilation, name, own_parameters),
                 own_parameters, begin}};
        }
        return tl::make_unexpected("there is no function or layer " + own);
    } catch (const CannotCompile& error) {
        return tl::make_unexpected(std::string(error.what()));
    }
}

Substitutes native_substitutes(const std::string& name, const Implementation& implementation,
                               const c10::FunctionSchema& stands_for) {
    std::vector<c10::Argument> arguments;
    for (const c10::Argument& argument : stands_for.arguments()) {
        arguments.emplace_back(argument.name(), argument.type());
    }
    std::vector<c10::Argument> returns;
    for (const c10::Argument& result : stands_for.returns()) {
        returns.emplace_back("", result.type());
    }
    const std::string qualified = "twinkle_native::" + as_identifier(name);
    const c10::FunctionSchema schema(qualified, "", arguments, returns);
    native_operator(schema, implementation);
    return {{implementation.name(),
             std::make_shared<jit::BuiltinFunction>(c10::Symbol::fromQualString(qualified),
                                                    std::nullopt),
             parameters_of(schema)}};
}

}  // namespace twinkle::runtime
