#pragma once
// How to write large results.

#include <cstdint>

namespace twinkle_pack {

// A large result is fresh memory: the first write of each 4 KiB page is a page fault, which costs
// more than the computation. Requests pages of 2 MiB, as NumPy does; if the system gives none,
// nothing changes.
void prefer_huge_pages(void* memory, int64_t bytes);

// Whether an operator that moves so many bytes bypasses the cache with its stores: if they do not
// fit, reading the result's old contents first is wasted. TWINKLE_PACK_CACHE overrides the size of
// the last cache (bytes).
bool exceeds_cache(int64_t bytes_moved);

}  // namespace twinkle_pack
