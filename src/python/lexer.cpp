#include "python/lexer_impl.h"

#include "python/source.h"
#include "python/unicode.h"

#include <array>
#include <cstdio>

namespace twinkle::python {
namespace {

struct OperatorText {
    std::string_view text;
    Tok kind;
};

// The longest operator that `text` begins with.
OperatorText match_operator(std::string_view text) {
    static constexpr std::array operators{
#define TWINKLE_X(name, spelling) OperatorText{spelling, Tok::name},
        TWINKLE_PYTHON_OPERATORS(TWINKLE_X)
#undef TWINKLE_X
    };
    OperatorText best{"", Tok::Error};
    for (const auto& candidate : operators) {
        if (candidate.text.size() > best.text.size() && text.starts_with(candidate.text)) {
            best = candidate;
        }
    }
    return best;
}

char opening(Tok close) {
    return close == Tok::RPar ? '(' : close == Tok::RSqb ? '[' : '{';
}

}  // namespace

TokenList tokenize(std::string_view source) {
    return Lexer(source).run();
}

Lexer::Lexer(std::string_view source) : source_(source) {
    pos_.offset = pos_.line_start = byte_order_mark_size(source);
    out_.tokens.reserve(source.size() / 4 + 8);
}

TokenList Lexer::run() {
    try {
        while (!at_end()) {
            if (in_fstring_text()) {
                fstring_text();
            } else if (at_line_begin_ && brackets_.empty()) {
                begin_line();
            } else {
                next_token();
            }
        }
        finish();
    } catch (Stop& stop) {
        out_.error = std::move(stop.message);
        out_.tokens.push_back({Tok::Error, stop.span});
    }
    return std::move(out_);
}

Span Lexer::span_from(const Position& begin) const {
    return {static_cast<std::uint32_t>(begin.offset), static_cast<std::uint32_t>(pos_.offset),
            begin.line, static_cast<std::uint32_t>(begin.offset - begin.line_start + 1)};
}

void Lexer::stop(const Position& begin, std::string message) const {
    stop(span_from(begin), std::move(message));
}

void Lexer::stop(const Span& span, std::string message) const {
    throw Stop{span, std::move(message)};
}

bool Lexer::skip_line_end() {
    const auto size = line_end_size(source_, pos_.offset);
    if (size == 0) {
        return false;
    }
    pos_.offset += size;
    ++pos_.line;
    pos_.line_start = pos_.offset;
    return true;
}

void Lexer::skip_char() {
    if (!skip_line_end()) {
        ++pos_.offset;
    }
}

void Lexer::next_token() {
    skip_spaces_and_comment();
    if (at_end()) {
        return;
    }
    const char c = at();
    if (c == '\n' || c == '\r') {
        end_line();
    } else if (c == '\\') {
        continuation();
    } else if ((c >= '0' && c <= '9') || (c == '.' && at(1) >= '0' && at(1) <= '9')) {
        number();
    } else if (c == '"' || c == '\'') {
        string(Position(pos_));
    } else if (is_identifier_start(decode_utf8(source_, pos_.offset).value)) {
        name_or_string();
    } else {
        operator_token();
    }
}

void Lexer::operator_token() {
    const Position begin = pos_;
    auto [text, kind] = match_operator(source_.substr(pos_.offset, 3));
    if (text.empty()) {
        const CodePoint code = decode_utf8(source_, pos_.offset);
        std::array<char, 48> message{};
        std::snprintf(message.data(), message.size(), "invalid character (U+%04X)",
                      static_cast<unsigned>(code.value));
        pos_.offset += code.size;
        stop(begin, message.data());
    }
    Bracket* field = !brackets_.empty() && brackets_.back().is_field ? &brackets_.back() : nullptr;
    if (field && kind == Tok::ColonEqual) {
        text = ":";
        kind = Tok::Colon;
    }
    if (kind == Tok::Exclamation && !field) {
        stop(begin, "invalid syntax: '!'");
    }
    pos_.offset += text.size();
    switch (kind) {
        case Tok::LPar:
        case Tok::LSqb:
        case Tok::LBrace: brackets_.push_back({text[0], false, false, span_from(begin)}); break;
        case Tok::RPar:
        case Tok::RSqb:
        case Tok::RBrace:
            check_open_bracket(opening(kind), begin);
            brackets_.pop_back();
            break;
        case Tok::Colon:
            if (field) field->in_format_spec = true;
            break;
        default: break;
    }
    if (brackets_.size() > kMaxBrackets) {
        stop(begin, "too many nested parentheses");
    }
    emit(kind, begin);
}

void Lexer::check_open_bracket(char open, const Position& begin) {
    const std::size_t base = fstrings_.empty() ? 0 : fstrings_.back().bracket_base;
    if (brackets_.size() <= base) {
        stop(begin, std::string("unmatched '") + source_[begin.offset] + "'");
    }
    if (brackets_.back().open != open) {
        stop(begin, std::string("closing parenthesis '") + source_[begin.offset] +
                        "' does not match opening parenthesis '" + brackets_.back().open + "'");
    }
}

}  // namespace twinkle::python
