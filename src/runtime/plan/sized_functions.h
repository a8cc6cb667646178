#pragma once
// A function whose calls go to one of several, by the size of an argument.

#include <torch/csrc/jit/api/function_impl.h>

#include <tl/expected.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct SizedFunctions {
    std::size_t input = 0;  // the argument, a tensor
    // With the elements up to which each is called, in this order; the last one serves all others.
    std::vector<std::pair<torch::jit::Function*, std::int64_t>> parts;
};

// Its body. The error says why there can be none.
tl::expected<std::shared_ptr<torch::jit::Graph>, std::string> graph_of(
    const SizedFunctions& functions);

}  // namespace twinkle::runtime
