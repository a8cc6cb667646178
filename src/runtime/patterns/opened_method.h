#pragma once
// A method in which calls become part of it, so that something can take the place of what lies on
// both sides of them; and where the values of what was called are then.

#include "runtime/patterns/flat_graph.h"

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

using ValueMap = std::unordered_map<torch::jit::Value*, torch::jit::Value*>;

// Graphs as they are now, though they may be edited later.
class UneditedGraphs {
public:
    struct Copy {
        std::shared_ptr<torch::jit::Graph> graph;
        ValueMap values;  // of the graph that was copied
    };

    void keep(const std::shared_ptr<torch::jit::Graph>& graph);
    const Copy* of(const std::shared_ptr<torch::jit::Graph>& graph) const;

private:
    std::unordered_map<const torch::jit::Graph*, Copy> copies_;
};

// Nothing is destroyed until clean(): until then every value has its address to itself.
class OpenedMethod {
public:
    OpenedMethod(const FlatGraph& flat, const UneditedGraphs& unedited, torch::jit::Graph& graph)
        : flat_(flat), unedited_(unedited), graph_(graph) {}

    // What a value of a frame is in the method. The calls between it and `home`, a frame of the
    // method, become part of it.
    torch::jit::Value* here(torch::jit::Value* value, std::int32_t frame, std::int32_t home);

    void replace(torch::jit::Value* value, torch::jit::Value* by);
    void set_dead(const std::vector<torch::jit::Node*>& nodes) {
        dead_.insert(nodes.begin(), nodes.end());
    }

    // Destroys what nobody reads any more.
    void clean();

private:
    using Path = std::vector<const torch::jit::Node*>;

    Path path_of(std::int32_t frame, std::int32_t home) const;
    const ValueMap& opened(std::int32_t frame, std::int32_t home);
    ValueMap insert(torch::jit::Node* call, const std::shared_ptr<torch::jit::Graph>& body);
    void take_known_branches(const ValueMap& values, std::int32_t frame, std::int32_t home);
    std::optional<bool> known_flag(const torch::jit::Value* value, std::int32_t frame,
                                   std::int32_t home) const;
    void take_branch(torch::jit::Node* choice, torch::jit::Block& taken);

    const FlatGraph& flat_;
    const UneditedGraphs& unedited_;
    torch::jit::Graph& graph_;
    std::map<Path, ValueMap> opened_;  // by the calls on the way
    ValueMap replaced_;
    std::unordered_set<const torch::jit::Node*> dead_;
};

}  // namespace twinkle::runtime
