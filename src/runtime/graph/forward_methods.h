#pragma once
// What the forward of an instance is: its methods that are calls of forward, and what they change.

#include <torch/script.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

// forward, and where a trace has called the instance several times forward1, forward2, … A method
// that somebody wrote under such a name is another method.
std::vector<torch::jit::Function*> forward_methods(const c10::ClassTypePtr& type);

// The attributes of its module that a method sets or writes into, and "input" where it writes into
// what it was given.
std::set<std::string> written_values(torch::jit::Function& method);

// What a view is a view of; every other value is its own root.
const torch::jit::Value* view_root(const torch::jit::Value* value);
// What a graph writes into, also in the functions that it calls: values that are no views of
// others.
std::set<const torch::jit::Value*> written_roots(const torch::jit::Block* block);
// Which inputs of a function that are, where some of them are known.
std::set<std::size_t> written_inputs(torch::jit::Function& function,
                                     const std::vector<std::optional<c10::IValue>>& known);

}  // namespace twinkle::runtime
