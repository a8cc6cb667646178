// Statements that fit on one line.
#include "python/parser_impl.h"

#include <optional>

namespace twinkle::python {
namespace {

std::optional<Operator> augmented_operator(Tok kind) {
    switch (kind) {
        case Tok::PlusEqual: return Operator::Add;
        case Tok::MinusEqual: return Operator::Sub;
        case Tok::StarEqual: return Operator::Mult;
        case Tok::AtEqual: return Operator::MatMult;
        case Tok::SlashEqual: return Operator::Div;
        case Tok::PercentEqual: return Operator::Mod;
        case Tok::AmperEqual: return Operator::BitAnd;
        case Tok::VBarEqual: return Operator::BitOr;
        case Tok::CircumflexEqual: return Operator::BitXor;
        case Tok::LeftShiftEqual: return Operator::LShift;
        case Tok::RightShiftEqual: return Operator::RShift;
        case Tok::DoubleStarEqual: return Operator::Pow;
        case Tok::DoubleSlashEqual: return Operator::FloorDiv;
        default: return std::nullopt;
    }
}

bool is_single_target(const Expr& target) {
    return target.kind == NodeKind::Name || target.kind == NodeKind::Attribute ||
           target.kind == NodeKind::Subscript;
}

}  // namespace

// A line: statements between semicolons.
void Parser::simple_statements(Block& block) {
    do {
        block.push_back(simple_statement());
    } while (accept(Tok::Semi) && !at(Tok::Newline));
    if (!at(Tok::Newline)) {
        fail_unexpected();
    }
    take();
}

StmtPtr Parser::simple_statement() {
    switch (peek().kind) {
        case Tok::KwReturn: return return_statement();
        case Tok::KwRaise: return raise_statement();
        case Tok::KwDel: return delete_statement();
        case Tok::KwAssert: return assert_statement();
        case Tok::KwImport: return import_statement();
        case Tok::KwFrom: return import_from_statement();
        case Tok::KwGlobal: return scope_statement<Global>();
        case Tok::KwNonlocal: return scope_statement<Nonlocal>();
        case Tok::KwPass: return bare_statement<Pass>();
        case Tok::KwBreak: return bare_statement<Break>();
        case Tok::KwContinue: return bare_statement<Continue>();
        default: break;
    }
    // `type` is a name unless another name follows: no expression reads `type X`.
    if (at_soft_keyword("type") && at_next(Tok::Name)) {
        return type_alias();
    }
    return expression_statement();
}

StmtPtr Parser::expression_statement() {
    const Mark begin = mark();
    ExprPtr value = yield_or_star_expressions();
    if (at(Tok::Equal)) {
        return assignment(std::move(value), begin);
    }
    if (at(Tok::Colon)) {
        return annotated_assignment(std::move(value), begin);
    }
    if (const auto op = augmented_operator(peek().kind)) {
        if (!is_single_target(*value)) {
            fail(begin, "illegal expression for augmented assignment");
        }
        take();
        auto node = std::make_unique<AugAssign>();
        set_context(*value, ExprContext::Store);
        node->target = std::move(value);
        node->op = *op;
        node->value = yield_or_star_expressions();
        return placed(std::move(node), begin);
    }
    auto node = std::make_unique<ExprStmt>();
    node->value = std::move(value);
    return placed(std::move(node), begin);
}

StmtPtr Parser::assignment(ExprPtr first, const Mark& begin) {
    auto node = std::make_unique<Assign>();
    ExprPtr value = std::move(first);
    while (accept(Tok::Equal)) {
        set_context(*value, ExprContext::Store);
        node->targets.push_back(std::move(value));
        value = yield_or_star_expressions();
    }
    node->value = std::move(value);
    return placed(std::move(node), begin);
}

StmtPtr Parser::annotated_assignment(ExprPtr target, const Mark& begin) {
    if (!is_single_target(*target)) {
        fail_unexpected();
    }
    auto node = std::make_unique<AnnAssign>();
    node->simple = as<Name>(target) != nullptr && source_[begin.begin] != '(';
    set_context(*target, ExprContext::Store);
    node->target = std::move(target);
    take();
    node->annotation = expression();
    if (accept(Tok::Equal)) {
        node->value = yield_or_star_expressions();
    }
    return placed(std::move(node), begin);
}

StmtPtr Parser::return_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Return>();
    if (at_expression() || at(Tok::Star)) {
        node->value = star_expressions();
    }
    return placed(std::move(node), begin);
}

StmtPtr Parser::raise_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Raise>();
    if (at_expression()) {
        node->exc = expression();
        if (accept(Tok::KwFrom)) {
            node->cause = expression();
        }
    }
    return placed(std::move(node), begin);
}

StmtPtr Parser::delete_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Delete>();
    do {
        ExprPtr target = bitwise_or();
        set_context(*target, ExprContext::Del);
        node->targets.push_back(std::move(target));
    } while (accept(Tok::Comma) && !at(Tok::Newline) && !at(Tok::Semi));
    return placed(std::move(node), begin);
}

StmtPtr Parser::assert_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Assert>();
    node->test = expression();
    if (accept(Tok::Comma)) {
        node->msg = expression();
    }
    return placed(std::move(node), begin);
}

std::string Parser::dotted_name() {
    std::string name = expect_name();
    while (accept(Tok::Dot)) {
        name += '.';
        name += expect_name();
    }
    return name;
}

StmtPtr Parser::import_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Import>();
    do {
        const Mark alias_begin = mark();
        Alias alias;
        alias.name = dotted_name();
        if (accept(Tok::KwAs)) alias.asname = expect_name();
        place(alias, alias_begin);
        node->names.push_back(std::move(alias));
    } while (accept(Tok::Comma));
    return placed(std::move(node), begin);
}

StmtPtr Parser::import_from_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<ImportFrom>();
    for (; at(Tok::Dot) || at(Tok::EllipsisDots); take()) {
        node->level += at(Tok::Dot) ? 1 : 3;
    }
    if (node->level == 0 || at(Tok::Name)) {
        node->module = dotted_name();
    }
    expect(Tok::KwImport);
    const bool star = at(Tok::Star);
    const bool parenthesized = !star && accept(Tok::LPar);
    do {
        if (parenthesized && at(Tok::RPar) && !node->names.empty()) {
            break;
        }
        const Mark alias_begin = mark();
        Alias alias;
        alias.name = star ? std::string(text(take())) : expect_name();
        if (!star && accept(Tok::KwAs)) alias.asname = expect_name();
        place(alias, alias_begin);
        node->names.push_back(std::move(alias));
    } while (!star && accept(Tok::Comma));
    if (parenthesized) {
        expect(Tok::RPar);
    }
    return placed(std::move(node), begin);
}

StmtPtr Parser::type_alias() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<TypeAlias>();
    node->name = name();
    set_context(*node->name, ExprContext::Store);
    node->type_params = type_params();
    expect(Tok::Equal);
    node->value = expression();
    return placed(std::move(node), begin);
}

template <class T>
StmtPtr Parser::scope_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<T>();
    do {
        node->names.push_back(expect_name());
    } while (accept(Tok::Comma));
    return placed(std::move(node), begin);
}

template <class T>
StmtPtr Parser::bare_statement() {
    const Mark begin = mark();
    take();
    return placed(std::make_unique<T>(), begin);
}

}  // namespace twinkle::python
