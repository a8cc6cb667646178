#pragma once
// A run of nodes cut into the calls that it is made of: neither stacks nor connections tell two
// calls of one line apart, but what they do in turn does.

#include "runtime/trace/traced_calls.h"

#include <cstddef>
#include <span>
#include <vector>

namespace twinkle::runtime {

struct RunPart {
    std::size_t begin = 0, count = 0;

    bool operator==(const RunPart&) const = default;
};
using RunSplit = std::vector<RunPart>;  // covers the run

// The ways of cutting it that are worth trying: into equal words, most calls first, into parts of
// `word`, what a whole call does, where the first label returns, and where any does.
std::vector<RunSplit> splits_of(std::span<const TraceLabel> labels,
                                std::span<const TraceLabel> word);

// The shortest word that the labels are a repetition of.
std::span<const TraceLabel> word_of(std::span<const TraceLabel> labels);

}  // namespace twinkle::runtime
