#pragma once
// The original's own error on a few values is random: it may round luckily where a correct
// replacement does not. Its errors on inputs that differ by a rounding are as much its own, and
// more of them.

#include "runtime/model/inputs.h"
#include "runtime/verify/comparison.h"

#include <torch/script.h>

#include <functional>
#include <vector>

namespace twinkle::runtime {

// Whether a result that exceeds its bound is near enough to it for luck to be the reason.
bool may_be_luck(const Comparison& compared);

// What the rule allows by the largest error of the original on perturbed inputs, for each tensor
// among the results, but at most three times what `compared` was allowed: a perturbation may tip a
// comparison over in the original, and then the error says nothing. `original` takes inputs that it
// may write into. The same inputs give the same bounds.
std::vector<Bound> bounds_nearby(const std::function<c10::IValue(const Inputs&)>& original,
                                 const Inputs& inputs, const c10::IValue& reference,
                                 const Comparison& compared, Norm norm, const Tolerance& tolerance);

// What a result is compared with, and how to run it again.
struct Yardstick {
    c10::IValue result;
    Inputs inputs;
    std::function<c10::IValue(const Inputs&)> run;
    torch::jit::Module model;  // its buffers are afterwards what they were before
};

// Does as `compare`, but a result just over its bound may use the wider bounds of bounds_nearby, in
// case the original rounded luckily. Returns the plain bounds, as luck differs by size.
Comparison compare_beyond_luck(const c10::IValue& result, const Yardstick& original,
                               const c10::IValue& reference, Norm norm, Tolerance tolerance);

}  // namespace twinkle::runtime
