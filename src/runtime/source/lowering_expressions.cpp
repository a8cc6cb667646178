#include "runtime/source/lowering_expressions.h"
#include "runtime/graph/format.h"

#include "python/walk.h"

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

bool may_be_equal_sequence(Sequence one) {
    return one != Sequence::none;
}

const char* sequence_word(Sequence kind) {
    return kind == Sequence::tuple ? "tuple" : kind == Sequence::list ? "list" : "unknown";
}

bool has_star(const std::vector<py::ExprPtr>& nodes) {
    return std::any_of(nodes.begin(), nodes.end(), [](const py::ExprPtr& node) {
        return py::as<py::Starred>(node) != nullptr;
    });
}

bool is_flag(const py::Expr& expr) {
    if (const auto* unary = py::as<py::UnaryOp>(expr)) {
        return unary->op == py::UnaryOperator::Not;
    }
    if (const auto* constant = py::as<py::Constant>(expr)) {
        return std::holds_alternative<bool>(constant->value);
    }
    const auto* call = py::as<py::Call>(expr);
    const auto* called = call ? py::as<py::Name>(call->func) : nullptr;
    return py::as<py::Compare>(expr) != nullptr || py::as<py::BoolOp>(expr) != nullptr ||
           (called != nullptr &&
            (called->id == "isinstance" || called->id == "hasattr" || called->id == "bool"));
}

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

// The variable of a comprehension is another one than what has its name outside.
class OwnNames {
public:
    OwnNames(FunctionScope& scope, const py::Expr& target)
        : scope_(scope), constants_(scope.constants), stands_for_(scope.stands_for) {
        py::walk(target, [&](const py::Node& node) {
            if (const auto* name = py::as<py::Name>(node)) {
                scope_.constants.erase(name->id);
                scope_.stands_for.erase(name->id);
            }
            return true;
        });
    }
    ~OwnNames() {
        scope_.constants = constants_;
        scope_.stands_for = stands_for_;
    }
    OwnNames(const OwnNames&) = delete;
    OwnNames& operator=(const OwnNames&) = delete;

private:
    FunctionScope& scope_;
    std::map<std::string, py::ConstantValue> constants_;
    std::map<std::string, const py::Expr*> stands_for_;
};

// Small, and without variables of its own: it can stand there several times.
bool can_repeat(const py::Expr& expr) {
    constexpr std::size_t largest = 200;
    bool binds = false;
    std::size_t nodes = 0;
    py::walk(expr, [&](const py::Node& node) {
        const auto* name = py::as<py::Name>(node);
        binds = binds || (name != nullptr && name->ctx != py::ExprContext::Load);
        return !binds && ++nodes <= largest;
    });
    return !binds && nodes <= largest;
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
        case py::NodeKind::DictComp: {
            const auto& node = *py::as<py::DictComp>(expr);
            const jit::Expr over = lower(*node.generators[0].iter);
            const OwnNames own(scope_, *node.generators[0].target);
            return jit::DictComp::create(range, lower(*node.key), lower(*node.value),
                                         lower(*node.generators[0].target), over);
        }
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

// Operands whose truth is known while compiling are left out, so that those behind them are
// compiled only where Python would run them.
jit::Expr Expressions::boolean(const py::BoolOp& node, const Range& range, bool as_test) {
    constexpr std::size_t most_operands = 100;
    if (node.values.size() > most_operands) {
        file_.refuse(node, "more than 100 operands of and, or");
    }
    const bool is_or = node.op == py::BoolOperator::Or;
    std::vector<const py::Expr*> operands;
    for (const py::ExprPtr& value : node.values) {
        const auto holds = known_truth(scope_, *value);
        const bool last = &value == &node.values.back();
        if (holds && *holds != is_or && !last) {
            continue;
        }
        operands.push_back(value.get());
        if (holds && *holds == is_or) {
            break;
        }
    }
    const auto operand = [&](const py::Expr& one) {
        if (as_test) {
            return test(one);
        }
        // In Python, a or b is a or b; in TorchScript it is a flag.
        const jit::Expr value = lower(one);
        return operands.size() == 1 || is_flag(one)
                   ? value
                   : apply(file_.range(one), lowered_name::flag, {value});
    };
    jit::Expr result = operand(*operands.front());
    for (std::size_t i = 1; i < operands.size(); ++i) {
        result = jit::BinOp::create(range, is_or ? jit::TK_OR : jit::TK_AND, result,
                                    operand(*operands[i]));
    }
    return result;
}

jit::Expr Expressions::test(const py::Expr& expr) {
    const Range range = file_.range(expr);
    if (const auto holds = known_truth(scope_, expr)) {
        return keyword_tree(*holds ? jit::TK_TRUE : jit::TK_FALSE, range);
    }
    if (const auto* node = py::as<py::BoolOp>(expr)) {
        return boolean(*node, range, true);
    }
    if (const auto* node = py::as<py::UnaryOp>(expr);
        node != nullptr && node->op == py::UnaryOperator::Not) {
        return jit::UnaryOp::create(range, jit::TK_NOT, test(*node->operand));
    }
    // Of texts and sequences it is whether they are empty, which takes their type to tell.
    return is_flag(expr) ? lower(expr) : apply(range, lowered_name::truth, {lower(expr)});
}

jit::Expr Expressions::choice(const py::IfExp& node, const Range& range) {
    if (const auto holds = known_truth(scope_, *node.test)) {
        return lower(*holds ? *node.body : *node.orelse);
    }
    return jit::TernaryIf::create(range, test(*node.test), lower(*node.body), lower(*node.orelse));
}

jit::Expr Expressions::binary(const py::BinOp& node, const Range& range) {
    if (node.op == py::Operator::Pow) {
        // Of two integers TorchScript makes a float.
        return apply(range, lowered_name::power, {lower(*node.left), lower(*node.right)});
    }
    if (kernel::is_percent_format(node) && !scope_.in_message) {
        file_.refuse(node, "a % format outside of a message");
    }
    return jit::BinOp::create(range, binary_kind(node.op), lower(*node.left), lower(*node.right));
}

jit::Expr Expressions::unary(const py::UnaryOp& node, const Range& range) {
    switch (node.op) {
        case py::UnaryOperator::Not: return test(node);
        case py::UnaryOperator::Invert:
            return jit::UnaryOp::create(range, '~', lower(*node.operand));
        case py::UnaryOperator::USub:
            return jit::UnaryOp::create(range, jit::TK_UNARY_MINUS, lower(*node.operand));
        case py::UnaryOperator::UAdd: return lower(*node.operand);
    }
    return lower(*node.operand);
}

// A sequence that may be a tuple here and a list there is compared with its kind in mind.
std::optional<jit::Expr> Expressions::equal(py::CompareOperator op, const py::Expr& left,
                                            const py::Expr& right, const Range& range) {
    if (op != py::CompareOperator::Eq && op != py::CompareOperator::NotEq) {
        return std::nullopt;
    }
    const Sequence one = sequence_of(scope_, left);
    const Sequence other = sequence_of(scope_, right);
    const bool certain = one == other && one != Sequence::unknown;
    if (certain || !may_be_equal_sequence(one) || !may_be_equal_sequence(other)) {
        return std::nullopt;
    }
    const jit::Expr same =
        apply(range, lowered_name::equal,
              {lower(left), lower(right), jit::StringLiteral::create(range, sequence_word(one)),
               jit::StringLiteral::create(range, sequence_word(other))});
    return op == py::CompareOperator::Eq
               ? same
               : jit::Expr(jit::UnaryOp::create(range, jit::TK_NOT, same));
}

// x in [None, "a"]: lists have one type in TorchScript, so None is asked for by itself.
std::optional<jit::Expr> Expressions::among_none(py::CompareOperator op, const py::Expr& value,
                                                 const py::Expr& candidates, const Range& range) {
    const auto* list = py::as<py::List>(candidates);
    const auto* tuple = py::as<py::Tuple>(candidates);
    const bool in = op == py::CompareOperator::In || op == py::CompareOperator::NotIn;
    if (!in || (list == nullptr && tuple == nullptr) || !kernel::is_simple(value)) {
        return std::nullopt;
    }
    std::vector<jit::Expr> others;
    bool none = false;
    for (const py::ExprPtr& element : list ? list->elts : tuple->elts) {
        const auto* constant = py::as<py::Constant>(element);
        if (constant != nullptr && constant->is_none()) {
            none = true;
        } else {
            others.push_back(lower(*element));
        }
    }
    if (!none || others.empty()) {
        return std::nullopt;
    }
    return jit::TernaryIf::create(
        range,
        jit::BinOp::create(range, jit::TK_IS, lower(value), keyword_tree(jit::TK_NONE, range)),
        keyword_tree(jit::TK_TRUE, range),
        jit::BinOp::create(
            range, jit::TK_IN, lower(value),
            jit::ListLiteral::create(range, jit::List<jit::Expr>::create(range, others))));
}

jit::Expr Expressions::compare(const py::Compare& node, const Range& range) {
    constexpr std::size_t most_operands = 100;
    if (const auto holds = known_truth(scope_, node)) {
        return keyword_tree(*holds ? jit::TK_TRUE : jit::TK_FALSE, range);
    }
    if (node.ops.size() > most_operands) {
        file_.refuse(node, "more than 100 operands of a comparison");
    }
    std::optional<jit::Expr> result;
    const py::Expr* left = node.left.get();
    for (std::size_t i = 0; i < node.ops.size(); ++i) {
        const py::Expr& right = *node.comparators[i];
        auto special = among_none(node.ops[i], *left, right, range);
        if (!special) {
            special = equal(node.ops[i], *left, right, range);
        }
        jit::Expr one = special ? *special
                                : jit::Expr(jit::BinOp::create(range, compare_kind(node.ops[i]),
                                                               lower(*left), lower(right)));
        if (node.ops[i] == py::CompareOperator::NotIn) {
            one = jit::UnaryOp::create(range, jit::TK_NOT, one);
        }
        result = result ? jit::Expr(jit::BinOp::create(range, jit::TK_AND, *result, one)) : one;
        left = &right;
    }
    return *result;
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

jit::Expr Expressions::comprehension(const py::Expr& elt,
                                     const std::vector<py::Comprehension>& generators,
                                     const Range& range) {
    const jit::Expr over = lower(*generators[0].iter);
    const OwnNames own(scope_, *generators[0].target);
    return jit::ListComp::create(range, lower(elt), lower(*generators[0].target), over);
}

// a, b = [f(x) for x in (c, d)]: f(c) and f(d), each with its own type, where a list has one. Only
// of names and constants, which stand for the same before and after f is called.
std::optional<jit::Expr> Expressions::written_out(const py::Expr& comprehension,
                                                  std::size_t count) {
    const auto* list = py::as<py::ListComp>(comprehension);
    const auto* generator = py::as<py::GeneratorExp>(comprehension);
    if (list == nullptr && generator == nullptr) {
        return std::nullopt;
    }
    const auto& loops = list ? list->generators : generator->generators;
    const py::Expr& element = list ? *list->elt : *generator->elt;
    file_.check(comprehension);
    const auto* variable = py::as<py::Name>(loops[0].target);
    const auto* tuple = py::as<py::Tuple>(loops[0].iter);
    const auto* values = py::as<py::List>(loops[0].iter);
    if (variable == nullptr || (tuple == nullptr && values == nullptr)) {
        return std::nullopt;
    }
    const auto& over = tuple ? tuple->elts : values->elts;
    const bool plain = std::all_of(over.begin(), over.end(), [](const py::ExprPtr& one) {
        return py::as<py::Name>(one) != nullptr || py::as<py::Constant>(one) != nullptr;
    });
    constexpr std::size_t most = 32;
    if (!plain || over.size() != count || count > most || !can_repeat(element)) {
        return std::nullopt;
    }
    const auto before = scope_.stands_for;
    std::vector<jit::Expr> results;
    for (const py::ExprPtr& one : over) {
        scope_.stands_for[variable->id] = one.get();
        results.push_back(lower(element));
        scope_.stands_for = before;
    }
    const Range range = file_.range(comprehension);
    return jit::TupleLiteral::create(range, jit::List<jit::Expr>::create(range, results));
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
