#pragma once
// Proves on a run of the model how calls that a trace has inlined can be replaced.

#include "runtime/proof/binding.h"
#include "runtime/source/substitutes.h"
#include "runtime/trace/region.h"
#include "runtime/trial/sandbox.h"

#include <tl/expected.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A run of nodes: the ways of cutting it into calls, as regions or why they are none.
struct Question {
    std::vector<std::vector<tl::expected<Region, std::string>>> splits;
    // For its function, by candidate in the order of preference; at least one.
    std::vector<const Substitutes*> candidates;
};

struct Answer {
    using Bound = tl::expected<CallBinding, std::string>;

    std::size_t split = 0;                  // the first candidate that fits decides
    std::vector<std::vector<Bound>> calls;  // of that split, each by candidate
};

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
