#include "kernel/schema.h"

#include "catch.h"

using namespace twinkle::kernel;

TEST_CASE("schemas as kernels write them") {
    for (const char* text :
         {"rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
          "silu_and_mul(Tensor! out, Tensor input) -> ()",
          "f(Tensor(a!) x, *, Tensor(b!)? out=None) -> (Tensor(a!), Tensor(b!))", "f() -> int",
          "f(...) -> ...", "f(SymInt[] a, int[2] b=[1, 2], bool?[3] c) -> Tensor[]",
          "f.out(Tensor? x=None, str s=\"a, )\\\"\", float e=1e-05, ScalarType? d=None) -> Tensor?",
          "f(Tensor[](a!) x) -> ()", "f(Tensor(a -> *) x) -> Tensor(a|b)",
          "f((int, str) t) -> (int i)",
          "f(Dict(str, Tensor) d, __torch__.torch.classes.my.Cls c) -> Future(int)",
          "f(int r=Mean, int n=-1, Scalar s=0.5, bool b=True, Device d=\"cpu\") -> Any",
          "f(Tensor x, *, int k) -> (Tensor out, Tensor lse)"}) {
        INFO(text);
        const auto schema = parse_schema(text);
        REQUIRE(schema);
        CHECK(schema->text == text);
    }
    CHECK(parse_schema("ns::f.x(int a) -> ()")->op_namespace == "ns");
    CHECK(parse_schema("ns::f.x(int a) -> ()")->name == "f.x");
    CHECK(parse_schema("ns::f.x(int a) -> ()")->text == "f.x(int a) -> ()");
}

TEST_CASE("how many arguments a call has") {
    const auto counts = [](const char* text) {
        const auto schema = parse_schema(text);
        REQUIRE(schema);
        return std::pair(schema->least_arguments, schema->most_arguments);
    };
    using Counts = std::pair<std::size_t, std::size_t>;
    CHECK(counts("f() -> int") == Counts(0, 0));
    CHECK(counts("f(Tensor x, int n = 1, *, int[2] b=[1, 2], int k) -> Tensor") == Counts(2, 4));
    CHECK(counts("f(Tensor x, ...) -> ...").second > 1000);
}

TEST_CASE("what only looks like a schema is not taken for one") {
    for (const char* text : {"",
                             "f",
                             "f(",
                             "f()",
                             "f() ->",
                             "f() -> tensor",
                             "f(x) -> int",
                             "f(Tensor) -> Tensor",
                             "expected f(Tensor x) -> Tensor",
                             "f(Tensor x) -> Tensor.",
                             "f(Tensor x) -> Tensor a b",
                             "f(Tensor x,) -> Tensor",
                             "f(Tensor x=) -> int",
                             "f(Tensor x, *, *, int y) -> int",
                             "f(Tensor x) -> (Tensor",
                             "f(int[ x) -> int",
                             "f(int x=[1) -> int",
                             "1f() -> int",
                             "f(str s=\"x) -> int",
                             "f(str s=\"\\",
                             "auto f(int x) -> int",
                             "f(std::string x) -> int",
                             "f(Tensor x) - > int",
                             "f::g::h() -> int"}) {
        INFO(text);
        CHECK_FALSE(parse_schema(text));
    }
    CHECK_FALSE(parse_schema("f(" + std::string(100, '(') + "int) -> int"));
    CHECK_FALSE(parse_schema("f(int x=" + std::string(100, '[') + ") -> int"));
    CHECK_FALSE(parse_schema("f(Tensor " + std::string(longest_schema, 'x') + ") -> int"));
}

TEST_CASE("every cut of a schema is refused") {
    const std::string text =
        "f.o(Tensor(a!)? x=None, *, str s='y', int[] z=[1,2]) -> (Tensor[] a, int)";
    REQUIRE(parse_schema(text));
    for (std::size_t i = 0; i < text.size(); ++i) {
        CHECK_FALSE(parse_schema(text.substr(0, i)));
    }
}
