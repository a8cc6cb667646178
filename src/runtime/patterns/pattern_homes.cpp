#include "runtime/patterns/pattern_homes.h"

#include <c10/util/SmallVector.h>

#include <algorithm>

namespace twinkle::runtime {

namespace {

class Homes {
public:
    Homes(const FlatGraph& graph, const FrameTests& tests) : graph_(graph), tests_(tests) {}

    std::optional<PatternHome> lowest(const FormulaMatch& match) const {
        std::int32_t home = graph_.node(match.nodes.front()).frame;
        for (const std::int32_t node : match.nodes) {
            std::int32_t other = graph_.node(node).frame;
            while (home != other) {
                std::int32_t& deeper = frame(home).depth > frame(other).depth ? home : other;
                deeper = frame(deeper).parent;
                if (deeper == nothing) {
                    return std::nullopt;
                }
            }
        }
        return in_method_above(match, home);
    }

    // Puts the home at this frame, or above it: functions have no places.
    std::optional<PatternHome> in_method_above(const FormulaMatch& match, std::int32_t home) const {
        while (frame(home).object == nullptr) {
            home = frame(home).parent;
            if (home == nothing) {
                return std::nullopt;
            }
        }
        return tests_.is_in_model(frame(home)) ? with_calls(match, home) : std::nullopt;
    }

    // Whether all of it that lies in the home does so outside of branches.
    bool can_be_lifted(const PlacedMatch& placed) const {
        const std::int32_t home = placed.home.frame;
        const auto* body = frame(home).graph->block();
        return std::all_of(placed.match.nodes.begin(), placed.match.nodes.end(),
                           [&](std::int32_t index) {
                               const torch::jit::Node* node = graph_.node(index).node;
                               for (std::int32_t at = graph_.node(index).frame; at != home;
                                    at = frame(at).parent) {
                                   node = frame(at).call;
                               }
                               return node->owningBlock() == body;
                           });
    }

private:
    const Frame& frame(std::int32_t id) const { return graph_.frame(id); }

    // None: some of it lies in a branch of what is called, which no call can take the place of.
    std::optional<PatternHome> with_calls(const FormulaMatch& match, std::int32_t home) const {
        c10::SmallVector<std::pair<std::int32_t, std::int32_t>, 8> crossed;  // frame, nodes in it
        for (const std::int32_t node : match.nodes) {
            const FlatNode& one = graph_.node(node);
            if (one.frame != home && one.node->owningBlock() != frame(one.frame).graph->block()) {
                return std::nullopt;
            }
            for (std::int32_t at = one.frame; at != home; at = frame(at).parent) {
                auto known = std::find_if(crossed.begin(), crossed.end(),
                                          [&](const auto& entry) { return entry.first == at; });
                if (known == crossed.end()) {
                    crossed.emplace_back(at, 0);
                    known = crossed.end() - 1;
                }
                ++known->second;
            }
        }
        PatternHome made{home, {}, {}};
        for (const auto& [at, count] : crossed) {
            const Frame& one = frame(at);
            if (one.parent != home && one.call->owningBlock() != frame(one.parent).graph->block()) {
                return std::nullopt;
            }
            if (one.object != nullptr) {
                (count >= one.nodes ? made.taken : made.opened).push_back(at);
            }
        }
        return made;
    }

    const FlatGraph& graph_;
    const FrameTests& tests_;
};

}  // namespace

std::unordered_set<std::int32_t> bring_together(const FlatGraph& graph,
                                                std::vector<PlacedMatch>& matches,
                                                const FrameTests& tests) {
    const Homes homes(graph, tests);
    std::unordered_set<std::int32_t> closed;  // something in it would be lost
    std::erase_if(matches, [&](PlacedMatch& one) {
        auto home = homes.lowest(one.match);
        if (!home) {
            return true;
        }
        one.home = *std::move(home);
        if (one.match.problem.empty() && !homes.can_be_lifted(one)) {
            closed.insert(one.home.frame);
        }
        return false;
    });
    std::unordered_set<std::int32_t> opened;
    std::erase_if(matches, [&](const PlacedMatch& one) {
        const auto& all = one.home.opened;
        const bool possible = std::all_of(all.begin(), all.end(), [&](std::int32_t at) {
            return !closed.contains(at) && tests.can_be_opened(graph.frame(at));
        });
        if (possible && one.match.problem.empty()) {
            opened.insert(all.begin(), all.end());
        }
        return !all.empty() && (!possible || !one.match.problem.empty());
    });
    for (PlacedMatch& one : matches) {
        while (opened.contains(one.home.frame)) {
            auto above = homes.in_method_above(one.match, graph.frame(one.home.frame).parent);
            if (!above) {
                break;
            }
            one.home = *std::move(above);
        }
    }
    return opened;
}

}  // namespace twinkle::runtime
