// A short run of the fuzzer of formulas (tests/fuzz/fuzz_formulas.cpp).

#include "fuzz/mutated_formulas.h"

#include "catch.h"

TEST_CASE("mutated formulas are compiled or refused, and leave a model with what it computes") {
    std::size_t compiled = 0;
    std::size_t refused = 0;
    std::size_t found = 0;
    for (std::uint32_t number = 0; number < 200; ++number) {
        const auto result = twinkle::fuzz::try_mutated_formulas(number);
        INFO(result.source);
        CHECK(result.problem == "");
        compiled += result.compiled;
        refused += result.refused;
        found += result.found;
    }
    CHECK(compiled > 20);
    CHECK(refused > 20);
    CHECK(found > 5);
}
