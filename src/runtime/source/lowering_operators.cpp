#include "runtime/source/lowering_expressions.h"

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

namespace {

bool may_be_equal_sequence(Sequence one) {
    return one != Sequence::none;
}

const char* sequence_word(Sequence kind) {
    return kind == Sequence::tuple ? "tuple" : kind == Sequence::list ? "list" : "unknown";
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

}  // namespace

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
    // Texts and sequences are true if they are not empty; only their type tells.
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

}  // namespace twinkle::runtime
