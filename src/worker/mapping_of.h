#pragma once
// The mapping of a request.

#include "protocol/request.h"
#include "twinkle/mapping.h"

namespace twinkle::worker {

// Throws Error(malformed) if there is none, or it cannot be read.
Mapping mapping_of(const protocol::Request& request);

}  // namespace twinkle::worker
