#include "base/toml.h"

#include "base/throws.h"
#include "base/toml_depth.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::base;
using test::error_of;

namespace {

std::string repeated(std::string_view text, std::size_t times) {
    std::string result;
    for (std::size_t i = 0; i < times; ++i) {
        result += text;
    }
    return result;
}

// "a.a.a…" of that many parts.
std::string dotted(std::size_t parts) {
    return "a" + repeated(".a", parts - 1);
}

bool is_too_deep(std::string_view text) {
    const auto error = error_of([&] { parse_toml_document(text, "f.toml"); });
    return error && error->code() == ErrorCode::malformed &&
           error->details().why == "nested deeper than 64 levels";
}

}  // namespace

TEST_CASE("depth is limited in every way in which TOML nests") {
    const std::string deep = dotted(25'000);
    for (const std::string& text : {
             deep + " = 1",
             "[" + deep + "]",
             "[[" + deep + "]]",
             "\xef\xbb\xbf[" + deep + "]",
             "ok = 1\n  [ " + deep + " ]  # comment\nx = 1",
             "a = " + repeated("[", 100'000),
             "a = " + repeated("{ a = ", 100'000),
             "a = " + repeated("[{a.b=", 100'000),
             "\"" + repeated("\".\"", 25'000) + "\" = 1",
             "[a]\n'" + repeated("'.'", 25'000) + "' = 1",
             "a = [1,\n2,\n{" + deep + " = 1}]",
             "a = { b = 1, " + deep + " = 2 }",
             "a = '''\n''' # '''\n" + deep + " = 1",
             "a = \"\"\"x\"\"\"\"\"\n" + deep + " = 1",
             "a = \"\\\"\"\n" + deep + " = 1",
             "a = 'C:\\'\n" + deep + " = 1",
         }) {
        INFO(text.substr(0, 40));
        CHECK(is_too_deep(text));
    }
    // Too deep together, but none of them alone.
    CHECK(is_too_deep("[" + dotted(40) + "]\n" + dotted(30) + " = 1"));
    CHECK(is_too_deep("[" + dotted(40) + "]\na = " + repeated("[", 30) + repeated("]", 30)));
    CHECK(is_too_deep("a = {" + dotted(40) + " = {" + dotted(40) + " = 1}}"));
}

TEST_CASE("what is no nesting does not count") {
    const std::string dots(1000, '.');
    const std::string brackets(1000, '[');
    for (const std::string& text : {
             dotted(64) + " = 1",
             "[" + dotted(60) + "]\n" + dotted(4) + " = 1\n" + dotted(3) + ".b = 1",
             "a = \"" + dots + brackets + "\"  # " + dots + brackets,
             "a = '" + dots + brackets + "'",
             "a = \"\"\"\n" + dots + "\\\"\"\"\n" + brackets + "\"\"\"",
             "a = '''\n" + dots + "''\n" + brackets + "''''",
             "a = [" + repeated("1.5, 2024-01-01T00:00:00.5,\n", 1000) + "]",
             "a = [" + repeated("{a.b.c = [1]}, ", 1000) + "]",
             repeated("[[a.b]]\nc.d = {e.f = 1}\n", 1000),
         }) {
        INFO(text.substr(0, 60));
        const auto error = error_of([&] { parse_toml_document(text, "f.toml"); });
        CHECK((error ? error->what() : std::string()) == "");
    }
}

TEST_CASE("the place of what is too deep is named") {
    const auto at = too_deep_in_toml("x = 1\na.a.a = 1", 2);
    REQUIRE(at);
    CHECK(at->line == 2);
    CHECK(at->column == 7);
}
