// match statements: soft keywords and patterns.
#include "python/parser_impl.h"

namespace twinkle::python {

// `match` is a name unless its line ends with a colon and an indented `case` follows; no other
// statement that begins with a name looks like that.
bool Parser::at_match_statement() const {
    if (!at_soft_keyword("match")) {
        return false;
    }
    switch (peek(1).kind) {
        case Tok::Newline:
        case Tok::Equal:
        case Tok::Dot:
        case Tok::Comma:
        case Tok::Colon: return false;
        default: break;
    }
    std::size_t i = 1;
    while (peek(i).kind != Tok::Newline) {
        if (peek(i).kind == Tok::Error || peek(i).kind == Tok::EndOfFile) {
            return false;
        }
        ++i;
    }
    return peek(i - 1).kind == Tok::Colon && peek(i + 1).kind == Tok::Indent &&
           peek(i + 2).kind == Tok::Name && text(peek(i + 2)) == "case";
}

StmtPtr Parser::match_statement() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<Match>();
    node->subject = match_subject();
    expect(Tok::Colon);
    expect(Tok::Newline);
    expect(Tok::Indent);
    while (!accept(Tok::Dedent)) {
        node->cases.push_back(match_case());
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::match_subject() {
    const Mark begin = mark();
    ExprPtr first = star_named_expression();
    if (!at(Tok::Comma)) {
        if (as<Starred>(first)) {
            fail_unexpected();
        }
        return first;
    }
    auto node = std::make_unique<Tuple>();
    node->elts.push_back(std::move(first));
    while (accept(Tok::Comma) && !at(Tok::Colon)) {
        node->elts.push_back(star_named_expression());
    }
    return placed(std::move(node), begin);
}

MatchCase Parser::match_case() {
    const Mark begin = mark();
    if (!at_soft_keyword("case")) {
        fail_unexpected();
    }
    take();
    MatchCase node;
    node.pattern = open_pattern();
    if (accept(Tok::KwIf)) {
        node.guard = named_expression();
    }
    node.body = block("'case' statement", begin);
    place(node, begin);
    return node;
}

// A pattern, or a sequence without brackets.
PatternPtr Parser::open_pattern() {
    const Mark begin = mark();
    const bool star = at(Tok::Star);
    PatternPtr first = maybe_star_pattern();
    if (!at(Tok::Comma)) {
        if (star) fail_unexpected();
        return first;
    }
    auto node = std::make_unique<MatchSequence>();
    node->patterns.push_back(std::move(first));
    while (accept(Tok::Comma) && !at(Tok::Colon) && !at(Tok::KwIf)) {
        node->patterns.push_back(maybe_star_pattern());
    }
    return placed(std::move(node), begin);
}

PatternPtr Parser::maybe_star_pattern() {
    const Mark begin = mark();
    if (!accept(Tok::Star)) {
        return as_pattern();
    }
    auto node = std::make_unique<MatchStar>();
    node->name = expect_name();
    if (node->name == "_") node->name.clear();
    return placed(std::move(node), begin);
}

PatternPtr Parser::as_pattern() {
    const Descent descent(*this);
    const Mark begin = mark();
    PatternPtr pattern = or_pattern();
    if (!accept(Tok::KwAs)) {
        return pattern;
    }
    auto node = std::make_unique<MatchAs>();
    node->pattern = std::move(pattern);
    if (at_soft_keyword("_")) {
        fail("cannot use '_' as a target");
    }
    node->name = expect_name();
    if (at(Tok::Dot) || at(Tok::LPar)) {
        fail("invalid pattern target");
    }
    return placed(std::move(node), begin);
}

PatternPtr Parser::or_pattern() {
    const Mark begin = mark();
    PatternPtr first = closed_pattern();
    if (!at(Tok::VBar)) {
        return first;
    }
    auto node = std::make_unique<MatchOr>();
    node->patterns.push_back(std::move(first));
    while (accept(Tok::VBar)) {
        node->patterns.push_back(closed_pattern());
    }
    return placed(std::move(node), begin);
}

PatternPtr Parser::closed_pattern() {
    switch (peek().kind) {
        case Tok::KwNone: return singleton_pattern(None{});
        case Tok::KwTrue: return singleton_pattern(true);
        case Tok::KwFalse: return singleton_pattern(false);
        case Tok::Number:
        case Tok::Minus:
        case Tok::String:
        case Tok::FStringStart: return literal_pattern();
        case Tok::Name: return name_or_value_pattern();
        case Tok::LPar: return sequence_or_group(Tok::RPar);
        case Tok::LSqb: return sequence_or_group(Tok::RSqb);
        case Tok::LBrace: return mapping_pattern();
        default: fail_unexpected();
    }
}

PatternPtr Parser::singleton_pattern(ConstantValue value) {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<MatchSingleton>();
    node->value = std::move(value);
    return placed(std::move(node), begin);
}

PatternPtr Parser::literal_pattern() {
    const Mark begin = mark();
    auto node = std::make_unique<MatchValue>();
    node->value = literal_expression();
    return placed(std::move(node), begin);
}

ExprPtr Parser::literal_expression() {
    const Mark begin = mark();
    if (at(Tok::String) || at(Tok::FStringStart)) {
        ExprPtr value = strings();
        if (as<JoinedStr>(value)) {
            fail(begin, "patterns may only match literals and attribute lookups");
        }
        return value;
    }
    ExprPtr real = signed_number();
    if (!at(Tok::Plus) && !at(Tok::Minus)) {
        return real;
    }
    auto node = std::make_unique<BinOp>();
    node->left = std::move(real);
    node->op = take().kind == Tok::Plus ? Operator::Add : Operator::Sub;
    if (!at(Tok::Number)) {
        fail_unexpected();
    }
    const Mark imaginary_begin = mark();
    node->right = number();
    if (!std::holds_alternative<Imaginary>(as<Constant>(node->right)->value)) {
        fail(imaginary_begin, "imaginary number required in complex literal");
    }
    return placed(std::move(node), begin);
}

ExprPtr Parser::signed_number() {
    const Mark begin = mark();
    const bool minus = accept(Tok::Minus);
    if (!at(Tok::Number)) {
        fail_unexpected();
    }
    ExprPtr value = number();
    if (!minus) {
        return value;
    }
    auto node = std::make_unique<UnaryOp>();
    node->op = UnaryOperator::USub;
    node->operand = std::move(value);
    return placed(std::move(node), begin);
}

// A name captures, `_` matches all, a dotted name is a value, and with a parenthesis it is a class.
PatternPtr Parser::name_or_value_pattern() {
    const Mark begin = mark();
    ExprPtr value = name();
    while (accept(Tok::Dot)) {
        auto node = std::make_unique<Attribute>();
        node->value = std::move(value);
        node->attr = expect_name();
        value = placed(std::move(node), begin);
    }
    if (at(Tok::LPar)) {
        return class_pattern(std::move(value), begin);
    }
    if (const auto* captured = as<Name>(value)) {
        auto node = std::make_unique<MatchAs>();
        node->name = captured->id == "_" ? "" : captured->id;
        return placed(std::move(node), begin);
    }
    auto node = std::make_unique<MatchValue>();
    node->value = std::move(value);
    return placed(std::move(node), begin);
}

PatternPtr Parser::class_pattern(ExprPtr cls, const Mark& begin) {
    take();
    auto node = std::make_unique<MatchClass>();
    node->cls = std::move(cls);
    while (!at(Tok::RPar)) {
        if (at(Tok::Name) && at_next(Tok::Equal)) {
            node->kwd_attrs.push_back(expect_name());
            take();
            node->kwd_patterns.push_back(as_pattern());
        } else if (!node->kwd_attrs.empty()) {
            fail("positional patterns follow keyword patterns");
        } else {
            node->patterns.push_back(as_pattern());
        }
        if (!accept(Tok::Comma)) break;
    }
    expect(Tok::RPar);
    return placed(std::move(node), begin);
}

// In parentheses, one pattern without a comma is a group and stays as it is.
PatternPtr Parser::sequence_or_group(Tok close) {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<MatchSequence>();
    bool comma = close == Tok::RSqb || at(close);
    bool star = false;
    while (!at(close)) {
        star = star || at(Tok::Star);
        node->patterns.push_back(maybe_star_pattern());
        if (!accept(Tok::Comma)) break;
        comma = true;
    }
    if (!comma && star) {
        fail_unexpected();
    }
    expect(close);
    if (!comma) {
        return std::move(node->patterns[0]);
    }
    return placed(std::move(node), begin);
}

PatternPtr Parser::mapping_pattern() {
    const Mark begin = mark();
    take();
    auto node = std::make_unique<MatchMapping>();
    while (!at(Tok::RBrace)) {
        if (accept(Tok::DoubleStar)) {
            if (at_soft_keyword("_")) fail_unexpected();
            node->rest = expect_name();
            accept(Tok::Comma);
            break;
        }
        if (at(Tok::KwNone) || at(Tok::KwTrue) || at(Tok::KwFalse)) {
            node->keys.push_back(atom());
        } else if (at(Tok::Name)) {
            const Mark key_begin = mark();
            ExprPtr key = name();
            if (!at(Tok::Dot)) fail_unexpected();
            while (accept(Tok::Dot)) {
                auto attribute = std::make_unique<Attribute>();
                attribute->value = std::move(key);
                attribute->attr = expect_name();
                key = placed(std::move(attribute), key_begin);
            }
            node->keys.push_back(std::move(key));
        } else {
            node->keys.push_back(literal_expression());
        }
        expect(Tok::Colon);
        node->patterns.push_back(as_pattern());
        if (!accept(Tok::Comma)) break;
    }
    expect(Tok::RBrace);
    return placed(std::move(node), begin);
}

}  // namespace twinkle::python
