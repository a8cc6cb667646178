#pragma once
// What a function's result looks like, for replacements that write into a tensor they are given.

#include <torch/csrc/jit/api/function_impl.h>

#include <tl/expected.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A result with the shape and dtype of an argument, or with half of its last dimension.
struct ResultLike {
    std::size_t argument = 0;
    bool halved = false;
};

// Found by running the function without values, at several shapes and dtypes; only one that is
// straight-line code of LibTorch's operators. `constants`: the arguments that are known.
tl::expected<ResultLike, std::string> result_like(
    torch::jit::Function& function, const std::vector<std::optional<c10::IValue>>& constants);

// An uninitialized tensor like that, made in the graph.
torch::jit::Value* make_like(torch::jit::Graph& graph, const ResultLike& like,
                             torch::jit::Value* argument);

}  // namespace twinkle::runtime
