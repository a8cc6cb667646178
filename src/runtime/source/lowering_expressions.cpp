#include "runtime/source/lowering_expressions.h"
#include "runtime/graph/format.h"

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

void SourceFile::check(const py::Node& node) const {
    if (const auto why = kernel::refused_construct(node)) {
        refuse(node, *why);
    }
}

jit::Expr type_reference(const std::string& name) {
    // LibTorch resolves a type by the text of its range.
    const auto source = std::make_shared<jit::Source>(name, "<types>", 1);
    const jit::SourceRange range(source, 0, name.size());
    return jit::Var::create(range, jit::Ident::create(range, name));
}

namespace {

bool has_star(const std::vector<py::ExprPtr>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const py::ExprPtr& node) {
        return py::as<py::Starred>(node) != nullptr;
    });
}

}  // namespace

jit::Expr Expressions::lower(const py::Expr& expr) {
    const Range range = file_.range(expr);
    if (const auto keyword = default_of_keyword(scope_, expr)) {
        return *keyword == nullptr ? keyword_tree(jit::TK_NONE, range) : lower(**keyword);
    }
    file_.check(expr);
    switch (expr.kind) {
        case py::NodeKind::Name: return name(*py::as<py::Name>(expr), range);
        case py::NodeKind::Constant:
            return lower_constant_value(range, py::as<py::Constant>(expr)->value);
        case py::NodeKind::Attribute: {
            const auto& node = *py::as<py::Attribute>(expr);
            return jit::Select::create(range, lower(*node.value),
                                       jit::Ident::create(range, node.attr));
        }
        case py::NodeKind::Call: return call(*py::as<py::Call>(expr), range);
        case py::NodeKind::BinOp: return binary(*py::as<py::BinOp>(expr), range);
        case py::NodeKind::UnaryOp: return unary(*py::as<py::UnaryOp>(expr), range);
        case py::NodeKind::Compare: return compare(*py::as<py::Compare>(expr), range);
        case py::NodeKind::BoolOp: return boolean(*py::as<py::BoolOp>(expr), range, false);
        case py::NodeKind::IfExp: return choice(*py::as<py::IfExp>(expr), range);
        case py::NodeKind::Tuple: {
            const auto& node = *py::as<py::Tuple>(expr);
            if (node.ctx == py::ExprContext::Load && has_star(node.elts)) {
                return sequence(node.elts, range, lowered_name::sequence);
            }
            return jit::TupleLiteral::create(range, list(node.elts, range));
        }
        case py::NodeKind::List: {
            const auto& node = *py::as<py::List>(expr);
            if (node.ctx != py::ExprContext::Load) {
                return jit::TupleLiteral::create(range, list(node.elts, range));
            }
            if (has_star(node.elts)) {
                return sequence(node.elts, range, lowered_name::listed);
            }
            return jit::ListLiteral::create(range, list(node.elts, range));
        }
        case py::NodeKind::Starred: {
            const auto& node = *py::as<py::Starred>(expr);
            if (node.ctx == py::ExprContext::Load) {
                file_.refuse(expr, "a starred expression");
            }
            return jit::Starred::create(range, lower(*node.value));
        }
        case py::NodeKind::Dict: {
            const auto& node = *py::as<py::Dict>(expr);
            return jit::DictLiteral::create(range, list(node.keys, range),
                                            list(node.values, range));
        }
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
        case py::NodeKind::DictComp: return comprehension(*py::as<py::DictComp>(expr), range);
        default: file_.refuse(expr, kernel::no_counterpart(expr));
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

jit::Expr lower_constant_value(const jit::SourceRange& range, const py::ConstantValue& value) {
    if (const auto* flag = std::get_if<bool>(&value)) {
        return keyword_tree(*flag ? jit::TK_TRUE : jit::TK_FALSE, range);
    }
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        return jit::Const::create(range, std::to_string(*integer));
    }
    if (const auto* number = std::get_if<double>(&value)) {
        // Integral values need a mark that makes them floats.
        std::string text = std::isinf(*number) ? "inf" : fmt::format("{:.17g}", *number);
        if (text.find_first_of(".einf") == std::string::npos) {
            text += ".0";
        }
        return jit::Const::create(range, text);
    }
    if (const auto* text = std::get_if<std::string>(&value)) {
        return jit::StringLiteral::create(range, *text);
    }
    if (std::holds_alternative<py::Ellipsis>(value)) {
        return jit::Dots::create(range);
    }
    return keyword_tree(jit::TK_NONE, range);
}

std::optional<jit::Expr> lower_written_out(FunctionScope& scope, const py::Expr& comprehension,
                                           std::size_t count) {
    return Expressions(scope).written_out(comprehension, count);
}

jit::Expr lower_expression(FunctionScope& scope, const py::Expr& expr) {
    return Expressions(scope).lower(expr);
}

jit::Expr lower_test(FunctionScope& scope, const py::Expr& expr) {
    return Expressions(scope).test(expr);
}

}  // namespace twinkle::runtime
