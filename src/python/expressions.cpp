// Expressions by precedence, from the lowest down to powers.
#include "python/parser_impl.h"

#include <optional>

namespace twinkle::python {
namespace {

struct BinaryOperator {
    Operator op;
    int precedence;
};

std::optional<BinaryOperator> binary_operator(Tok kind) {
    switch (kind) {
        case Tok::VBar: return BinaryOperator{Operator::BitOr, 0};
        case Tok::Circumflex: return BinaryOperator{Operator::BitXor, 1};
        case Tok::Amper: return BinaryOperator{Operator::BitAnd, 2};
        case Tok::LeftShift: return BinaryOperator{Operator::LShift, 3};
        case Tok::RightShift: return BinaryOperator{Operator::RShift, 3};
        case Tok::Plus: return BinaryOperator{Operator::Add, 4};
        case Tok::Minus: return BinaryOperator{Operator::Sub, 4};
        case Tok::Star: return BinaryOperator{Operator::Mult, 5};
        case Tok::Slash: return BinaryOperator{Operator::Div, 5};
        case Tok::DoubleSlash: return BinaryOperator{Operator::FloorDiv, 5};
        case Tok::Percent: return BinaryOperator{Operator::Mod, 5};
        case Tok::At: return BinaryOperator{Operator::MatMult, 5};
        default: return std::nullopt;
    }
}

struct Comparison {
    CompareOperator op;
    int tokens;
};

std::optional<Comparison> comparison_operator(Tok kind, Tok next) {
    switch (kind) {
        case Tok::EqEqual: return Comparison{CompareOperator::Eq, 1};
        case Tok::NotEqual: return Comparison{CompareOperator::NotEq, 1};
        case Tok::Less: return Comparison{CompareOperator::Lt, 1};
        case Tok::LessEqual: return Comparison{CompareOperator::LtE, 1};
        case Tok::Greater: return Comparison{CompareOperator::Gt, 1};
        case Tok::GreaterEqual: return Comparison{CompareOperator::GtE, 1};
        case Tok::KwIn: return Comparison{CompareOperator::In, 1};
        case Tok::KwNot:
            if (next != Tok::KwIn) return std::nullopt;
            return Comparison{CompareOperator::NotIn, 2};
        case Tok::KwIs:
            if (next == Tok::KwNot) return Comparison{CompareOperator::IsNot, 2};
            return Comparison{CompareOperator::Is, 1};
        default: return std::nullopt;
    }
}

}  // namespace

ExprPtr Parser::expression() {
    const Descent descent(*this);
    if (at(Tok::KwLambda)) {
        return lambda();
    }
    const Mark begin = mark();
    ExprPtr body = disjunction();
    if (!accept(Tok::KwIf)) {
        return body;
    }
    auto node = std::make_unique<IfExp>();
    node->body = std::move(body);
    node->test = disjunction();
    if (!at(Tok::KwElse)) {
        fail("expected 'else' after 'if' expression");
    }
    take();
    node->orelse = expression();
    return placed(std::move(node), begin);
}

ExprPtr Parser::named_expression() {
    const Mark begin = mark();
    if (!at(Tok::Name) || !at_next(Tok::ColonEqual)) {
        ExprPtr value = expression();
        if (at(Tok::ColonEqual)) {
            fail(begin, "cannot use assignment expressions here");
        }
        return value;
    }
    auto node = std::make_unique<NamedExpr>();
    node->target = name();
    set_context(*node->target, ExprContext::Store);
    take();
    node->value = expression();
    return placed(std::move(node), begin);
}

ExprPtr Parser::disjunction() {
    const Mark begin = mark();
    ExprPtr first = conjunction();
    if (!at(Tok::KwOr)) {
        return first;
    }
    auto node = std::make_unique<BoolOp>();
    node->op = BoolOperator::Or;
    node->values.push_back(std::move(first));
    while (accept(Tok::KwOr)) {
        node->values.push_back(conjunction());
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::conjunction() {
    const Mark begin = mark();
    ExprPtr first = inversion();
    if (!at(Tok::KwAnd)) {
        return first;
    }
    auto node = std::make_unique<BoolOp>();
    node->op = BoolOperator::And;
    node->values.push_back(std::move(first));
    while (accept(Tok::KwAnd)) {
        node->values.push_back(inversion());
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::inversion() {
    const Mark begin = mark();
    if (!accept(Tok::KwNot)) {
        return comparison();
    }
    const Descent descent(*this);
    auto node = std::make_unique<UnaryOp>();
    node->op = UnaryOperator::Not;
    node->operand = inversion();
    return placed(std::move(node), begin);
}

ExprPtr Parser::comparison() {
    const Mark begin = mark();
    ExprPtr first = bitwise_or();
    auto found = comparison_operator(peek().kind, peek(1).kind);
    if (!found) {
        return first;
    }
    auto node = std::make_unique<Compare>();
    node->left = std::move(first);
    for (; found; found = comparison_operator(peek().kind, peek(1).kind)) {
        for (int i = 0; i < found->tokens; ++i) take();
        node->ops.push_back(found->op);
        node->comparators.push_back(bitwise_or());
    }
    return placed(std::move(node), begin);
}

// Precedence climbing: operators of at least the precedence `lowest`, all left associative.
ExprPtr Parser::binary(int lowest) {
    const Mark begin = mark();
    ExprPtr left = factor();
    for (auto found = binary_operator(peek().kind); found && found->precedence >= lowest;
         found = binary_operator(peek().kind)) {
        take();
        auto node = std::make_unique<BinOp>();
        node->left = std::move(left);
        node->op = found->op;
        node->right = binary(found->precedence + 1);
        left = placed(std::move(node), begin);
    }
    return left;
}

ExprPtr Parser::factor() {
    UnaryOperator op{};
    switch (peek().kind) {
        case Tok::Plus: op = UnaryOperator::UAdd; break;
        case Tok::Minus: op = UnaryOperator::USub; break;
        case Tok::Tilde: op = UnaryOperator::Invert; break;
        default: return power();
    }
    const Descent descent(*this);
    const Mark begin = mark();
    take();
    auto node = std::make_unique<UnaryOp>();
    node->op = op;
    node->operand = factor();
    return placed(std::move(node), begin);
}

ExprPtr Parser::power() {
    const Mark begin = mark();
    ExprPtr base = await_primary();
    if (!accept(Tok::DoubleStar)) {
        return base;
    }
    const Descent descent(*this);
    auto node = std::make_unique<BinOp>();
    node->left = std::move(base);
    node->op = Operator::Pow;
    node->right = factor();
    return placed(std::move(node), begin);
}

ExprPtr Parser::await_primary() {
    const Mark begin = mark();
    if (!accept(Tok::KwAwait)) {
        return primary();
    }
    auto node = std::make_unique<Await>();
    node->value = primary();
    return placed(std::move(node), begin);
}

ExprPtr Parser::lambda() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Lambda>();
    node->args = parameters(Tok::Colon, false);
    expect(Tok::Colon);
    node->body = expression();
    return placed(std::move(node), begin);
}

ExprPtr Parser::yield_expression() {
    const Mark begin = mark();
    take();
    if (accept(Tok::KwFrom)) {
        auto node = std::make_unique<YieldFrom>();
        node->value = expression();
        return placed(std::move(node), begin);
    }
    auto node = std::make_unique<Yield>();
    if (at_expression() || at(Tok::Star)) {
        node->value = star_expressions();
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::starred() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Starred>();
    node->value = bitwise_or();
    return placed(std::move(node), begin);
}

ExprPtr Parser::star_expression() {
    return at(Tok::Star) ? starred() : expression();
}

ExprPtr Parser::star_named_expression() {
    return at(Tok::Star) ? starred() : named_expression();
}

// One expression, or a tuple without parentheses.
ExprPtr Parser::star_expressions() {
    const Mark begin = mark();
    ExprPtr first = star_expression();
    if (!at(Tok::Comma)) {
        return first;
    }
    auto node = std::make_unique<Tuple>();
    node->elts.push_back(std::move(first));
    while (accept(Tok::Comma)) {
        if (!at_expression() && !at(Tok::Star)) break;
        node->elts.push_back(star_expression());
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::yield_or_star_expressions() {
    return at(Tok::KwYield) ? yield_expression() : star_expressions();
}

bool Parser::at_expression() const {
    switch (peek().kind) {
        case Tok::Name:
        case Tok::Number:
        case Tok::String:
        case Tok::FStringStart:
        case Tok::LPar:
        case Tok::LSqb:
        case Tok::LBrace:
        case Tok::Plus:
        case Tok::Minus:
        case Tok::Tilde:
        case Tok::EllipsisDots:
        case Tok::KwNone:
        case Tok::KwTrue:
        case Tok::KwFalse:
        case Tok::KwNot:
        case Tok::KwLambda:
        case Tok::KwAwait: return true;
        default: return false;
    }
}

}  // namespace twinkle::python
