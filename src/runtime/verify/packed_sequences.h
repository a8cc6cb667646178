#pragma once
// Inputs that hold several sequences behind each other, as attention over different lengths takes
// them: integer offsets ("cu_seqlens") say which rows are whose. Rows without their offsets, or
// offsets without their rows, are no inputs that anybody means.

#include "runtime/model/inputs.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace twinkle::runtime {

class PackedSequences {
public:
    // None: no input is offsets into another one.
    static std::optional<PackedSequences> find(const Inputs& inputs);

    // 0: the inputs have offsets that say different things, so that no other sizes can be made.
    std::int64_t count() const { return consistent_ ? count_ : 0; }
    std::int64_t longest() const;

    // The first `count` sequences, from the first one again where there are fewer, each of at most
    // `length` rows; 0: as given. What has one row for each sequence goes with them, unless
    // `rows_alone`.
    Inputs resized(const Inputs& inputs, std::int64_t count, std::int64_t length,
                   bool rows_alone) const;

private:
    using Lengths = std::vector<std::int64_t>;

    void add(const Lengths& lengths, std::int64_t rows);
    at::Tensor resized(const at::Tensor& tensor, std::int64_t count, std::int64_t length,
                       bool rows_alone) const;

    std::map<std::int64_t, Lengths> lengths_;  // of sequences, by the number of all rows
    std::int64_t count_ = 0;
    bool consistent_ = true;
};

}  // namespace twinkle::runtime
