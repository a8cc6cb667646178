#pragma once
// In which method each place of a pattern is brought together.

#include "runtime/patterns/matcher.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

// The lowest method that holds all of a place, and the calls that become part of it for that.
struct PatternHome {
    std::int32_t frame = nothing;
    // Frames on the way of modules that do nothing else, and of those that do more: these are
    // opened.
    std::vector<std::int32_t> taken, opened;
};

struct PlacedMatch {
    std::size_t rule = 0;
    const Formula* formula = nullptr;
    FormulaMatch match;
    PatternHome home;
};

// Whether this frame is a method of a module of the model, and may be opened.
struct FrameTests {
    std::function<bool(const Frame&)> is_in_model;
    std::function<bool(const Frame&)> can_be_opened;
};

// Finds the homes of matches and leaves out those that have none. What lies in a method that a
// place opens belongs to the home of that place, too, in whatever turn they are replaced. Returns
// the frames that are opened.
std::unordered_set<std::int32_t> bring_together(const FlatGraph& graph,
                                                std::vector<PlacedMatch>& matches,
                                                const FrameTests& tests);

}  // namespace twinkle::runtime
