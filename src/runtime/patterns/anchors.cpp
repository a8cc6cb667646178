#include "runtime/patterns/anchors.h"

#include "runtime/patterns/cast.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

class Anchors {
public:
    Anchors(const FlatGraph& graph, const Formula& formula, Steps& steps)
        : graph_(graph),
          formula_(formula),
          steps_(steps),
          first_result_(behind_casts(formula.graph, formula.results[0])) {}

    std::vector<ValueId> find() {
        const auto count = [&](const c10::Symbol& op) {
            const auto found = graph_.by_op.find(op);
            return found == graph_.by_op.end() ? 0 : found->second.size();
        };
        for (const c10::Symbol& op : formula_.ops) {
            if (count(op) == 0) {
                return {};
            }
        }
        const auto way = way_from_rarest(count);
        const std::vector<std::int32_t>& begin = graph_.by_op.at(way.front());
        std::vector<std::int32_t> at;
        for (std::size_t i = 1; i < way.size() && (i == 1 || !at.empty()); ++i) {
            at = users(i == 1 ? begin : at, way[i]);
        }
        if (way.size() == 1) {
            at = begin;
        }
        std::vector<ValueId> values;
        for (const std::int32_t node : at) {
            const auto output =
                static_cast<std::size_t>(formula_.graph.value(first_result_).output);
            const FlatNode& one = graph_.node(node);
            if (output < one.outputs.size()) {
                // A cast of it is more of the formula, if that ends in one.
                if (formula_.results[0] != first_result_) {
                    for (const std::int32_t user : graph_.value(one.outputs[output]).users) {
                        if (is_cast(graph_.node(user))) {
                            values.push_back(graph_.node(user).outputs[0]);
                        }
                    }
                }
                values.push_back(one.outputs[output]);
            }
        }
        return values;
    }

private:
    // The operators from the rarest one that leads to the first result, that result's last.
    template <typename Count>
    std::vector<c10::Symbol> way_from_rarest(const Count& count) const {
        const FlatGraph& graph = formula_.graph;
        // Backwards from the result: by node, through which user it is reached.
        std::vector<std::int32_t> through(graph.nodes.size(), nothing);
        std::vector<std::int32_t> pending = {graph.value(first_result_).node};
        std::vector<bool> seen(graph.nodes.size(), false);
        seen[static_cast<std::size_t>(pending[0])] = true;
        const std::int32_t top = pending[0];
        std::int32_t rarest = top;
        while (!pending.empty()) {
            const std::int32_t at = pending.back();
            pending.pop_back();
            // A dtype that is asked for is a constant in a trace, and no operator.
            const std::size_t here = count(graph.node(at).op);
            if (here > 0 && here < count(graph.node(rarest).op)) {
                rarest = at;
            }
            for (const FlatInput& input : graph.node(at).inputs) {
                const std::int32_t under = graph.value(behind_casts(graph, input.value)).node;
                if (under != nothing && !seen[static_cast<std::size_t>(under)] &&
                    graph.value(behind_casts(graph, input.value)).parts == nothing) {
                    seen[static_cast<std::size_t>(under)] = true;
                    through[static_cast<std::size_t>(under)] = at;
                    pending.push_back(under);
                }
            }
        }
        std::vector<c10::Symbol> way;
        for (std::int32_t at = rarest; at != nothing; at = through[static_cast<std::size_t>(at)]) {
            way.push_back(graph.node(at).op);
        }
        return way;
    }

    // The nodes of an operator that use what these compute, be it cast before.
    std::vector<std::int32_t> users(const std::vector<std::int32_t>& of, const c10::Symbol& op) {
        std::vector<std::int32_t> found;
        std::vector<std::int32_t> casts;
        const auto look = [&](std::int32_t at) {
            for (const ValueId output : graph_.node(at).outputs) {
                for (const std::int32_t user : graph_.value(output).users) {
                    steps_.spend();
                    const FlatNode& one = graph_.node(user);
                    if (one.op == op) {
                        found.push_back(user);
                    } else if (is_cast(one) && mark_seen(user)) {
                        casts.push_back(user);
                    }
                }
            }
        };
        std::for_each(of.begin(), of.end(), look);
        for (std::size_t i = 0; i < casts.size(); ++i) {
            look(casts[i]);
        }
        for (const std::int32_t cast : casts) {
            seen_[static_cast<std::size_t>(cast)] = false;
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    bool is_cast(const FlatNode& node) const { return as_cast(graph_, node).has_value(); }

    // Whether it is for the first time.
    bool mark_seen(std::int32_t node) {
        seen_.resize(graph_.nodes.size());
        const bool known = seen_[static_cast<std::size_t>(node)];
        seen_[static_cast<std::size_t>(node)] = true;
        return !known;
    }

    const FlatGraph& graph_;
    const Formula& formula_;
    Steps& steps_;
    ValueId first_result_;    // behind the casts that the formula may end in
    std::vector<bool> seen_;  // by node
};

}  // namespace

std::vector<ValueId> possible_results(const FlatGraph& graph, const Formula& formula,
                                      Steps& steps) {
    return Anchors(graph, formula, steps).find();
}

}  // namespace twinkle::runtime
