#pragma once
// kernelize --freeze: the kernelized model as torch::jit::freeze makes it, if it is right and, with
// --tune, if that is faster.

#include "base/json.h"
#include "worker/channel.h"
#include "worker/kernelizing.h"

#include <torch/script.h>

#include <string>

namespace twinkle::worker {

// Whether the model is to be frozen; without inputs as it was asked for.
struct Freezing {
    bool chosen = true;
    std::string because = "asked for";
    // What was measured: [{"size", "kernelized_us", "frozen_us", "speedup"}].
    base::Json sizes = base::Json::array();

    base::Json json() const;  // of a report: the three by their names
};

// Compares the frozen model's values and, with request.tune, its times in every size that is tuned.
// Nothing is frozen where it is slower in one, or faster in none. Throws Error(refused) where it
// cannot be frozen, or its values are not right; with request.tune that is only said.
// The report has the verdict on what is chosen.
Freezing decide_freezing(const Kernelizing& kernelizing, Kernelized& made,
                         const runtime::VerificationContext& context, const Request& request,
                         const Channel& channel);

// Writes it frozen, with its labels: in a child, as freezing computes what the model's code does
// with constants. Throws Error(refused).
void save_frozen(const Kernelized& made, const Request& request);

}  // namespace twinkle::worker
