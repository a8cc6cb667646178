#include "kernel/operators.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/file.h"
#include "base/temp_folder.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::kernel;

namespace {

// This program serves as the library: its constants are found in its own file.
const char* volatile constants[] = {
    "twinkle_test_norm(Tensor x, float eps) -> Tensor",
    "twinkle_ns::twinkle_test_own(Tensor! out) -> ()",
    "twinkle_other::twinkle_test_foreign(Tensor x) -> ()",
    "twinkle_test_prose(a sentence) -> not a schema",
    "but the result (or not) istwinkle_test_behind(Tensor x, int n) -> Tensor?",
};

bool has(const std::vector<MappedOperator>& operators, std::string_view name) {
    for (const MappedOperator& op : operators) {
        if (op.name == name) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("schemas are found among the constants of an ELF file") {
    REQUIRE(constants[0] != nullptr);
    const auto operators = find_operators("/proc/self/exe", "twinkle_ns");
    CHECK(has(operators, "twinkle_test_norm"));
    CHECK(has(operators, "twinkle_test_own"));
    CHECK_FALSE(has(operators, "twinkle_test_foreign"));
    CHECK_FALSE(has(operators, "twinkle_test_prose"));
}

TEST_CASE("a schema right behind other text is found, if the package calls it") {
    CHECK_FALSE(has(find_operators("/proc/self/exe", ""), "twinkle_test_behind"));
    const auto operators =
        find_operators("/proc/self/exe", "",
                       {{"layers.py", "y = ops.twinkle_test_behind(x, 1)\nops.behind(x)\n"}});
    REQUIRE(has(operators, "twinkle_test_behind"));
    CHECK_FALSE(has(operators, "behind"));
    for (const MappedOperator& op : operators) {
        CHECK((op.name != "twinkle_test_behind" ||
               op.schema == op.name + "(Tensor x, int n) -> Tensor?"));
    }
}

TEST_CASE("files that are no ELF, cut or changed, have fewer operators and never crash") {
    test::TempFolder folder;
    CHECK(find_operators(folder.write("text.so", "f(Tensor x) -> Tensor"), "").empty());
    CHECK(find_operators(folder.write("empty.so", ""), "").empty());
    CHECK(find_operators(folder.write("magic.so",
                                      "\x7f"
                                      "ELF"),
                         "")
              .empty());

    const std::string whole = base::read_file("/bin/true", "program");
    std::mt19937 random(5);
    std::uint64_t table = 0;  // the section headers are where a change hurts most
    std::memcpy(&table, whole.data() + 40, sizeof table);
    for (int i = 0; i < 300; ++i) {
        std::string changed = whole;
        if (i % 3 == 0) {
            changed.resize(random() % changed.size());
        }
        for (int k = 0; k < 8 && !changed.empty(); ++k) {
            const std::size_t range =
                i % 2 == 0 ? 64 : changed.size() - std::min<std::size_t>(changed.size() - 1, table);
            const std::size_t base = i % 2 == 0 ? 0 : changed.size() - range;
            changed[std::min(changed.size() - 1, base + random() % range)] =
                static_cast<char>(random());
        }
        find_operators(folder.write("changed.so", changed), "");
    }
}

TEST_CASE("an operator whose schema a linker has merged into another one is found by its call") {
    std::vector<MappedOperator> operators{{"fused_norm", "fused_norm(Tensor x) -> Tensor"}};
    add_merged_operators(operators, {{"layers.py", "y = ops.norm(x)\nz = ops.fused_norm(x)\n"},
                                     {"_ops.py", "ops = torch.ops._a_1\ntorch.ops.a.missing"}});
    REQUIRE(operators.size() == 2);
    CHECK(operators[1].name == "norm");
    CHECK(operators[1].schema == "norm(Tensor x) -> Tensor");
}

TEST_CASE("of several schemas that end with a called name it is the one that the calls fit") {
    const std::vector<MappedOperator> both{
        {"linear_silu",
         "linear_silu(Tensor x, Tensor weight, Tensor? bias, *, int way=0) -> Tensor"},
        {"mul_and_silu", "mul_and_silu(Tensor x, *, int grain=0) -> Tensor"}};
    const auto silu_of = [&](const char* source) {
        auto operators = both;
        add_merged_operators(operators, {{"layers.py", source}});
        REQUIRE(operators.size() == 3);
        CHECK(operators[2].name == "silu");
        return operators[2].schema;
    };
    const std::string plain = "silu(Tensor x, *, int grain=0) -> Tensor";
    CHECK(silu_of("y = ops.silu(x)") == plain);
    CHECK(silu_of("y = ops.silu(f(x, y, z)[1, 2], grain=3,\n)") == plain);
    CHECK(silu_of("y = ops.silu(x)\nz = ops.silu(*all)\nname = ops.silu\n") == plain);
    for (const char* other : {"y = ops.silu(x, w, b)", "y = ops.silu(x, w, b, way=2)",
                              "y = ops.silu(*all)", "y = ops.silu(x", "name = ops.silu"}) {
        CHECK(silu_of(other).starts_with("silu(Tensor x, Tensor weight"));
    }
}

TEST_CASE("as many names and schemas as files hold are compared in no time") {
    std::vector<MappedOperator> operators;
    std::string source;
    for (int i = 0; i < 100'000; ++i) {
        const std::string number = std::to_string(i);
        operators.push_back({"f_" + number, "f_" + number + "() -> ()"});
        source += "ops.g" + number + "\n";
    }
    add_merged_operators(operators, {{"layers.py", source}});
    CHECK(operators.size() == 100'000);
}
