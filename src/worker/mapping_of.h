#pragma once
// What a request names: its mapping, its kernel.

#include "protocol/request.h"
#include "twinkle/mapping.h"

#include <filesystem>

namespace twinkle::worker {

// Throws Error(malformed) if there is none, or it cannot be read.
Mapping mapping_of(const protocol::Request& request);
// The folder of its kernel. Throws Error(malformed) if there is none.
const std::filesystem::path& kernel_of(const protocol::Request& request);

}  // namespace twinkle::worker
