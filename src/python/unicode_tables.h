#pragma once
// Code points from 0x80 on that Python allows in identifiers, as sorted ranges.

#include <cstdint>
#include <span>

namespace twinkle::python {

struct CodeRange {
    std::uint32_t first;
    std::uint32_t last;
};

std::span<const CodeRange> identifier_start_ranges();
std::span<const CodeRange> identifier_continue_ranges();
// Returns those that NFKC changes, or may join to the character before them. Python compares
// identifiers after that normalization.
std::span<const CodeRange> normalization_unstable_ranges();

}  // namespace twinkle::python
