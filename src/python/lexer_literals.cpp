// Names, numbers, strings and the pieces of f-strings.
#include "python/lexer_impl.h"

#include "python/source.h"
#include "python/unicode.h"

#include <algorithm>
#include <cctype>

namespace twinkle::python {
namespace {

bool is_decimal(char c) {
    return c >= '0' && c <= '9';
}
bool is_binary(char c) {
    return c == '0' || c == '1';
}
bool is_octal(char c) {
    return c >= '0' && c <= '7';
}
bool is_hexadecimal(char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

struct Prefix {
    bool valid = false;
    bool raw = false;
    bool format = false;
};

Prefix string_prefix(std::string_view text) {
    if (text.size() > 2) {
        return {};
    }
    int r = 0, b = 0, u = 0, f = 0;
    for (const char c : text) {
        switch (std::tolower(static_cast<unsigned char>(c))) {
            case 'r': ++r; break;
            case 'b': ++b; break;
            case 'u': ++u; break;
            case 'f': ++f; break;
            default: return {};
        }
    }
    const bool valid = r <= 1 && b + u + f <= 1 && !(u && r);
    return {valid, r > 0, f > 0};
}

}  // namespace

void Lexer::name_or_string() {
    const Position begin = pos_;
    bool stable = true;
    while (!at_end()) {
        const CodePoint code = decode_utf8(source_, pos_.offset);
        if (!is_identifier_continue(code.value)) {
            break;
        }
        stable = stable && is_normalization_stable(code.value);
        pos_.offset += code.size;
    }
    const auto word = source_.substr(begin.offset, pos_.offset - begin.offset);
    if ((at() == '"' || at() == '\'') && string_prefix(word).valid) {
        if (string_prefix(word).format) {
            begin_fstring(begin, string_prefix(word).raw);
        } else {
            string(begin);
        }
        return;
    }
    if (!stable) {
        // Python would compare another spelling than the one that is read here.
        stop(begin, "identifier is not in Unicode normalization form NFKC");
    }
    emit(keyword(word), begin);
}

bool Lexer::at_quotes(char quote, bool triple) const {
    return at() == quote && (!triple || (at(1) == quote && at(2) == quote));
}

void Lexer::string(const Position& begin) {
    const char quote = at();
    const bool triple = at_quotes(quote, true);
    pos_.offset += triple ? 3 : 1;
    const Span opening = span_from(begin);
    while (!at_quotes(quote, triple)) {
        if (at_end() || (!triple && (at() == '\n' || at() == '\r'))) {
            stop(opening, triple ? "unterminated triple-quoted string literal"
                                 : "unterminated string literal");
        }
        if (at() == '\\') {
            ++pos_.offset;
            if (at_end()) {
                continue;
            }
        }
        skip_char();
    }
    pos_.offset += triple ? 3 : 1;
    emit(Tok::String, begin);
}

void Lexer::begin_fstring(const Position& begin, bool raw) {
    FString string;
    string.quote = at();
    string.triple = at_quotes(string.quote, true);
    string.raw = raw;
    string.bracket_base = brackets_.size();
    pos_.offset += string.triple ? 3 : 1;
    string.start = span_from(begin);
    if (fstrings_.size() >= kMaxBrackets) {
        stop(begin, "too many nested f-strings");
    }
    fstrings_.push_back(string);
    emit(Tok::FStringStart, begin);
}

bool Lexer::in_fstring_text() const {
    if (fstrings_.empty()) {
        return false;
    }
    const bool at_base = brackets_.size() == fstrings_.back().bracket_base;
    return at_base || brackets_.back().in_format_spec;
}

// The text up to the next replacement field, the end of the format specification or of the string,
// and that delimiter.
void Lexer::fstring_text() {
    const FString string = fstrings_.back();
    const bool in_spec = brackets_.size() > string.bracket_base;
    const Position begin = pos_;
    const auto end_text = [&] {
        if (pos_.offset > begin.offset) {
            emit(Tok::FStringMiddle, begin);
        }
        return pos_;
    };
    while (!at_end()) {
        const char c = at();
        if (at_quotes(string.quote, string.triple)) {
            if (in_spec) {
                stop(pos_, "f-string: expecting '}'");
            }
            const Position end = end_text();
            pos_.offset += string.triple ? 3 : 1;
            emit(Tok::FStringEnd, end);
            fstrings_.pop_back();
            return;
        }
        if (!string.triple && (c == '\n' || c == '\r')) {
            break;
        }
        if ((c == '{' || c == '}') && at(1) == c && !in_spec) {
            pos_.offset += 2;
        } else if (c == '{') {
            const Position open = end_text();
            ++pos_.offset;
            brackets_.push_back({'{', true, false, span_from(open)});
            if (brackets_.size() > kMaxBrackets) {
                stop(open, "too many nested parentheses");
            }
            emit(Tok::LBrace, open);
            return;
        } else if (c == '}') {
            const Position close = end_text();
            ++pos_.offset;
            if (!in_spec) {
                stop(close, "f-string: single '}' is not allowed");
            }
            brackets_.pop_back();
            emit(Tok::RBrace, close);
            return;
        } else if (c == '\\' && at(1) != '{' && at(1) != '}') {
            const bool named = !string.raw && at(1) == 'N' && at(2) == '{';
            ++pos_.offset;
            if (named) {
                pos_.offset = std::min(source_.find_first_of("}\r\n", pos_.offset), source_.size());
            }
            if (!at_end()) skip_char();
        } else {
            skip_char();
        }
    }
    check_fstring_end(string);
}

void Lexer::check_fstring_end(const FString& string) {
    stop(string.start, string.triple ? "unterminated triple-quoted f-string literal"
                                     : "unterminated f-string literal");
}

void Lexer::number() {
    const Position begin = pos_;
    const char second = static_cast<char>(std::tolower(static_cast<unsigned char>(at(1))));
    if (at() != '0') {
        decimal_number(begin);
    } else if (second == 'x') {
        prefixed_number(begin, is_hexadecimal, "hexadecimal");
    } else if (second == 'o') {
        prefixed_number(begin, is_octal, "octal");
    } else if (second == 'b') {
        prefixed_number(begin, is_binary, "binary");
    } else {
        decimal_number(begin);
    }
    emit(Tok::Number, begin);
}

// Digits with single underscores between them.
void Lexer::digits(const Position& begin, bool (*is_digit)(char)) {
    for (;;) {
        while (is_digit(at())) ++pos_.offset;
        if (at() != '_') {
            return;
        }
        ++pos_.offset;
        if (!is_digit(at())) {
            stop(begin, "invalid number: '_' must be followed by a digit");
        }
    }
}

void Lexer::prefixed_number(const Position& begin, bool (*is_digit)(char), std::string_view what) {
    pos_.offset += 2;
    if (at() == '_') ++pos_.offset;
    if (!is_digit(at())) {
        stop(begin, "invalid " + std::string(what) + " literal");
    }
    digits(begin, is_digit);
    if (is_decimal(at())) {
        stop(begin, "invalid digit in " + std::string(what) + " literal");
    }
    check_after_number(begin, what);
}

void Lexer::decimal_number(const Position& begin) {
    digits(begin, is_decimal);
    const auto whole = source_.substr(begin.offset, pos_.offset - begin.offset);
    const bool leading_zero = whole.size() > 1 && whole[0] == '0' &&
                              whole.find_first_not_of("0_") != std::string_view::npos;
    bool integer = true;
    if (at() == '.') {
        integer = false;
        ++pos_.offset;
        if (is_decimal(at())) digits(begin, is_decimal);
    }
    if (at() == 'e' || at() == 'E') {
        const std::size_t sign = at(1) == '+' || at(1) == '-' ? 1 : 0;
        if (is_decimal(at(1 + sign))) {
            integer = false;
            pos_.offset += 1 + sign;
            digits(begin, is_decimal);
        }
    }
    if (at() == 'j' || at() == 'J') {
        integer = false;
        ++pos_.offset;
    }
    if (integer && leading_zero) {
        stop(begin, "leading zeros in decimal integer literals are not permitted");
    }
    check_after_number(begin, "decimal");
}

// A number may run into a keyword (`1if x else y`), but into no other name.
void Lexer::check_after_number(const Position& begin, std::string_view what) {
    const auto rest = source_.substr(pos_.offset, 5);
    for (const std::string_view word : {"and", "else", "for", "if", "in", "is", "or", "not"}) {
        if (rest.starts_with(word)) {
            return;
        }
    }
    if (!at_end() && is_identifier_continue(decode_utf8(source_, pos_.offset).value)) {
        stop(begin, "invalid " + std::string(what) + " literal");
    }
}

}  // namespace twinkle::python
