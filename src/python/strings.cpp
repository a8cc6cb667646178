// String literals: adjacent ones joined, f-strings with their replacement fields.
#include "python/literals.h"
#include "python/parser_impl.h"
#include "python/source.h"

namespace twinkle::python {
namespace {

// Source text as Python sees it: every line end is "\n".
std::string with_unix_line_ends(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const auto size = line_end_size(text, i);
        out += size ? '\n' : text[i];
        i += std::max<std::size_t>(size, 1);
    }
    return out;
}

Span place_in(std::string_view source, Span span, std::size_t offset) {
    for (std::size_t i = 0; i < offset;) {
        const auto size = line_end_size(source, span.begin);
        const auto step = static_cast<std::uint32_t>(std::max<std::size_t>(size, 1));
        span.line += size ? 1 : 0;
        span.column = size ? 1 : span.column + 1;
        span.begin += step;
        i += step;
    }
    return span;
}

}  // namespace

ExprPtr Parser::number() {
    return constant(number_value(text(peek())));
}

ExprPtr Parser::strings() {
    if (at(Tok::String) && take_apart(text(peek())).bytes) {
        return bytes_literals();
    }
    const Mark begin = mark();
    StringPieces pieces;
    pieces.begin = begin;
    pieces.u_prefix = text(peek()).starts_with('u');
    bool format = false;
    while (at(Tok::String) || at(Tok::FStringStart)) {
        if (at(Tok::String)) {
            string_literal(pieces);
        } else {
            format = true;
            fstring(pieces);
        }
    }
    if (format) {
        flush_text(pieces);
        auto node = std::make_unique<JoinedStr>();
        node->values = std::move(pieces.values);
        return placed(std::move(node), begin);
    }
    auto node = std::make_unique<Constant>();
    node->value = std::move(pieces.text);
    node->u_prefix = pieces.u_prefix;
    node->has_named_escape = pieces.has_named_escape;
    return placed(std::move(node), begin);
}

void Parser::string_literal(StringPieces& pieces) {
    const Token token = peek();
    const StringToken string = take_apart(text(token));
    if (string.bytes) {
        fail("cannot mix bytes and nonbytes literals");
    }
    const auto error = decode_string(string.body, {string.raw, false, false}, pieces.text,
                                     pieces.has_named_escape);
    if (error) {
        fail(place_in(source_, token.span, string.body_offset + error->offset), error->message);
    }
    take();
}

ExprPtr Parser::bytes_literals() {
    const Mark begin = mark();
    Bytes bytes;
    bool named = false;
    while (at(Tok::String) || at(Tok::FStringStart)) {
        const Token token = peek();
        const StringToken string = at(Tok::String) ? take_apart(text(token)) : StringToken{};
        if (!string.bytes) {
            fail("cannot mix bytes and nonbytes literals");
        }
        const auto error =
            decode_string(string.body, {string.raw, true, false}, bytes.value, named);
        if (error) {
            fail(place_in(source_, token.span, string.body_offset + error->offset), error->message);
        }
        take();
    }
    auto node = std::make_unique<Constant>();
    node->value = std::move(bytes);
    return placed(std::move(node), begin);
}

void Parser::fstring(StringPieces& pieces) {
    const auto prefix = text(take());
    const bool raw = prefix.substr(0, 2).find_first_of("rR") != std::string_view::npos;
    fstring_parts(pieces, raw, Tok::FStringEnd);
    expect(Tok::FStringEnd);
}

// Text and replacement fields up to the token `end`, which is left.
void Parser::fstring_parts(StringPieces& pieces, bool raw, Tok end) {
    while (!at(end)) {
        if (at(Tok::LBrace)) {
            replacement_field(pieces, raw);
            continue;
        }
        const Token token = expect(Tok::FStringMiddle);
        const bool in_spec = end == Tok::RBrace;
        const auto error = decode_string(text(token), {raw, false, !in_spec}, pieces.text,
                                         pieces.has_named_escape);
        if (error) {
            fail(place_in(source_, token.span, error->offset), error->message);
        }
    }
}

void Parser::replacement_field(StringPieces& pieces, bool raw) {
    const Descent descent(*this);
    const Mark begin = mark();
    take();
    if (!at_expression() && !at(Tok::Star) && !at(Tok::KwYield)) {
        if (at(Tok::Error)) fail_unexpected();
        fail("f-string: a valid expression is required before " +
             std::string(token_name(peek().kind)));
    }
    auto node = std::make_unique<FormattedValue>();
    node->value = yield_or_star_expressions();
    const bool debug = accept(Tok::Equal);
    if (debug) {
        const auto from = begin.begin + 1;
        pieces.text += with_unix_line_ends(source_.substr(from, peek().span.begin - from));
    }
    if (at(Tok::Exclamation)) {
        node->conversion = conversion();
    }
    if (accept(Tok::Colon)) {
        node->format_spec = format_spec(pieces, raw);
    }
    if (!at(Tok::RBrace)) {
        if (at(Tok::Error)) fail_unexpected();
        fail("f-string: expecting '}'");
    }
    take();
    if (debug && node->conversion < 0 && !node->format_spec) {
        node->conversion = 'r';
    }
    flush_text(pieces);
    pieces.values.push_back(placed(std::move(node), begin));
    pieces.begin = mark();
}

int Parser::conversion() {
    const Token mark = take();
    const auto letter = text(peek());
    if (!at(Tok::Name) || peek().span.begin != mark.span.end ||
        (letter != "s" && letter != "r" && letter != "a")) {
        fail("f-string: invalid conversion character: expected 's', 'r', or 'a'");
    }
    take();
    return letter[0];
}

ExprPtr Parser::format_spec(const StringPieces& outer, bool raw) {
    StringPieces pieces;
    pieces.begin = mark();
    pieces.u_prefix = outer.u_prefix;
    const Mark begin = mark();
    fstring_parts(pieces, raw, Tok::RBrace);
    flush_text(pieces);
    auto node = std::make_unique<JoinedStr>();
    node->values = std::move(pieces.values);
    return placed(std::move(node), begin);
}

// The text read so far becomes a constant among the values.
void Parser::flush_text(StringPieces& pieces) {
    if (pieces.text.empty()) {
        return;
    }
    auto node = std::make_unique<Constant>();
    node->value = std::move(pieces.text);
    node->u_prefix = pieces.u_prefix;
    node->has_named_escape = pieces.has_named_escape;
    pieces.text.clear();
    pieces.has_named_escape = false;
    pieces.values.push_back(placed(std::move(node), pieces.begin));
}

}  // namespace twinkle::python
