#pragma once
// Formulas of patterns changed at random, compiled, searched for in a small model, and replaced by
// calls there. Required of every one: no crash, no exception, not much time, and the model computes
// the same as before.

#include <cstddef>
#include <cstdint>
#include <string>

namespace twinkle::fuzz {

struct FormulaResult {
    std::size_t compiled = 0, refused = 0, found = 0;
    double seconds = 0;
    std::string source;
    std::string problem;  // a violation; empty: all is well
};

// The same number gives the same source.
FormulaResult try_mutated_formulas(std::uint32_t number);

}  // namespace twinkle::fuzz
