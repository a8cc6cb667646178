#pragma once
// Layer sources changed at random, compiled onto a host. Required of every one: no crash, no
// exception, not much time, and after a failure the class is as it was and the model can be saved.

#include <cstddef>
#include <cstdint>
#include <string>

namespace twinkle::fuzz {

struct MutationResult {
    bool compiled = false;
    std::string reason;
    double seconds = 0;
    std::string source;   // of layers.py
    std::string problem;  // a violation; empty: all is well
};

// The same number gives the same source.
MutationResult compile_mutated_layer(std::uint32_t number);

}  // namespace twinkle::fuzz
