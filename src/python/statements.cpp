// Statements with blocks, except definitions and match.
#include "python/parser_impl.h"

namespace twinkle::python {

void Parser::statement(Block& block) {
    const Descent descent(*this);
    if (StmtPtr compound = compound_statement()) {
        block.push_back(std::move(compound));
    } else {
        simple_statements(block);
    }
}

// Null if no compound statement begins here.
StmtPtr Parser::compound_statement() {
    switch (peek().kind) {
        case Tok::KwIf: return if_statement();
        case Tok::KwWhile: return while_statement();
        case Tok::KwFor: return for_statement<For>(mark());
        case Tok::KwTry: return try_statement();
        case Tok::KwWith: return with_statement<With>(mark());
        case Tok::KwAsync: return async_statement();
        case Tok::At: return decorated();
        case Tok::KwDef:
        case Tok::KwClass: return function_or_class({});
        default: return at_match_statement() ? match_statement() : nullptr;
    }
}

// The colon and what it introduces: indented lines, or simple statements on the same line.
Block Parser::block(std::string_view what, const Span& header) {
    expect(Tok::Colon);
    Block body;
    if (!accept(Tok::Newline)) {
        simple_statements(body);
        return body;
    }
    if (!at(Tok::Indent)) {
        if (at(Tok::Error)) fail_unexpected();
        fail("expected an indented block after " + std::string(what) + " on line " +
             std::to_string(header.line));
    }
    take();
    while (!accept(Tok::Dedent)) {
        statement(body);
    }
    return body;
}

Block Parser::else_block() {
    const Mark begin = mark();
    return accept(Tok::KwElse) ? block("'else' statement", begin) : Block{};
}

// Each elif is an If in the orelse of the one before; they are collected in a row first, because a
// long chain must not be a deep recursion.
StmtPtr Parser::if_statement() {
    std::vector<std::pair<std::unique_ptr<If>, Mark>> chain;
    do {
        const Mark begin = mark();
        take();
        auto node = std::make_unique<If>();
        node->test = named_expression();
        node->body = block("'if' statement", begin);
        chain.emplace_back(std::move(node), begin);
    } while (at(Tok::KwElif));
    chain.back().first->orelse = else_block();
    StmtPtr last;
    for (; !chain.empty(); chain.pop_back()) {
        auto& [node, begin] = chain.back();
        if (last) {
            node->orelse.push_back(std::move(last));
        }
        last = placed(std::move(node), begin);
    }
    return last;
}

StmtPtr Parser::while_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<While>();
    node->test = named_expression();
    node->body = block("'while' statement", begin);
    node->orelse = else_block();
    return placed(std::move(node), begin);
}

StmtPtr Parser::async_statement() {
    const Mark begin = mark();
    if (at_next(Tok::KwDef)) {
        return function_or_class({});
    }
    take();
    if (at(Tok::KwFor)) {
        return for_statement<AsyncFor>(begin);
    }
    if (at(Tok::KwWith)) {
        return with_statement<AsyncWith>(begin);
    }
    fail_unexpected();
}

template <class T>
StmtPtr Parser::for_statement(const Mark& begin) {
    take();
    auto node = std::make_unique<T>();
    node->target = star_targets(Tok::KwIn);
    expect(Tok::KwIn);
    node->iter = star_expressions();
    node->body = block("'for' statement", begin);
    node->orelse = else_block();
    return placed(std::move(node), begin);
}

template <class T>
StmtPtr Parser::with_statement(const Mark& begin) {
    take();
    auto node = std::make_unique<T>();
    node->items = with_items();
    node->body = block("'with' statement", begin);
    return placed(std::move(node), begin);
}

// `with (a as b, c):` may also begin an ordinary expression, `with (a, b)[0]:` or `with (yield):`.
// If the parenthesis ends where the header does, it is read as a list of items, and as an
// expression if that fails.
std::vector<WithItem> Parser::with_items() {
    std::vector<WithItem> items;
    if (at_parenthesized_with_items()) {
        const std::size_t index = index_;
        const std::uint32_t last_end = last_end_;
        const int depth = depth_;
        try {
            take();
            do {
                items.push_back(with_item());
            } while (accept(Tok::Comma) && !at(Tok::RPar));
            expect(Tok::RPar);
            return items;
        } catch (const Failure&) {
            items.clear();
            index_ = index;
            last_end_ = last_end;
            depth_ = depth;
        }
    }
    do {
        items.push_back(with_item());
    } while (accept(Tok::Comma));
    return items;
}

bool Parser::at_parenthesized_with_items() const {
    if (!at(Tok::LPar)) {
        return false;
    }
    std::size_t open = 0;
    for (std::size_t i = 0; index_ + i < tokens_.size(); ++i) {
        switch (peek(i).kind) {
            case Tok::LPar:
            case Tok::LSqb:
            case Tok::LBrace: ++open; break;
            case Tok::RPar:
            case Tok::RSqb:
            case Tok::RBrace:
                if (--open == 0) return peek(i + 1).kind == Tok::Colon;
                break;
            default: break;
        }
    }
    return false;
}

WithItem Parser::with_item() {
    const Mark begin = mark();
    WithItem item;
    item.context_expr = expression();
    if (accept(Tok::KwAs)) {
        item.optional_vars = at(Tok::Star) ? starred() : bitwise_or();
        set_context(*item.optional_vars, ExprContext::Store);
    }
    place(item, begin);
    return item;
}

StmtPtr Parser::try_statement() {
    const Mark begin = mark();
    take();
    Block body = block("'try' statement", begin);
    const bool star = at(Tok::KwExcept) && at_next(Tok::Star);
    return star ? try_rest<TryStar>(std::move(body), begin) : try_rest<Try>(std::move(body), begin);
}

template <class T>
StmtPtr Parser::try_rest(Block body, const Mark& begin) {
    auto node = std::make_unique<T>();
    node->body = std::move(body);
    while (at(Tok::KwExcept)) {
        node->handlers.push_back(except_handler(T::kKind == NodeKind::TryStar));
    }
    if (!node->handlers.empty()) {
        node->orelse = else_block();
    }
    const Mark final_begin = mark();
    if (accept(Tok::KwFinally)) {
        node->finalbody = block("'finally' statement", final_begin);
    }
    if (node->handlers.empty() && node->finalbody.empty()) {
        if (at(Tok::Error)) fail_unexpected();
        fail("expected 'except' or 'finally' block");
    }
    return placed(std::move(node), begin);
}

ExceptHandler Parser::except_handler(bool star) {
    const Mark begin = mark();
    take();
    if (accept(Tok::Star) != star) {
        fail(begin, "cannot have both 'except' and 'except*' on the same 'try'");
    }
    ExceptHandler handler;
    if (!at(Tok::Colon)) {
        handler.type = expression();
        if (at(Tok::Comma)) {
            fail(handler.type->span, "multiple exception types must be parenthesized");
        }
        if (accept(Tok::KwAs)) {
            handler.name = expect_name();
        }
    } else if (star) {
        fail("expected one or more exception types");
    }
    handler.body = block(star ? "'except*' statement" : "'except' statement", begin);
    place(handler, begin);
    return handler;
}

}  // namespace twinkle::python
