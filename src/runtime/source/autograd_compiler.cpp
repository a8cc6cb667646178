#include "runtime/source/autograd_compiler.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/format.h"

#include "runtime/autograd/autograd_apply.h"
#include "runtime/source/autograd_context.h"
#include "runtime/source/none_first.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

std::string class_identifier(std::string text) {
    std::replace(text.begin(), text.end(), '.', '_');
    return text.empty() ? "package" : text;
}

}  // namespace

FunctionCompiler::FunctionCompiler(Compilation& compilation, const ClassSource& source,
                                   const std::vector<AppliedArgument>& arguments)
    : compilation_(compilation), source_(source) {
    for (const AppliedArgument& argument : arguments) {
        argument_types_.push_back(argument.type);
    }
    forward_ = required_method("forward");
    setup_ = find_method(compilation.package(), source, "setup_context");
    const auto names = positional_parameters(*forward_.def);
    if (!own_context() && names.empty()) {
        refuse(forward_, "forward has no parameter ctx");
    }
    context_ = own_context() ? "_twinkle_ctx" : names.front();
    const std::size_t first = own_context() ? 0 : 1;
    if (arguments.size() > names.size() - first) {
        refuse(forward_, fmt::format("forward takes {} arguments, apply gives {}",
                                     names.size() - first, arguments.size()));
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        parameters_.push_back({.name = names[first + i],
                               .type = compilation.name_of(arguments[i].type),
                               .constant = arguments[i].constant,
                               .is_passed = arguments[i].constant.has_value()});
    }
}

c10::ClassTypePtr FunctionCompiler::context_class() {
    const MethodSource backward = required_method("backward");
    const c10::QualifiedName name(kernel_code + class_identifier(source_.module->name) + "." +
                                  source_.type->name);
    auto& unit = compilation_.unit();
    const bool taken = unit.get_type(name) != nullptr;
    const auto type = c10::ClassType::create(taken ? unit.mangle(name) : name,
                                             compilation_.shared_unit(), /*is_module=*/false);
    unit.register_type(type);
    const auto output = define(type, forward_, parameters_, own_context());
    const std::size_t outputs = count_outputs(output);
    if (setup_.def != nullptr) {
        const auto names = positional_parameters(*setup_.def);
        if (names.size() != 3) {
            refuse(setup_, "setup_context takes ctx, inputs and output");
        }
        define(type, setup_,
               {{names[0], ""},
                {names[1], compilation_.name_of(c10::TupleType::create(argument_types_))},
                {names[2], compilation_.name_of(output)}},
               false);
    }
    check_gradients(backward, define(type, backward, gradients(backward, *type, outputs)));
    return type;
}

jit::Function* FunctionCompiler::plain_forward() {
    auto tree = lower(forward_, parameters_);
    if (!own_context()) {
        const auto plain = without_context(tree, context_, argument_types_.size());
        if (!plain) {
            return nullptr;
        }
        tree = *plain;
    }
    const c10::QualifiedName prefix(kernel_code + class_identifier(source_.module->name) + "." +
                                    source_.type->name);
    return compilation_.unit()
        .define(prefix, {}, {}, {tree}, {scope_of(forward_)}, nullptr,
                /*shouldMangle=*/true)
        .front();
}

Bindings FunctionCompiler::imports_in(const MethodSource& method) const {
    return compilation_.package().imports_in(*method.module, *method.def);
}

jit::ResolverPtr FunctionCompiler::scope_of(const MethodSource& method) const {
    return compilation_.scope_of(*method.module, imports_in(method));
}

MethodSource FunctionCompiler::required_method(const std::string& name) {
    const MethodSource found = find_method(compilation_.package(), source_, name);
    if (found.def == nullptr) {
        refuse(*source_.module, *source_.type,
               "the autograd.Function " + source_.type->name + " has no " + name);
    }
    return found;
}

jit::Def FunctionCompiler::lower(const MethodSource& method,
                                 std::vector<LoweredParameter> parameters) {
    check_decorators(method);
    const auto names = positional_parameters(*method.def);
    const bool has_context = !names.empty() && !(method.def == forward_.def && own_context());
    stored_.ctx = has_context ? names.front() : "";
    if (method.def == forward_.def && !own_context()) {
        parameters.insert(parameters.begin(), {context_, ""});
    }
    compilation_.charge(*method.module, *method.def, method.def->name);
    const auto tree = compilation_.lower(*method.module, imports_in(method), *method.def,
                                         method.def->name, parameters, &stored_);
    const auto optional = c10::OptionalType::create(c10::TensorType::get());
    return method.def->name == "backward"
               ? annotate_none_first(tree, compilation_.name_of(optional))
               : tree;
}

c10::TypePtr FunctionCompiler::define(const c10::ClassTypePtr& type, const MethodSource& method,
                                      const std::vector<LoweredParameter>& parameters,
                                      bool add_self) {
    auto tree = lower(method, parameters);
    if (add_self) {
        const auto at = tree.range();
        std::vector<jit::Param> params{jit::Param::create(
            at, jit::Ident::create(at, context_), jit::Maybe<jit::Expr>::create(at),
            jit::Maybe<jit::Expr>::create(at), false)};
        for (const jit::Param& param : tree.decl().params()) {
            params.push_back(param);
        }
        tree = jit::Def::create(at, tree.name(),
                                jit::Decl::create(at, jit::List<jit::Param>::create(at, params),
                                                  tree.decl().return_type()),
                                tree.statements());
    }
    const ContextSelf self(type, argument_types_.size());
    compilation_.unit().define(type->name(), {}, {}, {tree}, {scope_of(method)}, &self);
    return type->getMethod(method.def->name).getSchema().returns().at(0).type();
}

std::size_t FunctionCompiler::count_outputs(const c10::TypePtr& output) const {
    const auto is_tensor = [](const c10::TypePtr& one) {
        return one->isSubtypeOf(*c10::TensorType::get());
    };
    const auto tuple = output->cast<c10::TupleType>();
    if (tuple && !tuple->elements().empty() &&
        std::all_of(tuple->elements().begin(), tuple->elements().end(), is_tensor)) {
        return tuple->elements().size();
    }
    if (!is_tensor(output)) {
        refuse(forward_,
               "forward returns " + output->repr_str() + "; a node of autograd gives tensors");
    }
    return 1;
}

std::vector<LoweredParameter> FunctionCompiler::gradients(const MethodSource& backward,
                                                          const c10::ClassType& type,
                                                          std::size_t outputs) {
    const auto names = positional_parameters(*backward.def);
    const bool rest = backward.def->args.vararg != nullptr;
    if (names.empty() || (names.size() < outputs + 1 && !rest)) {
        refuse(backward, fmt::format("backward takes {} gradients, forward gives {} tensors",
                                     names.empty() ? 0 : names.size() - 1, outputs));
    }
    // Without materialize_grads an output that nobody used has no gradient.
    c10::TypePtr gradient = c10::TensorType::get();
    if (type.hasAttribute(context_attribute::materialize_grads)) {
        gradient = c10::OptionalType::create(gradient);
    }
    std::vector<LoweredParameter> parameters{{names.front(), ""}};
    for (std::size_t i = 1; i <= outputs; ++i) {
        const bool named = i < names.size();
        parameters.push_back({.name = named ? names[i] : fmt::format("_twinkle_rest_{}", i),
                              .type = compilation_.name_of(gradient),
                              .in_rest = !named});
    }
    return parameters;
}

// One gradient for each argument, as autograd wants it; more only if they are None.
void FunctionCompiler::check_gradients(const MethodSource& backward,
                                       const c10::TypePtr& result) const {
    const auto tuple = result->cast<c10::TupleType>();
    const auto given = tuple ? tuple->elements().vec() : std::vector<c10::TypePtr>{result};
    const auto optional = c10::OptionalType::create(c10::TensorType::get());
    for (std::size_t i = 0; i < given.size(); ++i) {
        const bool extra = i >= argument_types_.size();
        if (!given[i]->isSubtypeOf(extra ? c10::TypePtr(c10::NoneType::get())
                                         : c10::TypePtr(optional))) {
            refuse(backward,
                   fmt::format("backward returns {} as gradient {}", given[i]->repr_str(), i + 1));
        }
    }
    if (given.size() < argument_types_.size()) {
        refuse(backward, fmt::format("backward returns {} gradients for {} arguments", given.size(),
                                     argument_types_.size()));
    }
}

}  // namespace twinkle::runtime
