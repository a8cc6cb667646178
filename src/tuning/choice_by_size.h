#pragma once
// Which candidate serves calls of which size, from what was measured in some of them.

#include <cstdint>
#include <optional>
#include <vector>

#include "tuning/entry.h"

namespace twinkle::tuning {

// Calls with up to `rows` rows, more than half as many (size_bucket). Candidates are numbered in
// the fixed order; the first is the original.
struct MeasuredSize {
    std::int64_t rows = 1;
    std::vector<std::optional<Times>> times{};  // by candidate; empty: nothing was measured here
    std::vector<bool> banned{};                 // by candidate: it is wrong here
};

struct SizePart {
    std::size_t candidate = 0;
    std::int64_t up_to = 0;  // rows; the last part serves all others

    bool operator==(const SizePart&) const = default;
};

// The nearest size in which anything was measured decides (by the ratio of rows; the smaller of two
// equally near ones): the first candidate that is not surely slower than the fastest, of those that
// are wrong neither there nor in the nearest size in which values were compared. The original where
// nothing was measured. Of candidates that cannot be told apart those are taken that make the
// fewest parts, the original among them: in a branch TorchScript fuses of it only what its first
// runs have reached.
std::vector<SizePart> choose_by_size(const std::vector<MeasuredSize>& sizes);

// The first in this order that is not surely slower than the fastest; -1: there is none.
std::ptrdiff_t first_not_slower(const std::vector<std::optional<Times>>& in_order);

}  // namespace twinkle::tuning
