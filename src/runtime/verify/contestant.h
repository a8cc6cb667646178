#pragma once
// Modules as contestants: their calls are run once to compare results, and repeatedly to measure
// times.

#include "runtime/model/inputs.h"
#include "runtime/verify/model_weights.h"

#include <torch/script.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

using Calls = std::vector<std::pair<std::string, Inputs>>;  // method, inputs

// One run of which does the same work several times.
struct RepeatedWork {
    std::function<void()> run;
    std::size_t times = 1;
};
// Makes a graph of the device of it (replay/captured_work.h), which holds the work so often; 0: as
// often as it takes to be longer than the graph's launch by far. Throws where that cannot be.
using CaptureWork =
    std::function<RepeatedWork(const std::function<void()>& work, std::size_t times)>;

// Seeds every run alike, so that dropout is the same in all modules that are compared.
c10::IValue run_seeded(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs);

// Runs all calls in turn; with `training`, forward and backward. Works on copies of the inputs, as
// the module may write to them, but for those that are weights of the model: contestants share
// them.
std::function<void()> contestant(const torch::jit::Module& module, const Calls& calls,
                                 bool training, const ModelWeights& weights = {});

// The weights that calls of a module read: its own, and those among the inputs.
std::vector<at::Tensor> weights_of(const torch::jit::Module& module, const Calls& calls,
                                   const ModelWeights& weights);

// Makes `to` use the parameters of `from` where they are alike. Of two models in memory, one may be
// better placed, or evict the other from the cache.
void share_parameters(const torch::jit::Module& from, const torch::jit::Module& to);

// Does the same for parameters that match only in name, dtype, sizes and strides: for timing a
// candidate of another layer. The results of `to` are wrong afterwards.
void lend_parameters(const torch::jit::Module& from, const torch::jit::Module& to);

}  // namespace twinkle::runtime
