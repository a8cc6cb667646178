#pragma once
// Cuts a run of nodes into the calls that it consists of. Neither stacks nor connections tell two
// calls on one line apart, but the sequence of their operations does.

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

// The ways of cutting that are worth a try: into equal words (most calls first), into parts of
// `word` (the operations of a whole call), where the first label recurs, and where any label does.
std::vector<RunSplit> splits_of(std::span<const TraceLabel> labels,
                                std::span<const TraceLabel> word);

// The shortest word of which the labels are a repetition.
std::span<const TraceLabel> word_of(std::span<const TraceLabel> labels);

}  // namespace twinkle::runtime
