#include "runtime/source/python_values.h"

#include "runtime/source/python_format.h"

#include <torch/csrc/jit/ir/constants.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

EmittedValue as_value(jit::Value* value) {
    return std::make_shared<jit::SimpleValue>(value);
}

EmittedValue known_flag(const jit::SourceRange& loc, jit::GraphFunction& m, bool value) {
    return as_value(m.graph()->insertConstant(value, loc));
}

enum class Kind { other, unknown, tuple, list };

// A torch.Size is a list of integers here, so of such a list only the source may tell.
Kind kind_of(const c10::TypePtr& type, const std::string& told) {
    if (type->kind() == c10::TypeKind::TupleType) {
        return Kind::tuple;
    }
    const auto list = type->cast<c10::ListType>();
    if (list == nullptr) {
        return Kind::other;
    }
    const bool integers = list->getElementType()->kind() == c10::TypeKind::IntType;
    return told == "tuple" ? Kind::tuple : told == "list" || !integers ? Kind::list : Kind::unknown;
}

// What C++ prints as Python does. An integer may be a dtype, which Python prints by its name.
bool prints_alike(const jit::Value* value) {
    const auto kind = value->type()->kind();
    const bool constant = value->node()->kind() == c10::prim::Constant;
    return kind == c10::TypeKind::StringType || kind == c10::TypeKind::BoolType ||
           (constant && kind == c10::TypeKind::IntType);
}

// Braces that stand for a value, of which there are `count`, and no others.
bool is_plain_format(const std::string& format, std::size_t count) {
    std::size_t values = 0;
    for (std::size_t i = 0; i < format.size(); ++i) {
        if (format[i] == '}') {
            return false;
        }
        if (format[i] == '{') {
            if (i + 1 == format.size() || format[++i] != '}') {
                return false;
            }
            ++values;
        }
    }
    return values == count;
}

}  // namespace

EmittedValue emit_truth(const jit::SourceRange& loc, jit::GraphFunction& m, EmittedArguments args) {
    jit::Graph& graph = *m.graph();
    jit::Value* value = args[0].value(graph);
    switch (value->type()->kind()) {
        case c10::TypeKind::NoneType: return known_flag(loc, m, false);
        case c10::TypeKind::TupleType:
            return known_flag(loc, m, !value->type()->containedTypes().empty());
        case c10::TypeKind::StringType:
            if (const auto text = jit::toIValue(value)) {
                return known_flag(loc, m, !text->toStringRef().empty());
            }
            [[fallthrough]];
        case c10::TypeKind::ListType:
        case c10::TypeKind::DictType: {
            jit::Value* length = jit::emitBuiltinCall(loc, graph, c10::aten::len, {value}, {});
            jit::Value* none = graph.insertConstant(0, loc);
            return as_value(jit::emitBuiltinCall(loc, graph, c10::aten::gt, {length, none}, {}));
        }
        default: return as_value(value);
    }
}

EmittedValue emit_equal(const jit::SourceRange& loc, jit::GraphFunction& m, EmittedArguments args) {
    jit::Graph& graph = *m.graph();
    const auto told = [&](const jit::NamedValue& one) {
        return jit::toIValue(one.value(graph))->toStringRef();
    };
    const Kind left = kind_of(args[0].value(graph)->type(), told(args[2]));
    const Kind right = kind_of(args[1].value(graph)->type(), told(args[3]));
    const bool sequences = left != Kind::other && right != Kind::other;
    if (sequences && (left == Kind::unknown || right == Kind::unknown)) {
        throw(jit::ErrorReport(loc)
              << "compares lists of which one may be a torch.Size; in Python that equals no list. "
                 "Compare tuple(…) or list(…) of both");
    }
    if (sequences && left != right) {
        return known_flag(loc, m, false);
    }
    return jit::MagicMethod("__eq__",
                            std::make_shared<jit::BuiltinFunction>(c10::aten::eq, std::nullopt))
        .call(loc, m, args.slice(0, 2), {}, 1);
}

EmittedValue emit_text(const jit::SourceRange& loc, jit::GraphFunction& m, EmittedArguments args) {
    jit::Graph& graph = *m.graph();
    const auto format = jit::toIValue(args[0].value(graph));
    if (!format || !format->isString() ||
        !is_plain_format(format->toStringRef(), args.size() - 1)) {
        throw(jit::ErrorReport(loc)
              << "a format with more than {} for each value, outside of a message");
    }
    std::vector<jit::NamedValue> values{args[0]};
    for (const jit::NamedValue& argument : args.slice(1)) {
        jit::Value* value = argument.value(graph);
        const auto constant = jit::toIValue(value);
        const auto printed =
            constant && constant->isDouble() ? python_format(*constant, "") : std::nullopt;
        if (!printed && !prints_alike(value)) {
            throw(jit::ErrorReport(loc) << "the text of a value of type "
                                        << value->type()->repr_str() << " outside of a message");
        }
        values.push_back(printed ? jit::NamedValue(loc, graph.insertConstant(*printed, loc))
                                 : argument);
    }
    return as_value(jit::emitBuiltinCall(loc, graph, c10::aten::format, values, {}));
}

EmittedValue emit_format(const jit::SourceRange& loc, jit::GraphFunction& m,
                         EmittedArguments args) {
    jit::Graph& graph = *m.graph();
    const auto value = jit::toIValue(args[0].value(graph));
    const std::string conversion = jit::toIValue(args[1].value(graph))->toStringRef();
    const std::string specification = jit::toIValue(args[2].value(graph))->toStringRef();
    if (!value) {
        throw(jit::ErrorReport(loc) << "a format specification of a value that is not known while "
                                       "compiling, outside of a message");
    }
    std::optional<c10::IValue> formatted = *value;
    if (conversion == "s") {
        const auto said = python_text(*value);
        formatted = said ? std::optional<c10::IValue>(*said) : std::nullopt;
    }
    const auto text = formatted && (conversion == "s" || conversion.empty())
                          ? python_format(*formatted, specification)
                          : std::nullopt;
    if (!text) {
        throw(jit::ErrorReport(loc) << "the format specification :" << specification << " of a "
                                    << value->tagKind() << ", outside of a message");
    }
    return as_value(graph.insertConstant(*text, loc));
}

}  // namespace twinkle::runtime
