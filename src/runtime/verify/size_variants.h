#pragma once
// The given inputs in other sizes: a kernel that is right on one row may read past an end on two,
// without a word. Values are those that were given, chosen again and repeated, so that ids stay
// ids and masks stay masks. Of packed sequences (packed_sequences.h) the batch is how many they
// are, and the length that of the longest.

#include "runtime/model/inputs.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SizeVariant {
    // Of inputs that have it; 0: as given.
    std::int64_t batch = 0;
    std::int64_t length = 0;
    // Variants of one number are ways to the same sizes: the first that the original accepts
    // counts.
    std::size_t number = 0;
    // Which dimensions are the batch, or the length, is told by their sizes; where that means more
    // dimensions than it should: only the first dimension of what has several, only the second.
    bool strict_batch = false;
    bool strict_length = false;
    bool from_end = false;  // what is shorter has the last of the values, not the first

    std::string name() const;  // "batch 2, length 3"
    Inputs of(const Inputs& given) const;
};

// Batches and lengths of 1, 2, 3 and an odd length, those that differ from the given ones. Few and
// small, whatever the size of what was given.
std::vector<SizeVariant> size_variants(const Inputs& given);

// "int64[2,8];float32[2,8,64]": as --inputs takes it.
std::string shapes_text(const Inputs& inputs);

}  // namespace twinkle::runtime
