#pragma once
// The measured operations, each with what people would run instead of the pack.

#include <string>
#include <vector>

namespace bench {

// The inputs of a layer; tensors are [tokens, width] unless noted.
enum class Inputs {
    one,     // x
    two,     // gate and up, or x and residual
    halves,  // x of [tokens, 2 * width]
    rotary,  // q and k of [1, heads, tokens, 128], as attention sees them; cos and sin of [1,
             // tokens, R]
};

struct Operation {
    std::string name;  // the pack's operator, and in brackets which of its forms
    Inputs inputs;
    int tensors;  // of [tokens, width]: that must be read or written
    // TorchScript methods. self has width, weight, bias and eps; `pack` and `community_…` are
    // namespaces of operators.
    std::string original, pack;
    std::string community;  // empty: kernels-community has none for the CPU
    int rotary_size = 128;  // R
    // `pack` computes the gradients; its first input is the result's gradient. `original` is the
    // forward.
    bool backward = false;
};

const std::vector<Operation>& operations();
const std::vector<Operation>& gradients();

}  // namespace bench
