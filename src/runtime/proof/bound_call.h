#pragma once
// What stands for a function, called as a binding says.

#include "runtime/proof/binding.h"

#include <tl/expected.hpp>

#include <memory>
#include <string>

namespace twinkle::runtime {

// The call as a graph that takes the inputs of the region; it gives what the substitute gives, or,
// once the binding's results are known, those of the region. The error says why it cannot be made.
tl::expected<std::shared_ptr<torch::jit::Graph>, std::string> graph_of(const Region& region,
                                                                       const Substitute& substitute,
                                                                       const CallBinding& binding);

// The region as far as the call gives its results: the others leak.
Region bound_part(Region region, const CallBinding& binding);

}  // namespace twinkle::runtime
