#pragma once
// The given inputs in other sizes: a kernel that is right on one row may silently read past the end
// on two. Values are taken from the given ones, reordered and repeated, so that ids stay ids and
// masks stay masks. Packed sequences (packed_sequences.h) have their number as the batch, and the
// longest one as the length.

#include "runtime/model/inputs.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SizeVariant {
    // For inputs that have such a dimension; 0: as given.
    std::int64_t batch = 0;
    std::int64_t length = 0;
    // Variants with the same number are alternative ways to the same sizes: the first that the
    // original accepts counts.
    std::size_t number = 0;
    // The batch and length dimensions are recognized by their sizes. If that matches too
    // many, strict_batch leaves out vectors, and strict_length takes the second dimension
    // only.
    bool strict_batch = false;
    bool strict_length = false;
    bool from_end = false;  // shorter tensors take the last values, not the first
    bool tuned = false;     // candidates are measured in it, too
    bool instead = false;   // only where the original accepts no other length

    // Inputs that the user has given for another size, instead of any made of the first.
    std::shared_ptr<const Inputs> own{};

    std::string name() const;  // "batch 2, length 3"; "other inputs"
    Inputs of(const Inputs& given) const;
};

// Batches and lengths of 1, 2, 3 and an odd length that differ from the given ones. Few and small,
// whatever the size of the given inputs.
std::vector<SizeVariant> size_variants(const Inputs& given);

// Sizes to measure in: the length of the inputs or, where the original accepts no other length,
// the batch. None wanted: powers of four below the given one. Beside each comes one that is one
// less and serves to compare values: a kernel may be right for even sizes alone. The numbers of
// these variants go on from `first_number`.
std::vector<SizeVariant> tuned_sizes(const Inputs& given, const std::vector<std::int64_t>& wanted,
                                     std::size_t first_number);

// Returns those of `wanted`, which tuned_sizes was given, that are neither the size of the given
// inputs nor one that the original accepts.
std::vector<std::int64_t> unmeasured_sizes(const Inputs& given, std::vector<std::int64_t> wanted,
                                           const std::vector<SizeVariant>& accepted);

// "int64[2,8];float32[2,8,64]": the format of --inputs.
std::string shapes_text(const Inputs& inputs);

}  // namespace twinkle::runtime
