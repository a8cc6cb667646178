#pragma once
// Where a flat graph computes a formula.

#include "runtime/patterns/formula.h"

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct MatchedParameter {
    FlatInput use;                        // what the formula's operators read there
    std::optional<c10::IValue> constant;  // a number, flag, text or None that is known
};

// What a place computes inside of it, but only its number of dimensions is asked for elsewhere:
// that of what the place reads is the same.
struct AskedForDimensions {
    ValueId inside = nothing;
    FlatInput same;
};

struct FormulaMatch {
    std::vector<std::int32_t> nodes;  // sorted
    std::vector<ValueId> results;
    std::vector<MatchedParameter> parameters;
    std::vector<AskedForDimensions> dimensions;
    std::string problem;  // why nothing else can stand there; empty: something can
};

// What looking for one formula may cost; the error says that it was more.
struct MatchLimits {
    std::size_t steps_per_place = 5'000;
    std::size_t steps = 2'000'000;
};

// Returns them in the order of their first results. One place is the first result that is found
// there.
tl::expected<std::vector<FormulaMatch>, std::string> find_formula(const FlatGraph& graph,
                                                                  const Formula& formula,
                                                                  const MatchLimits& limits = {});

}  // namespace twinkle::runtime
