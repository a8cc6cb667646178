#include "runtime/format.h"
#include "runtime/source/lowering.h"

#include <algorithm>
#include <cmath>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

SourceFile::SourceFile(const std::string& path, const std::string& text)
    : path_(path), source_(std::make_shared<jit::Source>(text, path, 1)) {}

jit::SourceRange SourceFile::range(const py::Node& node) const {
    return {source_, node.span.begin, node.span.end};
}

void SourceFile::refuse(const py::Node& node, const std::string& construct) const {
    throw CannotCompile(fmt::format("{}:{}: {}", path_, node.span.line, construct));
}

jit::Expr type_reference(const std::string& name) {
    // LibTorch resolves a type by the text of its range.
    const auto source = std::make_shared<jit::Source>(name, "<types>", 1);
    const jit::SourceRange range(source, 0, name.size());
    return jit::Var::create(range, jit::Ident::create(range, name));
}

namespace {

class Expressions {
public:
    explicit Expressions(const SourceFile& file) : file_(file) {}

    jit::Expr lower(const py::Expr& expr);

private:
    using Range = jit::SourceRange;

    jit::Expr call(const py::Call& node, const Range& range);
    jit::Expr constant(const py::Constant& node, const Range& range);
    jit::Expr compare(const py::Compare& node, const Range& range);
    jit::Expr binary(const py::BinOp& node, const Range& range);
    jit::Expr unary(const py::UnaryOp& node, const Range& range);
    jit::Expr joined_string(const py::JoinedStr& node, const Range& range);
    jit::Expr subscript(const py::Subscript& node, const Range& range);
    jit::Expr subscript_element(const py::Expr& node);
    jit::Expr dictionary(const py::Dict& node, const Range& range);
    jit::Expr comprehension(const py::Expr& elt, const std::vector<py::Comprehension>& generators,
                            const Range& range);
    jit::Maybe<jit::Expr> maybe(const py::ExprPtr& node, const Range& range);
    jit::List<jit::Expr> list(const std::vector<py::ExprPtr>& nodes, const Range& range);

    const SourceFile& file_;
};

int binary_kind(py::Operator op) {
    switch (op) {
        case py::Operator::Add: return '+';
        case py::Operator::Sub: return '-';
        case py::Operator::Mult: return '*';
        case py::Operator::MatMult: return '@';
        case py::Operator::Div: return '/';
        case py::Operator::Mod: return '%';
        case py::Operator::Pow: return jit::TK_POW;
        case py::Operator::LShift: return jit::TK_LSHIFT;
        case py::Operator::RShift: return jit::TK_RSHIFT;
        case py::Operator::BitOr: return '|';
        case py::Operator::BitXor: return '^';
        case py::Operator::BitAnd: return '&';
        case py::Operator::FloorDiv: return jit::TK_FLOOR_DIV;
    }
    return '+';
}

int compare_kind(py::CompareOperator op) {
    switch (op) {
        case py::CompareOperator::Eq: return jit::TK_EQ;
        case py::CompareOperator::NotEq: return jit::TK_NE;
        case py::CompareOperator::Lt: return '<';
        case py::CompareOperator::LtE: return jit::TK_LE;
        case py::CompareOperator::Gt: return '>';
        case py::CompareOperator::GtE: return jit::TK_GE;
        case py::CompareOperator::Is: return jit::TK_IS;
        case py::CompareOperator::IsNot: return jit::TK_ISNOT;
        case py::CompareOperator::In:
        case py::CompareOperator::NotIn: return jit::TK_IN;
    }
    return jit::TK_EQ;
}

// Evaluating it twice costs little and has no effect: names, x.shape[0], x.dim().
bool is_simple(const py::Expr& expr) {
    if (const auto* attribute = py::as<py::Attribute>(expr)) {
        return is_simple(*attribute->value);
    }
    if (const auto* subscript = py::as<py::Subscript>(expr)) {
        return is_simple(*subscript->value) && is_simple(*subscript->slice);
    }
    if (const auto* unary = py::as<py::UnaryOp>(expr)) {
        return is_simple(*unary->operand);
    }
    if (const auto* call = py::as<py::Call>(expr)) {
        const auto* method = py::as<py::Attribute>(call->func);
        return method != nullptr && !method->attr.ends_with('_') && is_simple(*method->value) &&
               call->keywords.empty() &&
               std::all_of(call->args.begin(), call->args.end(),
                           [](const py::ExprPtr& argument) { return is_simple(*argument); });
    }
    return py::as<py::Name>(expr) != nullptr || py::as<py::Constant>(expr) != nullptr;
}

jit::Expr keyword_tree(int kind, const jit::SourceRange& range) {
    return jit::Expr(jit::Compound::create(kind, range, {}));
}

jit::Expr Expressions::lower(const py::Expr& expr) {
    const Range range = file_.range(expr);
    switch (expr.kind) {
        case py::NodeKind::Name:
            return jit::Var::create(range, jit::Ident::create(range, py::as<py::Name>(expr)->id));
        case py::NodeKind::Constant: return constant(*py::as<py::Constant>(expr), range);
        case py::NodeKind::Attribute: {
            const auto& node = *py::as<py::Attribute>(expr);
            return jit::Select::create(range, lower(*node.value),
                                       jit::Ident::create(range, node.attr));
        }
        case py::NodeKind::Call: return call(*py::as<py::Call>(expr), range);
        case py::NodeKind::BinOp: return binary(*py::as<py::BinOp>(expr), range);
        case py::NodeKind::UnaryOp: return unary(*py::as<py::UnaryOp>(expr), range);
        case py::NodeKind::Compare: return compare(*py::as<py::Compare>(expr), range);
        case py::NodeKind::BoolOp: {
            const auto& node = *py::as<py::BoolOp>(expr);
            const int kind = node.op == py::BoolOperator::And ? jit::TK_AND : jit::TK_OR;
            jit::Expr result = lower(*node.values.front());
            for (std::size_t i = 1; i < node.values.size(); ++i) {
                result = jit::BinOp::create(range, kind, result, lower(*node.values[i]));
            }
            return result;
        }
        case py::NodeKind::IfExp: {
            const auto& node = *py::as<py::IfExp>(expr);
            return jit::TernaryIf::create(range, lower(*node.test), lower(*node.body),
                                          lower(*node.orelse));
        }
        case py::NodeKind::Tuple:
            return jit::TupleLiteral::create(range, list(py::as<py::Tuple>(expr)->elts, range));
        case py::NodeKind::List:
            return jit::ListLiteral::create(range, list(py::as<py::List>(expr)->elts, range));
        case py::NodeKind::Dict: return dictionary(*py::as<py::Dict>(expr), range);
        case py::NodeKind::Subscript: return subscript(*py::as<py::Subscript>(expr), range);
        case py::NodeKind::JoinedStr: return joined_string(*py::as<py::JoinedStr>(expr), range);
        case py::NodeKind::ListComp: {
            const auto& node = *py::as<py::ListComp>(expr);
            return comprehension(*node.elt, node.generators, range);
        }
        case py::NodeKind::GeneratorExp: {
            const auto& node = *py::as<py::GeneratorExp>(expr);
            return comprehension(*node.elt, node.generators, range);
        }
        default:
            file_.refuse(
                expr, std::string(py::kind_name(expr.kind)) + " has no counterpart in TorchScript");
    }
}

jit::Maybe<jit::Expr> Expressions::maybe(const py::ExprPtr& node, const Range& range) {
    return node ? jit::Maybe<jit::Expr>::create(range, lower(*node))
                : jit::Maybe<jit::Expr>::create(range);
}

jit::List<jit::Expr> Expressions::list(const std::vector<py::ExprPtr>& nodes, const Range& range) {
    std::vector<jit::Expr> lowered;
    lowered.reserve(nodes.size());
    for (const py::ExprPtr& node : nodes) {
        lowered.push_back(lower(*node));
    }
    return jit::List<jit::Expr>::create(range, lowered);
}

jit::Expr Expressions::constant(const py::Constant& node, const Range& range) {
    if (node.is_none()) {
        return keyword_tree(jit::TK_NONE, range);
    }
    if (const auto* value = std::get_if<bool>(&node.value)) {
        return keyword_tree(*value ? jit::TK_TRUE : jit::TK_FALSE, range);
    }
    if (const auto* value = std::get_if<std::int64_t>(&node.value)) {
        return jit::Const::create(range, std::to_string(*value));
    }
    if (const auto* value = std::get_if<double>(&node.value)) {
        // Integral values need a mark that makes them floats.
        std::string text = std::isinf(*value) ? "inf" : fmt::format("{:.17g}", *value);
        if (text.find_first_of(".einf") == std::string::npos) {
            text += ".0";
        }
        return jit::Const::create(range, text);
    }
    if (const std::string* value = node.string()) {
        return jit::StringLiteral::create(range, *value);
    }
    if (std::holds_alternative<py::Ellipsis>(node.value)) {
        return jit::Dots::create(range);
    }
    file_.refuse(node,
                 "a constant that TorchScript does not have (bytes, complex or a huge integer)");
}

jit::Expr Expressions::call(const py::Call& node, const Range& range) {
    std::vector<jit::Expr> inputs;
    for (const py::ExprPtr& argument : node.args) {
        if (py::as<py::Starred>(argument)) {
            file_.refuse(*argument, "a starred argument");
        }
        inputs.push_back(lower(*argument));
    }
    std::vector<jit::Attribute> attributes;
    for (const py::Keyword& keyword : node.keywords) {
        if (keyword.arg.empty()) {
            file_.refuse(keyword, "a ** argument");
        }
        const Range at = file_.range(keyword);
        attributes.push_back(
            jit::Attribute::create(at, jit::Ident::create(at, keyword.arg), lower(*keyword.value)));
    }
    return jit::Apply::create(range, lower(*node.func), jit::List<jit::Expr>::create(range, inputs),
                              jit::List<jit::Attribute>::create(range, attributes));
}

jit::Expr Expressions::binary(const py::BinOp& node, const Range& range) {
    return jit::BinOp::create(range, binary_kind(node.op), lower(*node.left), lower(*node.right));
}

jit::Expr Expressions::unary(const py::UnaryOp& node, const Range& range) {
    switch (node.op) {
        case py::UnaryOperator::Not:
            return jit::UnaryOp::create(range, jit::TK_NOT, lower(*node.operand));
        case py::UnaryOperator::Invert:
            return jit::UnaryOp::create(range, '~', lower(*node.operand));
        case py::UnaryOperator::USub:
            return jit::UnaryOp::create(range, jit::TK_UNARY_MINUS, lower(*node.operand));
        case py::UnaryOperator::UAdd: return lower(*node.operand);
    }
    return lower(*node.operand);
}

jit::Expr Expressions::compare(const py::Compare& node, const Range& range) {
    std::optional<jit::Expr> result;
    const py::Expr* left = node.left.get();
    for (std::size_t i = 0; i < node.ops.size(); ++i) {
        const py::Expr& right = *node.comparators[i];
        if (i + 1 < node.ops.size() && !is_simple(right)) {
            file_.refuse(right, "a chained comparison of something that would be computed twice");
        }
        jit::Expr one =
            jit::BinOp::create(range, compare_kind(node.ops[i]), lower(*left), lower(right));
        if (node.ops[i] == py::CompareOperator::NotIn) {
            one = jit::UnaryOp::create(range, jit::TK_NOT, one);
        }
        result = result ? jit::Expr(jit::BinOp::create(range, jit::TK_AND, *result, one)) : one;
        left = &right;
    }
    return *result;
}

// f"a {x}" → "a {}".format(x); conversions and format specifications only matter to a reader.
jit::Expr Expressions::joined_string(const py::JoinedStr& node, const Range& range) {
    std::string format;
    std::vector<jit::Expr> values;
    for (const py::ExprPtr& part : node.values) {
        if (const auto* value = py::as<py::FormattedValue>(part)) {
            format += "{}";
            values.push_back(lower(*value->value));
        } else if (const auto* text = py::as<py::Constant>(part); text && text->string()) {
            if (text->string()->find_first_of("{}") != std::string::npos) {
                file_.refuse(*part, "a brace in the text of an f-string");
            }
            format += *text->string();
        }
    }
    auto literal = jit::StringLiteral::create(range, format);
    if (values.empty()) {
        return literal;
    }
    return jit::Apply::create(
        range, jit::Select::create(range, literal, jit::Ident::create(range, "format")),
        jit::List<jit::Expr>::create(range, values), jit::List<jit::Attribute>::create(range, {}));
}

jit::Expr Expressions::subscript_element(const py::Expr& node) {
    const Range range = file_.range(node);
    if (const auto* slice = py::as<py::Slice>(node)) {
        return jit::SliceExpr::create(range, maybe(slice->lower, range), maybe(slice->upper, range),
                                      maybe(slice->step, range));
    }
    return lower(node);
}

jit::Expr Expressions::subscript(const py::Subscript& node, const Range& range) {
    std::vector<jit::Expr> elements;
    const auto* tuple = py::as<py::Tuple>(node.slice);
    if (tuple != nullptr && !tuple->elts.empty()) {
        for (const py::ExprPtr& element : tuple->elts) {
            elements.push_back(subscript_element(*element));
        }
    } else {
        elements.push_back(subscript_element(*node.slice));
    }
    return jit::Subscript::create(range, lower(*node.value),
                                  jit::List<jit::Expr>::create(file_.range(*node.slice), elements));
}

jit::Expr Expressions::dictionary(const py::Dict& node, const Range& range) {
    std::vector<jit::Expr> keys;
    for (const py::ExprPtr& key : node.keys) {
        if (!key) {
            file_.refuse(node, "a ** entry in a dictionary");
        }
        keys.push_back(lower(*key));
    }
    return jit::DictLiteral::create(range, jit::List<jit::Expr>::create(range, keys),
                                    list(node.values, range));
}

jit::Expr Expressions::comprehension(const py::Expr& elt,
                                     const std::vector<py::Comprehension>& generators,
                                     const Range& range) {
    if (generators.size() != 1 || !generators[0].ifs.empty() || generators[0].is_async) {
        file_.refuse(elt, "a comprehension with a condition or several loops");
    }
    return jit::ListComp::create(range, lower(elt), lower(*generators[0].target),
                                 lower(*generators[0].iter));
}

}  // namespace

jit::Expr lower_expression(const SourceFile& file, const py::Expr& expr) {
    return Expressions(file).lower(expr);
}

}  // namespace twinkle::runtime
