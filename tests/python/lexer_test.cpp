#include "python/lexer.h"

#include "catch.h"

#include <string>
#include <string_view>
#include <vector>

using namespace twinkle::python;

namespace {

std::vector<Tok> kinds(std::string_view source) {
    std::vector<Tok> out;
    for (const auto& token : tokenize(source).tokens) out.push_back(token.kind);
    return out;
}

}  // namespace

TEST_CASE("indentation becomes tokens, blank and comment lines do not") {
    const std::vector<Tok> expected{Tok::KwIf,   Tok::Name,    Tok::Colon,    Tok::Newline,
                                    Tok::Indent, Tok::KwPass,  Tok::Newline,  Tok::Dedent,
                                    Tok::Name,   Tok::Newline, Tok::EndOfFile};
    CHECK(kinds("if x:\n    pass\ny") == expected);
    CHECK(kinds("if x:\n\n  # note\n\tpass\n\n  # note\ny\n") == expected);
    CHECK(kinds("if x:\r\n    pass\r\ny\r\n") == expected);
    CHECK(kinds("if x:\r    pass\ry\r") == expected);
    CHECK(kinds("\f\nif x:\n    pass\n\fy\n") == expected);
    CHECK(kinds("\xEF\xBB\xBFif x:\n    pass\ny\n") == expected);
}

TEST_CASE("lines are joined in brackets and after a backslash") {
    const std::vector<Tok> expected{Tok::Name, Tok::Equal,   Tok::LPar,     Tok::Number,
                                    Tok::RPar, Tok::Newline, Tok::EndOfFile};
    CHECK(kinds("x = (1)") == expected);
    CHECK(kinds("x = (  # note\n\n   1\n)\n") == expected);
    CHECK(kinds("x = \\\n   (1)\n") == expected);
    CHECK(kinds("x = \\\r\n   (1)\r\n") == expected);
}

TEST_CASE("places are bytes, lines and byte columns") {
    const auto tokens = tokenize("a\n\xC3\xA9 = '''1\n2''' ; b").tokens;
    REQUIRE(tokens.size() == 9);
    CHECK(tokens[2].span.begin == 2);
    CHECK(tokens[2].span.end == 4);
    CHECK(tokens[2].span.line == 2);
    CHECK(tokens[2].span.column == 1);
    CHECK(tokens[4].span.line == 2);
    CHECK(tokens[4].span.column == 6);
    CHECK(tokens[5].kind == Tok::Semi);
    CHECK(tokens[5].span.line == 3);
    CHECK(tokens[5].span.column == 6);
}

TEST_CASE("f-strings are split into text, fields and format specifications") {
    const std::vector<Tok> expected{
        Tok::FStringStart, Tok::FStringMiddle, Tok::LBrace,        Tok::Name,    Tok::Exclamation,
        Tok::Name,         Tok::Colon,         Tok::FStringMiddle, Tok::LBrace,  Tok::Name,
        Tok::RBrace,       Tok::RBrace,        Tok::FStringEnd,    Tok::Newline, Tok::EndOfFile};
    CHECK(kinds("f'a{{b}}{x!r:>{w}}'") == expected);
    CHECK(kinds("f'{x!=y}'")[3] == Tok::NotEqual);
    CHECK(kinds("f'{x:=5}'")[3] == Tok::Colon);
    CHECK(kinds("f'{(x:=5)}'")[4] == Tok::ColonEqual);
    CHECK(kinds("rf'\\{x}'")[2] == Tok::LBrace);
    CHECK(kinds("f'\\N{DASH}'") == std::vector<Tok>{Tok::FStringStart, Tok::FStringMiddle,
                                                    Tok::FStringEnd, Tok::Newline, Tok::EndOfFile});
}

TEST_CASE("the lexer says why it stopped") {
    CHECK(tokenize("'abc\n").error == "unterminated string literal");
    CHECK(tokenize("x = '''abc").error == "unterminated triple-quoted string literal");
    CHECK(tokenize("f'{x").error == "unterminated f-string literal");
    CHECK(tokenize("f'x").error == "unterminated f-string literal");
    CHECK(tokenize("f'}'").error == "f-string: single '}' is not allowed");
    CHECK(tokenize("(1]").error ==
          "closing parenthesis ']' does not match opening parenthesis '('");
    CHECK(tokenize(")").error == "unmatched ')'");
    CHECK(tokenize("x = $").error == "invalid character (U+0024)");
    CHECK(tokenize("x = \xE2\x80\x9Cy").error == "invalid character (U+201C)");
    CHECK(tokenize("if x:\n\ta\n        b").error ==
          "inconsistent use of tabs and spaces in indentation");
    CHECK(tokenize("if x:\n  a\n b").error ==
          "unindent does not match any outer indentation level");
    CHECK(tokenize("x \\ y").error == "unexpected character after line continuation character");
    CHECK(tokenize("012").error == "leading zeros in decimal integer literals are not permitted");
    CHECK(tokenize("0b12").error == "invalid digit in binary literal");
    CHECK(tokenize("0xg").error == "invalid hexadecimal literal");
    CHECK(tokenize("1_").error == "invalid number: '_' must be followed by a digit");
    CHECK(tokenize("1a").error == "invalid decimal literal");
    CHECK(tokenize("1if x else y").error.empty());
    // The same name to Python, but spelled in fullwidth letters.
    CHECK(tokenize("\xEF\xBD\x85val").error ==
          "identifier is not in Unicode normalization form NFKC");
}
