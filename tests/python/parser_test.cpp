#include "python/parser.h"

#include "dump.h"

#include "catch.h"

#include <algorithm>
#include <string>
#include <string_view>

using namespace twinkle::python;

namespace {

// The dump of the statements without positions, in single quotes.
std::string tree(std::string_view source) {
    const auto result = parse_module(source, "test.py");
    if (!result) {
        return result.error().where() + ": " + result.error().message;
    }
    std::string out;
    for (const auto& statement : (*result)->body) {
        out += dump(*statement, {.spans = false});
    }
    std::replace(out.begin(), out.end(), '"', '\'');
    return out;
}

std::string expression(std::string_view source) {
    const auto text = tree(source);
    const std::string_view begin = "['Expr',";
    return text.starts_with(begin) ? text.substr(begin.size(), text.size() - begin.size() - 1)
                                   : text;
}

}  // namespace

TEST_CASE("operators bind as in Python") {
    CHECK(expression("-a ** -b") ==
          "['UnaryOp','USub',['BinOp',['Name','a','Load'],'Pow',['UnaryOp','USub',['Name','b',"
          "'Load']]]]");
    CHECK(expression("a - b - c") ==
          "['BinOp',['BinOp',['Name','a','Load'],'Sub',['Name','b',"
          "'Load']],'Sub',['Name','c','Load']]");
    CHECK(expression("a or b and not c") ==
          "['BoolOp','Or',[['Name','a','Load'],['BoolOp','And',[['Name','b','Load'],['UnaryOp',"
          "'Not',['Name','c','Load']]]]]]");
    CHECK(expression("a not in b is not c") ==
          "['Compare',['Name','a','Load'],['NotIn','IsNot'],[['Name','b','Load'],['Name','c',"
          "'Load']]]");
}

TEST_CASE("literals have Python's values") {
    CHECK(expression("0x_ff") == "['Constant',255,null]");
    CHECK(expression("9223372036854775808") == "['Constant',{'big':'9223372036854775808'},null]");
    CHECK(expression("1_0.5e-3") ==
          "['Constant',{'float':'3f8581062"
          "4dd2f1b'},null]");
    CHECK(expression("1e999") == "['Constant',{'float':'7ff0000000000000'},null]");
    CHECK(expression("1e-999") == "['Constant',{'float':'0000000000000000'},null]");
    for (const char* tiny :
         {"1e-9223372036854775808", "1e-99999999999999999999", "0.1e-9223372036854775807"}) {
        CHECK(expression(tiny) == "['Constant',{'float':'0000000000000000'},null]");
    }
    CHECK(expression("1e99999999999999999999") == "['Constant',{'float':'7ff0000000000000'},null]");
    CHECK(expression("2j") == "['Constant',{'imag':'4000000000000000'},null]");
    CHECK(expression("u'a' 'b'") == "['Constant','ab','u']");
    CHECK(expression(R"('\x41\101\u00e9\q')") == R"(['Constant','AA\u00e9\\q',null])");
    CHECK(expression(R"(rb'\x41' b'\x41')") == "['Constant',{'bytes':'5c78343141'},null]");
    CHECK(expression("'''a\r\nb'''") == R"(['Constant','a\nb',null])");
    CHECK(expression("...") == "['Constant',{'ellipsis':1},null]");
}

TEST_CASE("f-strings become JoinedStr") {
    CHECK(expression("'a' f'b{x!r}' 'c'") ==
          "['JoinedStr',[['Constant','ab',null],['FormattedValue',['Name','x','Load'],114,null],"
          "['Constant','c',null]]]");
    CHECK(expression("f'{x = }'") ==
          "['JoinedStr',[['Constant','x = ',null],['FormattedValue',"
          "['Name','x','Load'],114,null]]]");
    CHECK(expression("f'{x:{w}.2f}'") ==
          "['JoinedStr',[['FormattedValue',['Name','x','Load'],-1,['JoinedStr',[['FormattedValue',"
          "['Name','w','Load'],-1,null],['Constant','.2f',null]]]]]]");
    // PEP 701: the same quotes inside.
    CHECK(expression("f'{d['k']}'") ==
          "['JoinedStr',[['FormattedValue',['Subscript',['Name','d','Load'],['Constant','k',null],"
          "'Load'],-1,null]]]");
    CHECK(expression("f'{ {1: 2}[1] }{{}}'").ends_with("['Constant','{}',null]]]"));
}

TEST_CASE("targets are marked and checked") {
    CHECK(tree("a, *b = c") ==
          "['Assign',[['Tuple',[['Name','a','Store'],['Starred',['Name','b','Store'],'Store']],"
          "'Store']],['Name','c','Load']]");
    CHECK(tree("(x): int") == "['AnnAssign',['Name','x','Store'],['Name','int','Load'],null,0]");
    CHECK(tree("x: int = 1").ends_with("['Constant',1,null],1]"));
    CHECK(tree("f() = 1") == "test.py:1:1: cannot assign to function call");
    CHECK(tree("del x, (y)") == "['Delete',[['Name','x','Del'],['Name','y','Del']]]");
    CHECK(tree("del *x") == "test.py:1:5: invalid syntax: unexpected '*'");
    CHECK(tree("(a, b) += 1") == "test.py:1:1: illegal expression for augmented assignment");
    CHECK(tree("None = 1") == "test.py:1:1: cannot assign to literal");
}

TEST_CASE("functions keep every kind of parameter") {
    CHECK(tree("def f(a, /, b=1, *c, d, e=2, **g) -> int: pass") ==
          "['FunctionDef','f',['arguments',[['arg','a',null]],[['arg','b',null]],['arg','c',null],"
          "[['arg','d',null],['arg','e',null]],[null,['Constant',2,null]],['arg','g',null],"
          "[['Constant',1,null]]],[['Pass']],[],['Name','int','Load'],[]]");
    CHECK(tree("def f(*, **k): pass") == "test.py:1:8: named arguments must follow bare *");
    CHECK(tree("def f(a=1, b): pass") ==
          "test.py:1:12: non-default argument follows default argument");
    CHECK(tree("def f(/): pass") == "test.py:1:7: at least one argument must precede /");
    CHECK(tree("@a.b(1)\nasync def f[T: int, *Ts, **P](): await x")
              .starts_with("['AsyncFunctionDef','f',"));
    CHECK(tree("type X[T = int] = list[T]").starts_with("['TypeAlias',"));
}

TEST_CASE("calls keep the order of arguments and refuse what Python refuses") {
    CHECK(expression("f(a, *b, k=1, *c, **d)") ==
          "['Call',['Name','f','Load'],[['Name','a','Load'],['Starred',['Name','b','Load'],'Load'],"
          "['Starred',['Name','c','Load'],'Load']],[['keyword','k',['Constant',1,null]],"
          "['keyword',null,['Name','d','Load']]]]");
    CHECK(expression("f(k=1, a)") == "test.py:1:8: positional argument follows keyword argument");
    CHECK(expression("f(x for x in y, 1)") ==
          "test.py:1:2: Generator expression must be parenthesized");
    CHECK(expression("f(a.b=1)").ends_with("perhaps you meant \"==\"?"));
}

TEST_CASE("soft keywords are names elsewhere") {
    CHECK(tree("match = case = type = _ = 1").starts_with("['Assign',"));
    CHECK(tree("match(x)\nmatch[x]\ntype(x)\nprint(match)").starts_with("['Expr',['Call',"));
    CHECK(tree("match (x):\n    case [1, *_] | {'k': v, **r} | C(a, b=-1+2j) as y if z: pass\n")
              .starts_with("['Match',['Name','x','Load'],[['match_case',['MatchAs',['MatchOr',"));
    CHECK(tree("match x, y:\n  case _: pass") ==
          "['Match',['Tuple',[['Name','x','Load'],['Name','y','Load']],'Load'],[['match_case',"
          "['MatchAs',null,null],null,[['Pass']]]]]");
}

TEST_CASE("with, try and if take all their forms") {
    CHECK(tree("with (a as b, c): pass") ==
          "['With',[['withitem',['Name','a','Load'],['Name','b','Store']],['withitem',['Name','c',"
          "'Load'],null]],[['Pass']]]");
    CHECK(tree("with (yield): pass") == "['With',[['withitem',['Yield',null],null]],[['Pass']]]");
    CHECK(tree("with (a, b)[0] as c: pass").starts_with("['With',[['withitem',['Subscript',"));
    CHECK(tree("try: pass\nexcept* (A, B) as e: pass\nelse: pass\nfinally: pass")
              .starts_with("['TryStar',"));
    CHECK(tree("try: pass") == "test.py:1:10: expected 'except' or 'finally' block");
    CHECK(tree("if a: pass\nelif b: pass\nelse: pass") ==
          "['If',['Name','a','Load'],[['Pass']],[['If',['Name','b','Load'],[['Pass']],"
          "[['Pass']]]]]");
}

TEST_CASE("imports keep their dots and names") {
    CHECK(tree("from ...a.b import (c as d, e,)") ==
          "['ImportFrom','a.b',[['alias','c','d'],['alias','e',null]],3]");
    CHECK(tree("from . import *") == "['ImportFrom',null,[['alias','*',null]],1]");
    CHECK(tree("import a.b as c, d") == "['Import',[['alias','a.b','c'],['alias','d',null]]]");
}

TEST_CASE("errors say where and what") {
    CHECK(tree("x = (1,\n") == "test.py:1:5: '(' was never closed");
    CHECK(tree("x = 1\n  y = 2") == "test.py:2:3: unexpected indent");
    CHECK(tree("def f():\npass") ==
          "test.py:2:1: expected an indented block after function definition on line 1");
    CHECK(tree("print 'x'") == "test.py:1:7: invalid syntax: unexpected a string");
    CHECK(tree("x = a if b") == "test.py:1:11: expected 'else' after 'if' expression");
    CHECK(tree("a\n'\\x4'") == "test.py:2:2: truncated \\x escape: 2 hexadecimal digits expected");
    CHECK(tree("b'\xC3\xA9'") == "test.py:1:3: bytes can only contain ASCII literal characters");
    CHECK(tree("b'a' 'b'") == "test.py:1:6: cannot mix bytes and nonbytes literals");
    CHECK(tree("f'{}'").starts_with("test.py:1:4: f-string: a valid expression is required"));
    // The first error counts, even if a later one stops the lexer.
    CHECK(tree("x = = 1\n'abc").starts_with("test.py:1:5: invalid syntax"));
}
