#pragma once
// The tokens of Python source. Every operator and keyword is a kind of its own.

#include "python/node.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::python {

// clang-format off
#define TWINKLE_PYTHON_OPERATORS(X) \
    X(LPar, "(") X(RPar, ")") X(LSqb, "[") X(RSqb, "]") X(LBrace, "{") X(RBrace, "}") \
    X(Colon, ":") X(Comma, ",") X(Semi, ";") X(Plus, "+") X(Minus, "-") X(Star, "*") \
    X(Slash, "/") X(VBar, "|") X(Amper, "&") X(Less, "<") X(Greater, ">") X(Equal, "=") \
    X(Dot, ".") X(Percent, "%") X(EqEqual, "==") X(NotEqual, "!=") X(LessEqual, "<=") \
    X(GreaterEqual, ">=") X(Tilde, "~") X(Circumflex, "^") X(LeftShift, "<<") \
    X(RightShift, ">>") X(DoubleStar, "**") X(PlusEqual, "+=") X(MinusEqual, "-=") \
    X(StarEqual, "*=") X(SlashEqual, "/=") X(PercentEqual, "%=") X(AmperEqual, "&=") \
    X(VBarEqual, "|=") X(CircumflexEqual, "^=") X(LeftShiftEqual, "<<=") \
    X(RightShiftEqual, ">>=") X(DoubleStarEqual, "**=") X(DoubleSlash, "//") \
    X(DoubleSlashEqual, "//=") X(At, "@") X(AtEqual, "@=") X(Arrow, "->") \
    X(EllipsisDots, "...") X(ColonEqual, ":=") X(Exclamation, "!")

#define TWINKLE_PYTHON_KEYWORDS(X) \
    X(False, "False") X(None, "None") X(True, "True") X(And, "and") X(As, "as") \
    X(Assert, "assert") X(Async, "async") X(Await, "await") X(Break, "break") \
    X(Class, "class") X(Continue, "continue") X(Def, "def") X(Del, "del") X(Elif, "elif") \
    X(Else, "else") X(Except, "except") X(Finally, "finally") X(For, "for") X(From, "from") \
    X(Global, "global") X(If, "if") X(Import, "import") X(In, "in") X(Is, "is") \
    X(Lambda, "lambda") X(Nonlocal, "nonlocal") X(Not, "not") X(Or, "or") X(Pass, "pass") \
    X(Raise, "raise") X(Return, "return") X(Try, "try") X(While, "while") X(With, "with") \
    X(Yield, "yield")

enum class Tok : std::uint8_t {
    EndOfFile, Newline, Indent, Dedent, Name, Number, String,
    FStringStart, FStringMiddle, FStringEnd,
    Error,  // the lexer stopped here
#define TWINKLE_X(name, text) name,
    TWINKLE_PYTHON_OPERATORS(TWINKLE_X)
#undef TWINKLE_X
#define TWINKLE_X(name, text) Kw##name,
    TWINKLE_PYTHON_KEYWORDS(TWINKLE_X)
#undef TWINKLE_X
};
// clang-format on

struct Token {
    Tok kind = Tok::EndOfFile;
    Span span;
};

// Names it in messages: "'('", "end of file", "indentation", …
std::string_view token_name(Tok kind);

// Tok::Name if `word` is no keyword.
Tok keyword(std::string_view word);

}  // namespace twinkle::python
