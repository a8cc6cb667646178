#include "base/document.h"

#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::base;
using test::error_of;

namespace {

std::optional<Error> read(std::string_view text) {
    return error_of([&] {
        const Node root = parse_json_document(text, "f.json");
        TableReader reader(root, "f.json", "the thing");
        reader.string("name");
        reader.integer("count", 0, 9);
        reader.strings("list");
        reader.boolean("flag");
        reader.require("must");
        reader.finish();
    });
}

}  // namespace

TEST_CASE("a table is read by its keys; null is absent") {
    CHECK_FALSE(read(R"({"name": "a", "count": 9, "list": ["x"], "flag": true, "must": {}})"));
    CHECK_FALSE(read(R"({"name": null, "must": 1})"));
}

TEST_CASE("everything unexpected has its place and the nearest known key") {
    const auto expect = [](std::string_view text, std::string_view where, std::string_view words) {
        const auto error = read(text);
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK(error->details().where == where);
        INFO(error->what());
        CHECK(std::string(error->what()).find(words) != std::string::npos);
    };
    expect("{\"must\": 1,\n \"nmae\": 1}", "f.json:2:2", "did you mean \"name\"?");
    expect("{\"must\": 1, \"zzzzzz\": 1}", "f.json:1:13", "known keys: name");
    expect("{\"name\": 1}", "f.json:1:10", "\"name\" is an integer, not a string");
    expect("{\"count\": 10}", "f.json:1:11", "between 0 and 9");
    expect("{\"count\": 1.5}", "f.json:1:11", "a number, not an integer");
    expect("{\"list\": [\"a\", 1]}", "f.json:1:16", "not a list of strings");
    expect("{}", "f.json:1:1", "\"must\" is missing");
    expect("[]", "f.json:1:1", "where a table is needed");
}
