#pragma once

#include <cstddef>

namespace twinkle::base {

constexpr std::size_t huge_page = std::size_t{1} << 21;

// Asks Linux for huge pages for the whole ones in this memory (madvise(2), MADV_HUGEPAGE): what is
// read once from beginning to end costs fewer steps to find, and the CPU drops no prefetch of it.
// Elsewhere, or where the system refuses, nothing changes.
void prefer_huge_pages(void* memory, std::size_t bytes);

// Whether Linux may give some to who asks for them, by
// /sys/kernel/mm/transparent_hugepage/enabled.
bool has_huge_pages();

}  // namespace twinkle::base
