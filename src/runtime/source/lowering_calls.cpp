#include "runtime/source/lowering_expressions.h"

#include <utility>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

jit::Expr variable(const jit::SourceRange& range, const std::string& name) {
    return jit::Var::create(range, jit::Ident::create(range, name));
}

// What LibTorch's compiler answers itself, before it asks for the names of a module.
bool is_answered_by_libtorch(const std::string& name) {
    static const std::set<std::string> names = {"print",
                                                "tuple",
                                                "float",
                                                "int",
                                                "bool",
                                                "complex",
                                                "str",
                                                "getattr",
                                                "hasattr",
                                                "isinstance",
                                                "range",
                                                "zip",
                                                "enumerate",
                                                "rangelist",
                                                "list",
                                                "dict",
                                                "min",
                                                "max",
                                                "abs",
                                                "all",
                                                "any",
                                                "divmod",
                                                "ord",
                                                "chr",
                                                "bin",
                                                "round",
                                                "hash",
                                                "sorted",
                                                "len",
                                                "hex",
                                                "oct",
                                                "sum",
                                                "index",
                                                "slice",
                                                "reversed",
                                                "_to_tensor",
                                                "unchecked_cast",
                                                "annotate",
                                                "NotImplemented"};
    return names.contains(name);
}

// torch.nn.Linear: a class of modules, which TorchScript has no type for.
bool is_module_class(const std::string& name) {
    constexpr std::string_view prefix = "torch.nn.";
    return name.starts_with(prefix) && name.find('.', prefix.size()) == std::string::npos &&
           name.size() > prefix.size() && name[prefix.size()] >= 'A' &&
           name[prefix.size()] <= 'Z' && name != "torch.nn.Module";
}

// Calls that take sizes one by one as well as a list.
bool takes_sizes(const py::Expr& called) {
    static const std::set<std::string> names = {
        "view",  "reshape", "expand", "repeat", "permute", "new_empty", "new_zeros", "new_ones",
        "zeros", "ones",    "empty",  "rand",   "randn",   "tile",      "flip"};
    const auto* attribute = py::as<py::Attribute>(called);
    return attribute != nullptr && names.contains(attribute->attr);
}

}  // namespace

jit::Expr keyword_tree(int kind, const jit::SourceRange& range) {
    return jit::Expr(jit::Compound::create(kind, range, {}));
}

jit::Expr apply(const jit::SourceRange& range, const std::string& name,
                const std::vector<jit::Expr>& inputs) {
    return jit::Apply::create(range, variable(range, name),
                              jit::List<jit::Expr>::create(range, inputs),
                              jit::List<jit::Attribute>::create(range, {}));
}

jit::Expr Expressions::name(const py::Name& node, const Range& range) {
    if (node.ctx != py::ExprContext::Load) {
        if (node.id == scope_.no_keywords || node.id == scope_.no_arguments) {
            file_.refuse(node, "an assignment to " + node.id);
        }
        return variable(range, node.id);
    }
    if (const auto other = scope_.stands_for.find(node.id); other != scope_.stands_for.end()) {
        const py::Expr& meant = *other->second;
        auto before = std::exchange(scope_.stands_for, {});
        const jit::Expr result = lower(meant);
        scope_.stands_for = std::move(before);
        return result;
    }
    if (const auto known = scope_.constants.find(node.id); known != scope_.constants.end()) {
        return lower_constant_value(range, known->second);
    }
    if (!scope_.no_keywords.empty() && node.id == scope_.no_keywords) {
        file_.refuse(node, "**" + node.id + " used for more than pop, get, in and a call");
    }
    if (!scope_.no_arguments.empty() && node.id == scope_.no_arguments) {
        return rest(range);
    }
    if (scope_.modules.contains(node.id)) {
        return apply(range, lowered_name::module, {variable(range, node.id)});
    }
    if (!scope_.is_local(node.id) && scope_.names.binds(node.id)) {
        return variable(range,
                        is_answered_by_libtorch(node.id) ? lowered_name::own + node.id : node.id);
    }
    if (!scope_.is_local(node.id) && kernel::is_refused_builtin(node.id)) {
        file_.refuse(node, "the built-in " + node.id + " has no counterpart in TorchScript");
    }
    return variable(range, node.id);
}

// What *args stands for.
jit::Expr Expressions::rest(const Range& range) {
    std::vector<jit::Expr> elements;
    for (const std::string& one : scope_.rest) {
        elements.push_back(variable(range, one));
    }
    return jit::TupleLiteral::create(range, jit::List<jit::Expr>::create(range, elements));
}

bool Expressions::is_empty_rest(const py::Starred* star) const {
    const auto* name = star ? py::as<py::Name>(star->value) : nullptr;
    return name != nullptr && name->id == scope_.no_arguments && scope_.rest.empty();
}

jit::Expr Expressions::sequence(const std::vector<py::ExprPtr>& nodes, const Range& range,
                                const char* made_by) {
    std::vector<jit::Expr> parts;
    std::vector<jit::Expr> plain;
    const auto flush = [&] {
        if (!plain.empty()) {
            parts.push_back(
                jit::TupleLiteral::create(range, jit::List<jit::Expr>::create(range, plain)));
            plain.clear();
        }
    };
    for (const py::ExprPtr& node : nodes) {
        const auto* star = py::as<py::Starred>(node);
        if (is_empty_rest(star)) {
            continue;
        }
        if (star == nullptr) {
            plain.push_back(lower(*node));
        } else {
            flush();
            parts.push_back(lower(*star->value));
        }
    }
    flush();
    return apply(range, made_by, parts);
}

void Expressions::arguments(const py::Call& node, std::vector<jit::Expr>& inputs) {
    std::vector<const py::Expr*> given;
    bool starred = false;
    for (const py::ExprPtr& argument : node.args) {
        const auto* star = py::as<py::Starred>(argument);
        if (is_empty_rest(star)) {
            continue;
        }
        starred = starred || star != nullptr;
        given.push_back(argument.get());
    }
    if (starred && takes_sizes(*node.func)) {
        inputs.push_back(sequence(node.args, file_.range(node), lowered_name::sizes));
        return;
    }
    for (const py::Expr* argument : given) {
        const auto* star = py::as<py::Starred>(*argument);
        inputs.push_back(star == nullptr ? lower(*argument)
                                         : jit::Expr(jit::Starred::create(file_.range(*argument),
                                                                          lower(*star->value))));
    }
}

// str(a) and "{}".format(a) where the text is used, not only read by somebody.
std::optional<jit::Expr> Expressions::text_call(const py::Call& node, const Range& range) {
    if (scope_.in_message || !node.keywords.empty()) {
        return std::nullopt;
    }
    const auto* called = py::as<py::Name>(node.func);
    if (called != nullptr && called->id == "str" && node.args.size() == 1 &&
        !scope_.is_local("str") && !scope_.names.binds("str")) {
        return apply(range, lowered_name::text,
                     {jit::StringLiteral::create(range, "{}"), lower(*node.args.front())});
    }
    const auto* method = py::as<py::Attribute>(node.func);
    const auto* literal = method ? py::as<py::Constant>(method->value) : nullptr;
    if (literal == nullptr || literal->string() == nullptr || method->attr != "format") {
        return std::nullopt;
    }
    std::vector<jit::Expr> values{lower(*literal)};
    for (const py::ExprPtr& argument : node.args) {
        values.push_back(lower(*argument));
    }
    return apply(range, lowered_name::text, values);
}

// What is answered while compiling: isinstance(self.proj, nn.Linear), torch.is_grad_enabled().
std::optional<jit::Expr> Expressions::question(const py::Call& node, const Range& range) {
    const auto* called = py::as<py::Name>(node.func);
    if (called != nullptr && called->id == "isinstance" && node.args.size() == 2 &&
        !scope_.is_local("isinstance") && !scope_.names.binds("isinstance")) {
        const std::string type = scope_.names.external(*node.args[1]);
        if (is_module_class(type)) {
            return apply(range, lowered_name::is_module,
                         {lower(*node.args[0]), jit::StringLiteral::create(range, type)});
        }
    }
    if (node.args.empty() && scope_.names.external(*node.func) == "torch.is_grad_enabled") {
        return apply(range, lowered_name::has_grad, {});
    }
    return std::nullopt;
}

// functools.partial(f, a, b=c): f is no value, so it is asked for what it makes of the rest.
jit::Expr Expressions::callee(const py::Call& node, const Range& range,
                              std::vector<jit::Expr>& inputs) {
    const bool partial = !node.args.empty() && !py::as<py::Starred>(node.args.front()) &&
                         scope_.names.external(*node.func) == "functools.partial";
    if (!partial) {
        return lower(*node.func);
    }
    const jit::Expr function = inputs.front();  // lowered twice, nested ones would be 2^depth times
    inputs.erase(inputs.begin());
    return jit::Select::create(range, function, jit::Ident::create(range, lowered_name::partial));
}

jit::Expr Expressions::call(const py::Call& node, const Range& range) {
    if (const auto text = text_call(node, range)) {
        return *text;
    }
    if (const auto known = question(node, range)) {
        return *known;
    }
    const auto* called = py::as<py::Name>(node.func);
    const bool prints = called != nullptr && called->id == "print";
    const bool was_message = std::exchange(scope_.in_message, scope_.in_message || prints);
    std::vector<jit::Expr> inputs;
    arguments(node, inputs);
    std::vector<jit::Attribute> attributes;
    for (const py::Keyword& keyword : node.keywords) {
        const auto* rest = py::as<py::Name>(keyword.value);
        if (keyword.arg.empty() && rest != nullptr && !rest->id.empty() &&
            rest->id == scope_.no_keywords) {
            continue;
        }
        if (keyword.arg.empty()) {
            file_.refuse(keyword, "a ** argument");
        }
        const Range at = file_.range(keyword);
        attributes.push_back(
            jit::Attribute::create(at, jit::Ident::create(at, keyword.arg), lower(*keyword.value)));
    }
    scope_.in_message = was_message;
    const jit::Expr function = callee(node, range, inputs);
    return jit::Apply::create(range, function, jit::List<jit::Expr>::create(range, inputs),
                              jit::List<jit::Attribute>::create(range, attributes));
}

// f"{a:>4}" where the text is used: what is known while compiling, as Python prints it.
jit::Expr Expressions::formatted(const py::FormattedValue& value) {
    const Range at = file_.range(value);
    std::string specification;
    if (const auto* spec = value.format_spec ? py::as<py::JoinedStr>(value.format_spec) : nullptr) {
        for (const py::ExprPtr& part : spec->values) {
            const auto* text = py::as<py::Constant>(part);
            if (text == nullptr || text->string() == nullptr) {
                file_.refuse(value, "a format specification that is computed");
            }
            specification += *text->string();
        }
    }
    const std::string conversion =
        value.conversion == -1 ? "" : std::string(1, static_cast<char>(value.conversion));
    return apply(at, lowered_name::format,
                 {lower(*value.value), jit::StringLiteral::create(at, conversion),
                  jit::StringLiteral::create(at, specification)});
}

// f"a {x}" in a message → "a {}".format(x); conversions and format specifications only matter to
// a reader there. Elsewhere only what prints alike in C++ and Python: texts, integers, flags.
jit::Expr Expressions::joined_string(const py::JoinedStr& node, const Range& range) {
    std::string format;
    std::vector<jit::Expr> values;
    for (const py::ExprPtr& part : node.values) {
        if (const auto* value = py::as<py::FormattedValue>(part)) {
            const bool plain =
                !value->format_spec && (value->conversion == -1 || value->conversion == 's');
            format += "{}";
            values.push_back(plain || scope_.in_message ? lower(*value->value) : formatted(*value));
        } else if (const auto* text = py::as<py::Constant>(part); text && text->string()) {
            const bool braces = text->string()->find_first_of("{}") != std::string::npos;
            format += braces ? "{}" : *text->string();
            if (braces) {
                values.push_back(jit::StringLiteral::create(file_.range(*part), *text->string()));
            }
        }
    }
    auto literal = jit::StringLiteral::create(range, format);
    if (values.empty()) {
        return literal;
    }
    if (!scope_.in_message) {
        values.insert(values.begin(), literal);
        return apply(range, lowered_name::text, values);
    }
    return jit::Apply::create(
        range, jit::Select::create(range, literal, jit::Ident::create(range, "format")),
        jit::List<jit::Expr>::create(range, values), jit::List<jit::Attribute>::create(range, {}));
}

}  // namespace twinkle::runtime
