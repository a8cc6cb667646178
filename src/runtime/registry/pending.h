#pragma once
// Functions that a program has registered for all later models.

#include "twinkle/report.h"

#include <torch/script.h>

#include <optional>

namespace twinkle::runtime {

// Replaces them in this model; none: nothing is pending.
std::optional<Report> apply_pending(torch::jit::Module& model);

}  // namespace twinkle::runtime
