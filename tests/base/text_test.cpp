#include "base/text.h"

#include "catch.h"

using namespace twinkle::base;

TEST_CASE("globs") {
    CHECK(glob_match("model.layers.*.mlp", "model.layers.0.mlp"));
    CHECK(glob_match("*", ""));
    CHECK(glob_match("a*b*c", "a.b.b.c"));
    CHECK(glob_match("?[a]", "x[a]"));
    CHECK_FALSE(glob_match("a", "ab"));
    CHECK_FALSE(glob_match("", "a"));
    CHECK_FALSE(glob_match("a?", "a"));
    // Linear, where a naive matcher would take for ever.
    CHECK_FALSE(glob_match("*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
}

TEST_CASE("nearest finds typing errors and nothing else") {
    const std::vector<std::string> keys{"classes", "modules", "layer_name", "device"};
    CHECK(nearest("clases", keys) == "classes");
    CHECK(nearest("layername", keys) == "layer_name");
    CHECK(nearest("DEVICE", keys) == "device");
    CHECK(nearest("devcie", keys) == "device");
    CHECK_FALSE(nearest("capability", keys));
    CHECK_FALSE(nearest("x", {}));
    CHECK(nearest("linear", std::vector<std::string>{"Linear"}) == "Linear");
}

TEST_CASE("split and join are inverse") {
    for (const char* text : {"", ",", "a", "a,b", ",a,,b,"}) {
        CHECK(join(split(text, ','), ",") == text);
    }
}

TEST_CASE("what is UTF-8") {
    CHECK(is_utf8(""));
    CHECK(is_utf8("é 漢 \xf0\x9f\x98\x80"));
    for (const char* text : {"\xff", "a\xc2", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
        CHECK_FALSE(is_utf8(text));
    }
}

TEST_CASE("printable keeps text and shows what would steer a terminal") {
    CHECK(printable("é 漢 ok") == "é 漢 ok");
    CHECK(printable("a\x1b[31m\n") == "a\\x1B[31m\\x0A");
    CHECK(printable("\xff\xc2\x9b") == "\\xFF\\xC2\\x9B");
    CHECK(printable("\xe2\x80\xae") == "\\xE2\\x80\\xAE");
    CHECK(printable("\xed\xa0\x80\xc0\xaf") == "\\xED\\xA0\\x80\\xC0\\xAF");
    CHECK(printable("\xe6\xbc") == "\\xE6\\xBC");
}
