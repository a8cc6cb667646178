#pragma once
// The call of a function's substitute, as a binding says.

#include "runtime/proof/binding.h"

#include <tl/expected.hpp>

#include <memory>
#include <string>

namespace twinkle::runtime {

// The call as a graph that takes the inputs of the region. It returns what the substitute returns
// or, once the binding's results are known, the results of the region. The error says why it cannot
// be made.
tl::expected<std::shared_ptr<torch::jit::Graph>, std::string> graph_of(const Region& region,
                                                                       const Substitute& substitute,
                                                                       const CallBinding& binding);

// The part of the region whose results the call gives; the other results leak.
Region bound_part(Region region, const CallBinding& binding);

}  // namespace twinkle::runtime
