#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

void for_each_node(const jit::Block* block, const std::function<void(const jit::Node*)>& visit) {
    for (const jit::Node* node : block->nodes()) {
        visit(node);
        for (const jit::Block* inner : node->blocks()) {
            for_each_node(inner, visit);
        }
    }
}

void for_each_node_and_forked(const jit::Block* block,
                              const std::function<void(const jit::Node*)>& visit) {
    for_each_node(block, [&](const jit::Node* node) {
        visit(node);
        if (node->hasAttribute(c10::attr::Subgraph)) {
            for_each_node_and_forked(node->g(c10::attr::Subgraph)->block(), visit);
        }
    });
}

std::vector<std::shared_ptr<jit::Graph>> graphs_of(const jit::Module& model) {
    std::vector<std::shared_ptr<jit::Graph>> graphs;
    std::unordered_set<const void*> units;
    for (const jit::Module& module : model.modules()) {
        const auto unit = module.type()->compilation_unit();
        if (!units.insert(unit.get()).second) {
            continue;
        }
        for (jit::Function* function : unit->get_functions()) {
            auto* compiled = function != nullptr ? jit::tryToGraphFunction(*function) : nullptr;
            if (compiled != nullptr) {
                graphs.push_back(compiled->graph());
            }
        }
    }
    return graphs;
}

bool is_tensor_constant(const jit::Node* node) {
    return node->kind() == c10::prim::Constant && node->hasAttribute(c10::attr::value) &&
           node->kindOf(c10::attr::value) == jit::AttributeKind::t;
}

std::vector<jit::Node*> tensor_constants(const jit::Module& model) {
    std::vector<jit::Node*> constants;
    for (const auto& graph : graphs_of(model)) {
        for_each_node_and_forked(graph->block(), [&](const jit::Node* node) {
            if (is_tensor_constant(node) && node->t(c10::attr::value).defined()) {
                constants.push_back(const_cast<jit::Node*>(node));
            }
        });
    }
    return constants;
}

}  // namespace twinkle::runtime
