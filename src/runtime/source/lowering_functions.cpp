#include "runtime/source/lowering_statements.h"

#include "python/walk.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

// Every parameter with its default, if it has one.
std::vector<std::pair<const py::Arg*, const py::Expr*>> parameters_of(const py::Arguments& args) {
    std::vector<std::pair<const py::Arg*, const py::Expr*>> result;
    for (const py::Arg& arg : args.posonlyargs) {
        result.emplace_back(&arg, nullptr);
    }
    for (const py::Arg& arg : args.args) {
        result.emplace_back(&arg, nullptr);
    }
    const std::size_t first = result.size() - args.defaults.size();
    for (std::size_t i = 0; i < args.defaults.size(); ++i) {
        result[first + i].second = args.defaults[i].get();
    }
    for (std::size_t i = 0; i < args.kwonlyargs.size(); ++i) {
        result.emplace_back(&args.kwonlyargs[i], args.kw_defaults[i].get());
    }
    return result;
}

// What a parameter that is None at first may be bound to later: what it is declared as, or a
// tensor.
jit::Expr type_beside_none(const FunctionScope& scope, const py::Arg& arg, const NameScope& names) {
    const std::string declared =
        arg.annotation ? names.optional_annotation(*arg.annotation) : std::string();
    return declared.empty() ? optional_tensor(scope.file.range(arg)) : type_reference(declared);
}

// A parameter without a place in the compiled function: its value is known, or its default holds.
void bind_known(FunctionScope& scope, Statements& lowering, const py::Arg& arg,
                const std::optional<py::ConstantValue>& constant, const py::Expr* fallback,
                const NameScope& defaults, std::vector<jit::Stmt>& body) {
    std::optional<py::ConstantValue> value = constant;
    FunctionScope outside{scope.file, defaults, {}, {}, {}, "", "", {}, false};
    if (!value) {
        value = known_value(outside, *fallback);
    }
    const bool decides = value && (std::holds_alternative<py::None>(*value) ||
                                   std::holds_alternative<bool>(*value) ||
                                   std::holds_alternative<std::string>(*value));
    if (value && (decides || scope.assigned[arg.arg] == 1)) {
        scope.constants[arg.arg] = *value;
    }
    if (value && scope.assigned[arg.arg] == 1) {
        return;
    }
    // None at first, something else later.
    std::optional<jit::Expr> type;
    if (value && std::holds_alternative<py::None>(*value)) {
        type = type_beside_none(scope, arg, defaults);
    }
    scope.bound.insert(arg.arg);
    body.push_back(lowering.assignment(arg, arg.arg,
                                       value ? lower_constant_value(scope.file.range(arg), *value)
                                             : lower_expression(outside, *fallback),
                                       type));
}

jit::Param parameter(const SourceFile& file, const py::Arg& arg, const std::string& type) {
    const jit::SourceRange at = file.range(arg);
    return jit::Param::create(at, jit::Ident::create(at, arg.arg),
                              type.empty()
                                  ? jit::Maybe<jit::Expr>::create(at)
                                  : jit::Maybe<jit::Expr>::create(at, type_reference(type)),
                              jit::Maybe<jit::Expr>::create(at), false);
}

// The elements of *args become parameters behind the others.
void add_rest(FunctionScope& scope, const py::FunctionDef& function,
              const std::vector<LoweredParameter>& parameters, std::vector<jit::Param>& params) {
    for (const LoweredParameter& one : parameters) {
        if (one.in_rest && function.args.vararg) {
            const jit::SourceRange at = scope.file.range(*function.args.vararg);
            params.push_back(
                jit::Param::create(at, jit::Ident::create(at, one.name),
                                   jit::Maybe<jit::Expr>::create(at, type_reference(one.type)),
                                   jit::Maybe<jit::Expr>::create(at), false));
            scope.rest.push_back(one.name);
        }
    }
}

// What is known of ctx holds for this method only if nothing else can bind its attributes.
void begin_stores(FunctionScope& scope, const py::FunctionDef& function) {
    auto* stored = scope.names.stored;
    if (stored == nullptr) {
        return;
    }
    const auto bound = attributes_bound(function, stored->ctx);
    if (!bound) {
        stored->known.clear();
        return;
    }
    scope.stores = *bound;
    for (const auto& [name, count] : *bound) {
        stored->known.erase(name);
    }
}

void check_function(const SourceFile& file, const py::FunctionDef& function) {
    constexpr std::uint16_t deepest = 160;
    if (function.height > deepest) {
        file.refuse(function, function.name + " is nested too deeply");
    }
    // These change what the whole function is, wherever they stand.
    for (const py::StmtPtr& statement : function.body) {
        py::walk(*statement, [&](const py::Node& node) {
            if (py::as<py::Yield>(node) || py::as<py::YieldFrom>(node) ||
                py::as<py::Global>(node) || py::as<py::Nonlocal>(node)) {
                file.check(node);
            }
            return node.kind != py::NodeKind::FunctionDef && node.kind != py::NodeKind::Lambda &&
                   node.kind != py::NodeKind::ClassDef;
        });
    }
}

}  // namespace

jit::Def lower_function(const SourceFile& file, const py::FunctionDef& function,
                        const std::string& name, const std::vector<LoweredParameter>& parameters,
                        const NameScope& names) {
    check_function(file, function);
    const jit::SourceRange range = file.range(function);
    FunctionScope scope{file, names, assigned_names(function), {}, {}, "", "", {}, false};
    if (function.args.vararg) {
        scope.no_arguments = function.args.vararg->arg;
    }
    if (function.args.kwarg) {
        scope.no_keywords = function.args.kwarg->arg;
    }
    begin_stores(scope, function);
    Statements lowering(scope);
    std::vector<jit::Param> params;
    std::vector<jit::Stmt> body;
    for (const auto& [arg, fallback] : parameters_of(function.args)) {
        const auto given = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const auto& one) { return one.name == arg->arg; });
        if (given == parameters.end() && fallback == nullptr) {
            file.refuse(*arg, "the parameter " + arg->arg + " of " + function.name +
                                  " gets no value and has no default");
        }
        if (given == parameters.end() || (given->constant && !given->is_passed)) {
            bind_known(scope, lowering, *arg,
                       given == parameters.end() ? std::nullopt : given->constant, fallback, names,
                       body);
            continue;
        }
        params.push_back(parameter(file, *arg, given->type));
        scope.bound.insert(arg->arg);
        if (given->constant) {
            scope.constants[arg->arg] = *given->constant;
            const bool none = std::holds_alternative<py::None>(*given->constant);
            if (none && scope.assigned[arg->arg] > 1) {
                const jit::SourceRange at = file.range(*arg);
                body.push_back(lowering.assignment(*arg, arg->arg,
                                                   lower_constant_value(at, py::None{}),
                                                   type_beside_none(scope, *arg, names)));
            }
        }
        if (given->is_module && scope.assigned[arg->arg] == 1) {
            scope.modules.insert(arg->arg);
        }
    }
    add_rest(scope, function, parameters, params);
    const auto decl = jit::Decl::create(range, jit::List<jit::Param>::create(range, params),
                                        jit::Maybe<jit::Expr>::create(range));
    return jit::Def::create(range, jit::Ident::create(range, name), decl,
                            lowering.body(function, std::move(body)));
}

jit::Def lower_constant(const SourceFile& file, const py::Expr& value, const std::string& name,
                        const NameScope& names) {
    constexpr std::uint16_t deepest = 160;
    if (value.height > deepest) {
        file.refuse(value, name + " is nested too deeply");
    }
    const jit::SourceRange range = file.range(value);
    FunctionScope scope{file, names, {}, {}, {}, "", "", {}, false};
    const jit::Stmt result = jit::Return::create(range, lower_expression(scope, value));
    return jit::Def::create(range, jit::Ident::create(range, name),
                            jit::Decl::create(range, jit::List<jit::Param>::create(range, {}),
                                              jit::Maybe<jit::Expr>::create(range)),
                            jit::List<jit::Stmt>::create(range, {result}));
}

}  // namespace twinkle::runtime
