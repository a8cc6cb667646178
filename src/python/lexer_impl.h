#pragma once
// The state of the lexer; its parts are in lexer.cpp, lexer_lines.cpp and lexer_literals.cpp.

#include "python/lexer.h"

#include <string>
#include <string_view>
#include <vector>

namespace twinkle::python {

class Lexer {
public:
    explicit Lexer(std::string_view source);
    TokenList run();

private:
    // Thrown to stop; run() turns it into the Error token.
    struct Stop {
        Span span;
        std::string message;
    };
    struct Position {
        std::size_t offset = 0;
        std::uint32_t line = 1;
        std::size_t line_start = 0;
    };
    struct Bracket {
        char open = '(';
        bool is_field = false;        // the { of a replacement field of an f-string
        bool in_format_spec = false;  // after the colon of that field
        Span span;
    };
    struct FString {
        char quote = '"';
        bool triple = false;
        bool raw = false;
        std::size_t bracket_base = 0;  // brackets open where the string begins
        Span start;
    };

    char at(std::size_t ahead = 0) const {
        return pos_.offset + ahead < source_.size() ? source_[pos_.offset + ahead] : '\0';
    }
    bool at_end() const { return pos_.offset >= source_.size(); }
    Span span_from(const Position& begin) const;
    void emit(Tok kind, const Position& begin) { out_.tokens.push_back({kind, span_from(begin)}); }
    [[noreturn]] void stop(const Position& begin, std::string message) const;
    [[noreturn]] void stop(const Span& span, std::string message) const;
    bool skip_line_end();  // moves over LF, CR LF or CR
    void skip_char();      // moves over one byte or line end, within strings

    void next_token();
    void operator_token();
    void check_open_bracket(char close, const Position& begin);

    // lexer_lines.cpp
    void begin_line();
    void indent(std::size_t column, std::size_t tabless_column);
    void end_line();
    void finish();
    void continuation();
    void skip_spaces_and_comment();

    // lexer_literals.cpp
    void name_or_string();
    void string(const Position& begin);
    void begin_fstring(const Position& begin, bool raw);
    void fstring_text();
    void check_fstring_end(const FString& string);
    bool at_quotes(char quote, bool triple) const;
    bool in_fstring_text() const;
    void number();
    void digits(const Position& begin, bool (*is_digit)(char));
    void prefixed_number(const Position& begin, bool (*is_digit)(char), std::string_view what);
    void decimal_number(const Position& begin);
    void check_after_number(const Position& begin, std::string_view what);

    std::string_view source_;
    Position pos_;
    TokenList out_;
    bool at_line_begin_ = true;
    struct Indentation {
        std::size_t column = 0;
        std::size_t tabless_column = 0;
    };
    std::vector<Indentation> indents_{{}};
    std::vector<Bracket> brackets_;
    std::vector<FString> fstrings_;
};

}  // namespace twinkle::python
