#pragma once
// The Python stack that a traced node was made under, as its source range keeps it.

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

struct StackFrame {
    std::string file;
    int line = 0;
    std::string function;
};

// The frames of the functions between a node and the forward of the module that it stands in,
// innermost first, and the frame of that forward behind them. Empty for what no function but the
// forward has made.
std::span<const StackFrame> functions_around(const std::vector<StackFrame>& stack);

// Reads every stack once; nodes share them.
class StackReader {
public:
    // Innermost first, up to the call of the module that it stands in; none for a node that was
    // scripted or has no range. What is returned stays where it is, one for each stack.
    const std::vector<StackFrame>& stack_of(const torch::jit::Node* node);

private:
    std::unordered_map<std::shared_ptr<torch::jit::Source>, std::vector<StackFrame>> stacks_;
};

}  // namespace twinkle::runtime
