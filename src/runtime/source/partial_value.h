#pragma once
// functools.partial: a function with some of its arguments given.

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

// What stands for `partial` where its first argument is `function`: calling it with the others
// gives the partial.
std::shared_ptr<torch::jit::SugaredValue> partial_maker(
    std::shared_ptr<torch::jit::SugaredValue> function);

// A partial at the top of a module: its arguments become values where it is called.
struct BoundArgument {
    std::string name;  // empty: positional
    std::shared_ptr<torch::jit::SugaredValue> value;
};
std::shared_ptr<torch::jit::SugaredValue> partial_value(
    std::shared_ptr<torch::jit::SugaredValue> function, std::vector<BoundArgument> arguments);

}  // namespace twinkle::runtime
