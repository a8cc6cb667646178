#include "project/modes.h"

#include "catch.h"

using twinkle::project::parse_layer_mode;

TEST_CASE("modes in all their spellings") {
    CHECK(parse_layer_mode("inference") == "inference");
    CHECK(parse_layer_mode("train") == "training");
    CHECK(parse_layer_mode("training+compile") == "training+compile");
    CHECK(parse_layer_mode("compile+train") == "training+compile");
    CHECK(parse_layer_mode("compile") == "inference+compile");
    CHECK(parse_layer_mode("fallback") == "fallback");
    for (const char* wrong : {"", "infer", "inference+training", "compile+compile",
                              "fallback+compile", "inference+", "+compile", "Inference"}) {
        CHECK_FALSE(parse_layer_mode(wrong));
    }
}
