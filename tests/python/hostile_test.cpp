// Hostile sources: they must give an error or a tree, in time, without a crash.
#include "dump.h"
#include "python/parser.h"
#include "python/walk.h"

#include "catch.h"

#include <chrono>
#include <random>
#include <string>
#include <string_view>

using namespace twinkle::python;

namespace {

std::string repeat(std::string_view text, std::size_t times) {
    std::string out;
    out.reserve(text.size() * times);
    for (std::size_t i = 0; i < times; ++i) out += text;
    return out;
}

std::string error(const std::string& source) {
    const auto result = parse_module(source, "x");
    return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("nesting of every kind is bounded") {
    CHECK(error(repeat("(", 100000)) == "too many nested parentheses");
    CHECK(error(repeat("[", 199) + repeat("]", 199)).empty());
    CHECK(error(repeat("{1:", 100000)) == "too many nested parentheses");
    CHECK(error(repeat("f'{", 100000)) == "too many nested f-strings");
    CHECK(error("f'{x:" + repeat("{x:", 100000)) == "too many nested parentheses");
    for (const std::string_view unit : {"not ", "-", "~", "lambda: ", "x ** ", "a if b else ",
                                        "x.y(", "*a, (", "await ", "yield "}) {
        CHECK_FALSE(error(repeat(unit, 100000) + "x").empty());
    }
    for (const std::string_view unit : {" + x", ".x", "()", "[0]", " ** x", " if x else x"}) {
        INFO(unit);
        CHECK(error("x" + repeat(unit, 100)).empty());
        CHECK(error("x" + repeat(unit, 100000)) == "too deeply nested");
    }
    CHECK(error("if x: pass\n" + repeat("elif x: pass\n", 500)).empty());
    CHECK(error("if x: pass\n" + repeat("elif x: pass\n", 100000)) == "too deeply nested");
    std::string blocks;
    for (std::size_t i = 0; i < 1000; ++i) blocks += std::string(i, ' ') + "if x:\n";
    CHECK(error(blocks) == "too many levels of indentation");
    CHECK_FALSE(error("match x:\n case " + repeat("C(", 100000)).empty());
}

TEST_CASE("the height of a tree is bounded where short rules stack up") {
    std::string source = "x";
    for (int i = 0; i < 150; ++i) source = "(" + source + repeat(" + 1", 20) + ")";
    CHECK(error(source) == "too deeply nested");
    const auto result = parse_module("(" + repeat("(", 90) + "x" + repeat(")+1", 90) + ")", "x");
    REQUIRE(result);
    CHECK((*result)->height >= 90);
    CHECK((*result)->height <= kMaxTreeHeight);
}

TEST_CASE("wide sources are read in linear time") {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(error("x = [" + repeat("1,", 500000) + "]").empty());
    CHECK(error("f(" + repeat("a=1,", 200000) + ")").empty());
    CHECK(error("f(" + repeat("*a,", 200000) + ")").empty());
    CHECK(error(repeat("'a' ", 200000)).empty());
    CHECK(error(repeat("f'{a}' ", 200000)).empty());
    CHECK(error("'" + repeat("a", 2000000) + "'").empty());
    CHECK(error(repeat("with (a, b): pass\n", 100000)).empty());
    CHECK(error(repeat("match (a)\n", 100000)).empty());
    CHECK(error(repeat("x;", 500000)).empty());
    CHECK(error(repeat("1", 1000000)).empty());
    CHECK(error(repeat("\\\n", 500000) + "x").empty());
    CHECK_FALSE(error(repeat("with (", 100000)).empty());
    CHECK_FALSE(error("x = " + repeat("0b2", 100000)).empty());
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
}

TEST_CASE("bytes that are no Python source are refused") {
    CHECK(error(std::string("x = 1\0y", 7)) == "source code cannot contain null bytes");
    CHECK(error("x = '\xFF'") == "bytes that are not UTF-8");
    CHECK(error("x = '\xC0\x80'") == "bytes that are not UTF-8");
    CHECK(error("x = '\xED\xA0\x80'") == "bytes that are not UTF-8");
    CHECK(error("# \xE2\x82") == "bytes that are not UTF-8");
    CHECK(error("# -*- coding: utf-16 -*-\nx") == "the encoding is utf-16; only utf-8 is read");
    CHECK(error("#!x\n# vim: set fileencoding=UTF-8 :\nx").empty());
    CHECK(error("# coding: latin-1\nx = 'a'").empty());
    CHECK_FALSE(error("# coding: latin-1\nx = '\xE9'").empty());
    CHECK(error(repeat("#", kMaxSourceSize + 1)).find("at most") != std::string::npos);
    const auto result = parse_module("a\nb\xFF", "x");
    REQUIRE_FALSE(result);
    CHECK(result.error().line == 2);
    CHECK(result.error().column == 2);
    CHECK(error("\xEF\xBB\xBF# coding: latin-1\n").starts_with("a UTF-8 byte order mark"));
    CHECK(error("").empty());
    CHECK(error("\xEF\xBB\xBF").empty());
    CHECK_FALSE(error("\\").empty());
    CHECK_FALSE(error("'\\").empty());
}

TEST_CASE("damaged sources never crash") {
    const std::string source =
        "@d\nasync def f(a, /, b: int = 1, *c, d=f'{x!r:>{w}} {y = }', **k) -> T:\n"
        "    with (a as b, c): return [x for x in y if z], {1: 2, **m}, lambda *a: (yield)\n"
        "    match x:\n        case {'a': [1, *_], **r} | C(b=-1+2j) if q: pass\n"
        "class C[T](B, m=1):\n    '''doc'''\n    try: x: int = 0x1_f\n    except* E as e: del "
        "a[1:2, ::3]\n"
        "type X = 1 if a else b'\\x41' rb'\\d'\n";
    REQUIRE(error(source).empty());
    std::mt19937 random(7);
    const std::string alphabet = "()[]{}:,.*='\"\\\n\t f#!@10xe_-\xC3\xA9\r";
    for (int round = 0; round < 20000; ++round) {
        std::string text = source;
        for (int edits = 1 + static_cast<int>(random() % 6); edits > 0; --edits) {
            const auto at = random() % text.size();
            switch (random() % 3) {
                case 0: text[at] = alphabet[random() % alphabet.size()]; break;
                case 1: text.erase(at, random() % 20); break;
                default: text.insert(at, text.substr(random() % text.size(), random() % 20)); break;
            }
            if (text.empty()) text = "x";
        }
        if (const auto result = parse_module(text, "x")) {
            std::size_t nodes = 0;
            walk(**result, [&](const Node& node) {
                ++nodes;
                return node.span.begin <= node.span.end && node.span.end <= text.size();
            });
            CHECK(nodes > 0);
            CHECK_FALSE(dump(**result).empty());
        }
    }
}
