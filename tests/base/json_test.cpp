#include "base/json.h"

#include "base/json_events.h"
#include "base/temp_folder.h"
#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::base;
using test::error_of;

namespace {

std::string where_of(std::string_view text) {
    const auto error = error_of([&] { parse_json(text, "f.json"); });
    return error && error->code() == ErrorCode::malformed ? error->details().where : "no error";
}

}  // namespace

TEST_CASE("valid JSON is read, and written sorted") {
    const Json value = parse_json(R"({"b": [1, -2, 3.5, true, null, {"x": "é"}], "a": {}})", "f");
    CHECK(value["b"][1] == -2);
    CHECK(value["b"][5]["x"] == "é");
    CHECK(dump_json(value).starts_with("{\n  \"a\": {},\n  \"b\": [\n"));
    CHECK(parse_json(dump_json(value), "f") == value);
    CHECK(dump_json(Json("\xff")) == "\"\xef\xbf\xbd\"\n");
}

TEST_CASE("malformed JSON is refused with file, line and column") {
    CHECK(where_of("{\"a\": 1,\n  \"a\": 2}") == "f.json:2:3");
    CHECK(where_of("{\"é\": 1, \"x\": }") == "f.json:1:15");
    CHECK(where_of("").starts_with("f.json:1:1"));
    CHECK(where_of("[1] 2") == "f.json:1:5");
    for (const char* text :
         {"[1,]", "{'a': 1}", "[NaN]", "[1e999]", "// no\n1", "\"\xff\"", "\"\\ud800\"", "[01]",
          "tru", "{\"a\" 1}", "\"a\nb\"", "[", "{\"a\":"}) {
        INFO(text);
        CHECK(where_of(text) != "no error");
    }
}

TEST_CASE("every cut of a document is an error, never a crash") {
    const std::string text = R"({"a": [1, {"b": "cé\n"}, 2.5e3], "d": {"e": null}})";
    for (std::size_t i = 0; i < text.size(); ++i) {
        CHECK(where_of(text.substr(0, i)) != "no error");
    }
}

TEST_CASE("size and depth are limited") {
    CHECK(where_of(std::string(64, '[') + std::string(64, ']')) == "no error");
    CHECK(where_of(std::string(65, '[') + std::string(65, ']')) == "f.json:1:65");
    CHECK(where_of(std::string(1'000'000, '[')) == "f.json:1:65");
    CHECK(error_of([] { parse_json("[1,2,3]", "f", {.bytes = 6}); })->code() ==
          ErrorCode::malformed);
    test::TempFolder folder;
    folder.write("a.json", "[1,2,3]");
    CHECK(read_json_file(folder / "a.json", "list").size() == 3);
    CHECK(error_of([&] { read_json_file(folder / "a.json", "list", {.bytes = 6}); })->code() ==
          ErrorCode::malformed);
}

TEST_CASE("events carry the position of every value") {
    struct Positions : JsonEvents {
        std::string seen;
        void at(TextPosition p) {
            seen += std::to_string(p.line) + ":" + std::to_string(p.column) + " ";
        }
        void null(TextPosition p) override { at(p); }
        void boolean(bool, TextPosition p) override { at(p); }
        void integer(std::int64_t, TextPosition p) override { at(p); }
        void unsigned_integer(std::uint64_t, TextPosition p) override { at(p); }
        void number(double, TextPosition p) override { at(p); }
        void string(std::string&, TextPosition p) override { at(p); }
        void key(std::string&, TextPosition p) override { at(p); }
        void begin_object(TextPosition p) override { at(p); }
        void end_object() override {}
        void begin_array(TextPosition p) override { at(p); }
        void end_array() override {}
    } positions;
    read_json_events("{\"a\": [1,2],\n \"b\": \"x\\\"\",  \"c\":{\"d\":-1}}", "f", {}, positions);
    CHECK(positions.seen == "1:1 1:2 1:7 1:8 1:10 2:2 2:7 2:15 2:19 2:20 2:24 ");
}
