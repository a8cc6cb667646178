#pragma once
// Proves on a run of the model how calls that a trace has inlined can be replaced.

#include "runtime/proof/question.h"
#include "runtime/trial/sandbox.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace twinkle::runtime {

// `run` runs the model. Throws its exceptions as Error(malformed).
std::vector<Answer> prove_calls(const std::vector<Question>& questions,
                                const std::function<void()>& run);

// The same in a child process: a crash there refuses the candidate that was tried. `device`: the
// GPU that `run` uses, if any.
std::vector<Answer> prove_calls_in_child(const std::vector<Question>& questions,
                                         const std::function<void()>& run,
                                         const SandboxLimits& limits,
                                         const std::optional<at::Device>& device = std::nullopt);

}  // namespace twinkle::runtime
