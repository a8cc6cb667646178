#include "base/terminal.h"

#include "catch.h"

using namespace twinkle::base;

TEST_CASE("width counts characters, not bytes") {
    CHECK(display_width("") == 0);
    CHECK(display_width("abc") == 3);
    CHECK(display_width("größe…") == 6);
}

TEST_CASE("a long text keeps its head or its tail") {
    CHECK(keep_head("abcdef", 6) == "abcdef");
    CHECK(keep_head("abcdef", 4) == "abc…");
    CHECK(keep_tail("abcdef", 4) == "…def");
    CHECK(keep_tail("größer", 3) == "…er");
    CHECK(keep_head("größer", 4) == "grö…");
    CHECK(keep_head("abc", 0).empty());
    CHECK(keep_tail("abc", 1) == "…");
}

TEST_CASE("text is broken at spaces and inside words that are too long") {
    CHECK(wrap("one two three", 8) == "one two\nthree");
    CHECK(wrap("one two", 20, 2) == "  one two");
    CHECK(wrap("one two three", 9, 2) == "  one two\n  three");
    CHECK(wrap("abcdefgh", 3) == "abc\ndef\ngh");
    CHECK(wrap("a größeres", 4) == "a\ngröß\neres");
    CHECK(wrap("", 10).empty());
    CHECK(wrap("abc", 0) == "a\nb\nc");
}

TEST_CASE("colours are there only when wanted") {
    CHECK(styled("x", Style::red, true) == "\x1b[1;31mx\x1b[0m");
    CHECK(styled("x", Style::red, false) == "x");
    CHECK(styled("x", Style::plain, true) == "x");
    CHECK(wants_color(ColorMode::always, -1));
    CHECK_FALSE(wants_color(ColorMode::never, 1));
    CHECK_FALSE(wants_color(ColorMode::automatic, -1));
}
