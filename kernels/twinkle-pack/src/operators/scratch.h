#pragma once
// A thread's memory for copies and sums; kept for its next call.

#include <cstdint>
#include <memory>

namespace twinkle_pack {

// Memory of its own, aligned to a line of the cache.
struct FreeLines {
    void operator()(char* memory) const;
};
using Lines = std::unique_ptr<char, FreeLines>;
Lines allocate_lines(int64_t bytes);  // throws std::bad_alloc

// Aligned to a line of the cache. What was there is lost. Throws std::bad_alloc.
void* scratch(int64_t bytes);

// The same for what all threads of a call read: asked for by the one that makes the call.
void* call_scratch(int64_t bytes);

}  // namespace twinkle_pack
