#pragma once
// A large result is fresh memory: the first write of each 4 KiB page is a page fault, which costs
// more than the computation. As NumPy does, ask for pages of 2 MiB; where the system gives none,
// nothing changes.

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace twinkle_pack {

inline void prefer_huge_pages(void* memory, int64_t bytes) {
#ifdef __linux__
    constexpr uintptr_t page = uintptr_t{1} << 21;
    if (bytes < int64_t{4 * page}) return;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + page - 1) & ~(page - 1);
    const uintptr_t end =
        (reinterpret_cast<uintptr_t>(memory) + static_cast<uintptr_t>(bytes)) & ~(page - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

}  // namespace twinkle_pack
