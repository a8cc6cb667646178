#include "tuning/declaration.h"

#include "base/throws.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::tuning;
using base::Json;
using test::error_of;

namespace {

const std::string norm = R"(version = 1

[operators.norm.properties]
rows = "power-of-two"
columns = "exact"
alignment = [4, 16]
device = "exact"

[operators.norm.forward.arguments]
threads = [128, 256, 512]
rows_per_block = [1, 2, 4]
vectorized = [true, false]

[[operators.norm.forward.constraints]]
product = ["threads", "rows_per_block"]
at_most = 1024

[[operators.norm.forward.constraints]]
value = "threads"
at_most = "columns"

[[operators.norm.forward.constraints]]
value = "vectorized"
equals = false
when = { columns = { at_most = 128 } }

[[operators.norm.forward.defaults]]
when = { columns = { at_most = 1024, multiple_of = 128 }, device = "cuda" }
cfg = { threads = 128, rows_per_block = 4, vectorized = true }
[[operators.norm.forward.defaults]]
cfg = { threads = 256, rows_per_block = 1, vectorized = true }

[operators.norm.backward.arguments]
threads = [64]
[[operators.norm.backward.defaults]]
cfg = { threads = 64 }
)";

Declaration declared(const std::string& text) {
    return read_declaration(text, "tuning.toml");
}

Invocation of(std::vector<std::int64_t> sizes, const std::string& device = "cuda") {
    return {.operation = "norm",
            .inputs = {{.dtype = "float"},
                       {.dtype = "bfloat16",
                        .sizes = std::move(sizes),
                        .layout = "dense",
                        .alignment = 8}},
            .device = device};
}

}  // namespace

TEST_CASE("properties are those of the first tensor, in the declared buckets") {
    const Declaration declaration = read_declaration(norm, "tuning.toml");
    const OperatorTuning& tuning = declaration.operators.at(0);
    CHECK(declaration.find("norm") == &tuning);
    CHECK(declaration.find("other") == nullptr);
    CHECK(tuning.properties_of(of({3, 5, 1000})) ==
          Properties{{"rows", 16}, {"columns", 1000}, {"alignment", 16}, {"device", "cuda"}});
    CHECK(tuning.properties_of(of({})).at("rows") == 1);
    CHECK(tuning.properties_of(of({INT64_MAX, INT64_MAX, 2})).at("rows") == (1LL << 62));
    CHECK(tuning.properties_of({.operation = "norm"}) == Properties{{"device", "cpu"}});
}

TEST_CASE("the grid keeps what the constraints allow") {
    const Declaration declaration = read_declaration(norm, "tuning.toml");
    const OperatorTuning& tuning = declaration.operators.at(0);
    const Tunable& forward = *tuning.forward;
    const auto all = forward.configurations(tuning.properties_of(of({4, 4096})));
    CHECK(all.size() == 16);  // 18 without 512 × 4, twice
    CHECK(all.front() == Json{{"threads", 128}, {"rows_per_block", 1}, {"vectorized", true}});
    const auto narrow = forward.configurations(tuning.properties_of(of({4, 128})));
    CHECK(narrow.size() == 3);
    for (const Json& cfg : narrow) {
        CHECK(cfg["threads"] == 128);
        CHECK(cfg["vectorized"] == false);
    }
    CHECK(forward.configurations(tuning.properties_of(of({4, 64}))).empty());
    CHECK_FALSE(forward.default_for(tuning.properties_of(of({4, 64}))));
}

TEST_CASE("the first default that fits and is allowed") {
    const Declaration declaration = read_declaration(norm, "tuning.toml");
    const OperatorTuning& tuning = declaration.operators.at(0);
    const auto threads = [&](std::vector<std::int64_t> sizes, const char* device = "cuda") {
        return (*tuning.forward->default_for(
            tuning.properties_of(of(std::move(sizes), device))))["threads"];
    };
    CHECK(threads({4, 1024}) == 128);
    CHECK(threads({4, 1000}) == 256);
    CHECK(threads({4, 1024}, "cpu") == 256);
    CHECK(threads({4, 200}) == 128);  // no rule is allowed there: the first of the grid
    CHECK(*tuning.backward->default_for({}) == Json{{"threads", 64}});
}

TEST_CASE("a configuration breaks a constraint where what is known of the call says so") {
    const Declaration declaration = declared(norm);
    const Tunable& tunable = *declaration.find("norm")->forward;
    const auto broken = [&](const Json& cfg, const Properties& known) {
        const Constraint* constraint = tunable.broken_by(cfg, known);
        return constraint != nullptr ? constraint->text() : "";
    };
    CHECK(broken({{"threads", 512}, {"rows_per_block", 4}}, {}) ==
          "threads * rows_per_block must be at most 1024");
    CHECK(broken({{"threads", 512}}, {}).empty());  // the other one is not given
    CHECK(broken({{"threads", 512}}, {{"columns", 256}}) == "threads must be at most columns");
    CHECK(broken({{"threads", 512}}, {{"rows", 256}}).empty());
    CHECK(broken({{"vectorized", true}}, {{"columns", 64}}) ==
          "vectorized must be false where columns is at most 128");
    CHECK(broken({{"vectorized", true}}, {}).empty());
    CHECK(broken({{"vectorized", false}}, {{"columns", 64}}).empty());
}

TEST_CASE("a constraint's words") {
    Constraint constraint{Constraint::Kind::sum, {"a", "b"}, Comparison::multiple_of, 4};
    CHECK(constraint.text() == "a + b must be a multiple of 4");
    constraint = {Constraint::Kind::value,
                  {"way"},
                  Comparison::differs,
                  1,
                  {{"device", Comparison::equals, "cuda"}, {"rows", Comparison::at_least, 8}}};
    CHECK(constraint.text() ==
          "way must be other than 1 where device is cuda and rows is at least 8");
}

TEST_CASE("products that overflow are not allowed") {
    Tunable tunable;
    tunable.arguments = {{"a", {INT64_MAX}}, {"b", {2}}};
    tunable.constraints = {{Constraint::Kind::product, {"a", "b"}, Comparison::at_most, INT64_MAX}};
    CHECK(tunable.configurations({}).empty());
}

TEST_CASE("a bad file is malformed, with the place") {
    const auto with = [](const std::string& from, const std::string& to) {
        std::string text = norm;
        const auto at = text.find(from);
        REQUIRE(at != std::string::npos);
        return text.replace(at, from.size(), to);
    };
    std::string nested = "version = 1\na = ";
    for (int i = 0; i < 1000; ++i) {
        nested += "[";
    }
    const std::vector<std::pair<std::string, std::string>> bad{
        {"version = 1", "there is no [operators] in it"},
        {with("version = 1", "version = 2"), "version"},
        {with("rows = \"power-of-two\"", "rows = \"powers\""), "power-of-two"},
        {with("device = \"exact\"", "device = [1]"), "device"},
        {with("alignment = [4, 16]", "alignment = [16, 4]"), "rise"},
        {with("[4, 16]", "[4, \"a\"]"), "rise"},
        {with("rows = \"power-of-two\"", "height = \"exact\""), "height"},
        {with("threads = [128, 256, 512]", "threads = []"), "one value"},
        {with("threads = [128, 256, 512]", "threads = [128, \"a\"]"), "kind"},
        {with("threads = [128, 256, 512]", "threads = [128, 128]"), "twice"},
        {with("threads = [128, 256, 512]", "threads = [[128]]"), "values are"},
        {with("threads = [128, 256, 512]", "columns = [128, 256, 512]"), "property"},
        {with("at_most = 1024", "at_most = 1024\nat_least = 1"), "one comparison"},
        {with("at_most = 1024", ""), "one comparison"},
        {with("at_most = 1024", "at_most = 1.5"), "plain"},
        {with("at_most = 1024", "at_best = 1024"), "at_best"},
        {with("product = [\"threads\", \"rows_per_block\"]", "product = [\"threads\", \"x\"]"),
         "\"x\""},
        {with("product = [\"threads\", \"rows_per_block\"]", "product = []"), "value, product"},
        {with("multiple_of = 128", "multiple_of = 0"), "multiple"},
        {with("multiple_of = 128", "power_of = 2"), "comparison"},
        {with("device = \"cuda\"", "dtype = \"half\""), "dtype"},
        {with("threads = 128, rows_per_block = 4", "threads = 128"), "rows_per_block"},
        {with("threads = 128, rows_per_block = 4", "threads = 129, rows_per_block = 4"), "none of"},
        {with("threads = 256, rows_per_block = 1", "blocks = 1, threads = 256, rows_per_block = 1"),
         "blocks"},
        {with("[[operators.norm.backward.defaults]]\ncfg = { threads = 64 }\n", ""), "defaults"},
        {with("[[operators.norm.backward.defaults]]\n",
              "[[operators.norm.backward.defaults]]\nwhen = { rows = 1 }\n"),
         "everywhere"},
        {with("[operators.norm.backward.arguments]", "[operators.norm.sideways.arguments]"),
         "sideways"},
        {nested, "nested"}};
    for (const auto& [text, why] : bad) {
        const auto error = error_of([&] { read_declaration(text, "tuning.toml"); });
        INFO(why);
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
        CHECK_THAT(error->details().where, ContainsSubstring("tuning.toml:"));
    }
}

TEST_CASE("a grid has its limit") {
    std::string text = "version = 1\n[operators.a.forward.arguments]\n";
    for (const char* name : {"a", "b", "c"}) {
        text += std::string(name) + " = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]\n";
    }
    text += "[[operators.a.forward.defaults]]\ncfg = { a = 1, b = 1, c = 1 }\n";
    const auto error = error_of([&] { read_declaration(text, "tuning.toml"); });
    REQUIRE(error);
    CHECK_THAT(error->what(), ContainsSubstring("more than 4096 configurations"));
}

TEST_CASE("an operator is tuned like another one") {
    const Declaration declaration = declared(
        norm + "\n[operators.other]\nlike = \"norm\"\n[operators.also]\nlike = \"norm\"\n");
    REQUIRE(declaration.operators.size() == 3);
    const auto* other = declaration.find("other");
    REQUIRE(other != nullptr);
    CHECK(other->name == "other");
    const Properties properties = other->properties_of(of({64, 256}));
    CHECK(other->forward->configurations(properties) ==
          declaration.find("norm")->forward->configurations(properties));
    for (const std::string wrong :
         {"like = \"none\"", "like = 1", "like = \"norm\"\nmore = 1", "like = \"other\""}) {
        CHECK(error_of([&] { declared(norm + "\n[operators.other]\n" + wrong + "\n"); })->code() ==
              ErrorCode::malformed);
    }
}

TEST_CASE("threads are a property where they are known") {
    const Declaration declaration = declared(R"(version = 1
[operators.norm.properties]
cpu_threads = "exact"
[operators.norm.forward.arguments]
grain = [0, 4096]
[[operators.norm.forward.constraints]]
value = "grain"
equals = 0
when = { cpu_threads = 1 }
[[operators.norm.forward.defaults]]
cfg = { grain = 0 }
)");
    const OperatorTuning& norm_of = *declaration.find("norm");
    const auto count = [&](int threads) {
        return norm_of.forward->configurations(norm_of.properties_of(of({64, 256}), threads))
            .size();
    };
    CHECK(count(1) == 1);
    CHECK(count(2) == 2);
    CHECK(count(0) == 2);
}
