#pragma once
// A thread's memory for copies and sums; kept for its next call.

#include <cstdint>

namespace twinkle_pack {

// Aligned to a line of the cache. What was there is lost. Throws std::bad_alloc.
void* scratch(int64_t bytes);

// The same for what all threads of a call read: asked for by the one that makes the call.
void* call_scratch(int64_t bytes);

}  // namespace twinkle_pack
