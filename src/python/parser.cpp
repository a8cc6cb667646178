#include "python/parser_impl.h"

#include "python/source.h"

namespace twinkle::python {
namespace {

// Rules may call each other this deep. Brackets (200) and indentation (100) have limits of their
// own; this one is for what nests without either, such as `not not not x`.
constexpr int kMaxDepth = 600;

SyntaxError at_offset(std::string_view source, std::string_view origin, SourceProblem problem) {
    SyntaxError error{std::string(origin), 1, 1, std::move(problem.message)};
    std::size_t line_start = byte_order_mark_size(source);
    for (std::size_t i = line_start; i < problem.offset;) {
        const auto size = line_end_size(source, i);
        if (size > 0) {
            ++error.line;
            line_start = i + size;
        }
        i += std::max<std::size_t>(size, 1);
    }
    if (problem.offset >= line_start) {
        error.column = static_cast<std::uint32_t>(problem.offset - line_start + 1);
    }
    return error;
}

}  // namespace

std::string SyntaxError::where() const {
    return origin + ":" + std::to_string(line) + ":" + std::to_string(column);
}

ParseResult parse_module(std::string_view source, std::string_view origin) {
    if (auto problem = check_source(source)) {
        return tl::unexpected(at_offset(source, origin, std::move(*problem)));
    }
    try {
        return Parser(source, tokenize(source)).module();
    } catch (Parser::Failure& failure) {
        return tl::unexpected(SyntaxError{std::string(origin), failure.line, failure.column,
                                          std::move(failure.message)});
    }
}

Parser::Parser(std::string_view source, TokenList tokens)
    : source_(source), tokens_(std::move(tokens.tokens)), lexer_error_(std::move(tokens.error)) {}

std::unique_ptr<Module> Parser::module() {
    auto module = std::make_unique<Module>();
    const Mark begin = mark();
    while (!at(Tok::EndOfFile)) {
        statement(module->body);
    }
    place(*module, begin);
    return module;
}

Parser::Descent::Descent(Parser& parser) : parser_(parser) {
    if (parser_.depth_ >= kMaxDepth) {
        parser_.fail("too deeply nested");
    }
    ++parser_.depth_;
}

bool Parser::at_soft_keyword(std::string_view word) const {
    return at(Tok::Name) && text(peek()) == word;
}

std::string_view Parser::text(const Token& token) const {
    return source_.substr(token.span.begin, token.span.end - token.span.begin);
}

Token Parser::take() {
    const Token token = peek();
    if (token.kind == Tok::Error || token.kind == Tok::EndOfFile) {
        fail_unexpected();
    }
    ++index_;
    if (token.kind != Tok::Newline && token.kind != Tok::Indent && token.kind != Tok::Dedent) {
        last_end_ = token.span.end;
    }
    return token;
}

bool Parser::accept(Tok kind) {
    if (!at(kind)) {
        return false;
    }
    take();
    return true;
}

Token Parser::expect(Tok kind) {
    if (!at(kind)) {
        if (at(Tok::Error)) fail_unexpected();
        fail("expected " + std::string(token_name(kind)) + ", found " +
             std::string(token_name(peek().kind)));
    }
    return take();
}

std::string Parser::expect_name() {
    return std::string(text(expect(Tok::Name)));
}

void Parser::fail(std::string message) const {
    fail(peek().span, std::move(message));
}

void Parser::fail(const Span& span, std::string message) const {
    throw Failure{span.line, span.column, std::move(message)};
}

void Parser::fail_unexpected() const {
    if (at(Tok::Error)) {
        fail(lexer_error_);
    }
    if (at(Tok::Indent)) {
        fail("unexpected indent");
    }
    fail("invalid syntax: unexpected " + std::string(token_name(peek().kind)));
}

}  // namespace twinkle::python
