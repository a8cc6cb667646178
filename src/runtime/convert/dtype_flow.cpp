#include "runtime/convert/dtype_flow.h"

#include "runtime/convert/dtype_follower.h"
#include "runtime/graph/class_name.h"
#include "runtime/graph/stack_frames.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t most_pins = 6;

// Equal layers are traced from the same lines: their constants mean the same. Without the stacks,
// the n-th constant of the methods of one class do.
class Sources {
public:
    Sources(const std::map<const jit::Graph*, std::string>& names, StackReader& stacks)
        : names_(names), stacks_(stacks) {}

    // The constants that mean the same, in the order in which they are reached.
    std::vector<std::vector<Place>> groups(const DtypeFlow& flow) {
        std::map<const jit::Graph*, std::vector<Place>> by_graph;
        for (const auto& [place, meaning] : flow.constants) {
            by_graph[place.first->owningGraph()].push_back(place);
        }
        std::map<std::string, std::vector<Place>> groups;
        for (auto& [graph, places] : by_graph) {
            std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
                return a.first == b.first ? a.second < b.second : a.first->isBefore(b.first);
            });
            std::map<std::string, std::size_t> met;
            for (const Place& place : places) {
                const std::string source = source_of(place.first, graph);
                groups[source + " " + std::to_string(met[source]++)].push_back(place);
            }
        }
        std::vector<std::vector<Place>> result;
        for (auto& [source, places] : groups) {
            result.push_back(std::move(places));
        }
        return result;
    }

private:
    std::string source_of(const jit::Node* node, const jit::Graph* graph) {
        const auto& frames = stacks_.stack_of(node);
        if (!frames.empty()) {
            return frames.front().file + ":" + std::to_string(frames.front().line);
        }
        const auto name = names_.find(graph);
        return name == names_.end() ? "" : name->second;
    }

    const std::map<const jit::Graph*, std::string>& names_;
    StackReader& stacks_;
};

using Pins = std::map<Place, DtypeMeaning>;

std::size_t penalty(const DtypeFlow& flow) {
    return flow.cost + 1000 * flow.conflicts.size();
}

class Search {
public:
    Search(const jit::Module& model, const DtypeSettings& settings)
        : model_(model), settings_(settings), names_(method_names(model)) {}

    DtypeFlow run() {
        DtypeFlow best = settled({});
        if (!settings_.ambiguous()) {
            best.conflicts.clear();  // it ran as it is, and no meaning is in question
            return best;
        }
        Sources sources(names_, stacks_);
        const auto groups = sources.groups(best);
        Pins pins;
        for (std::size_t round = 0; round < most_pins && worth(best) > 0; ++round) {
            if (!improve(groups, pins, best)) {
                break;
            }
        }
        return best;
    }

private:
    // What had to be rounded costs more than a meaning that is not likely.
    static std::size_t worth(const DtypeFlow& flow) {
        return penalty(flow) + 3 * flow.rounded.size();
    }

    DtypeFlow follow(const Pins& pins, const std::set<const jit::Value*>& rounded) {
        return DtypeFollower(model_, settings_, pins, rounded, names_, stacks_).follow();
    }

    // Follows with as many values rounded as it takes.
    DtypeFlow settled(const Pins& pins) {
        std::set<const jit::Value*> rounded;
        for (;;) {
            DtypeFlow flow = follow(pins, rounded);
            const std::size_t before = rounded.size();
            for (const auto& [node, conflict] : flow.conflicts) {
                if (conflict.second != nullptr && settings_.ambiguous()) {
                    rounded.insert(conflict.second);
                }
            }
            if (rounded.size() == before) {
                return flow;
            }
        }
    }

    // A cast of what is float32 already may be a literal one; a tensor made as float32 may be made
    // for the weights. The other way round precision would be lost: that is never tried.
    static Pins turned(const std::vector<Place>& group, const DtypeFlow& flow) {
        Pins pins;
        for (const Place& place : group) {
            const bool weights = flow.constants.at(place) == DtypeMeaning::weights;
            const bool made = place.first->kind() != c10::aten::to;
            if (weights) {
                pins[place] = DtypeMeaning::literal;
            } else if (made) {
                pins[place] = DtypeMeaning::weights;
            }
        }
        return pins;
    }

    bool improve(const std::vector<std::vector<Place>>& groups, Pins& pins, DtypeFlow& best) {
        const std::size_t before = worth(best);
        Pins best_pins;
        const auto attempt = [&](Pins more) {
            more.insert(pins.begin(), pins.end());
            DtypeFlow flow = settled(more);
            if (worth(flow) < worth(best)) {
                best = std::move(flow);
                best_pins = std::move(more);
            }
        };
        const DtypeFlow now = best;
        std::vector<Pins> turns;
        for (const auto& group : groups) {
            if (Pins turn = turned(group, now); !turn.empty()) {
                turns.push_back(std::move(turn));
            }
        }
        for (const Pins& turn : turns) {
            attempt(turn);
        }
        for (std::size_t a = 0; a < turns.size() && worth(best) == before; ++a) {
            for (std::size_t b = a + 1; b < turns.size(); ++b) {
                Pins both = turns[a];
                both.insert(turns[b].begin(), turns[b].end());
                attempt(std::move(both));
            }
        }
        if (worth(best) == before) {
            return false;
        }
        pins = std::move(best_pins);
        return true;
    }

    const jit::Module& model_;
    const DtypeSettings& settings_;
    const std::map<const jit::Graph*, std::string> names_;
    StackReader stacks_;
};

}  // namespace

std::map<const jit::Graph*, std::string> method_names(const jit::Module& model) {
    std::map<const jit::Graph*, std::string> names;
    for (const jit::Module& module : model.modules()) {
        for (jit::Function* method : module.type()->methods()) {
            if (auto* compiled = jit::tryToGraphFunction(*method)) {
                names.emplace(
                    compiled->graph().get(),
                    unmangled(module.type()->name()->qualifiedName()) + "." + method->name());
            }
        }
    }
    return names;
}

DtypeFlow dtype_flow(const jit::Module& model, const DtypeSettings& settings) {
    return Search(model, settings).run();
}

}  // namespace twinkle::runtime
