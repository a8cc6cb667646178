// A short run of the fuzzer of layer sources (tests/fuzz/fuzz_layers.cpp).

#include "fuzz/mutated_layers.h"

#include "catch.h"

TEST_CASE("mutated layer sources are compiled or refused, and leave the class as it was") {
    int compiled = 0;
    for (std::uint32_t number = 0; number < 300; ++number) {
        const auto result = twinkle::fuzz::compile_mutated_layer(number);
        INFO(result.source);
        CHECK(result.problem == "");
        compiled += result.compiled ? 1 : 0;
    }
    CHECK(compiled > 10);
    CHECK(compiled < 290);
}
