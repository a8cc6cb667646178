#pragma once
// Modules as contestants: the calls that are run, once to compare what they give, and over and over
// to measure what they take.

#include "runtime/model/inputs.h"

#include <torch/script.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

using Calls = std::vector<std::pair<std::string, Inputs>>;  // method, inputs

// Every run draws the same random numbers: dropout is then the same in all that are compared.
c10::IValue run_seeded(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs);

// All calls, one after the other; with `training`, forward and backward. On copies of the inputs,
// which the module may write to.
std::function<void()> contestant(const torch::jit::Module& module, const Calls& calls,
                                 bool training);

// Lets the parameters of `to` be those of `from`, where they are alike: of two models in memory one
// may lie better than the other, and one may push the other out of the cache.
void share_parameters(const torch::jit::Module& from, const torch::jit::Module& to);

}  // namespace twinkle::runtime
