#pragma once
// How calls that a trace has inlined may be replaced, and what a run of the model says of it.

#include "runtime/proof/binding.h"
#include "runtime/source/substitutes.h"
#include "runtime/trace/region.h"

#include <tl/expected.hpp>

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

}  // namespace twinkle::runtime
