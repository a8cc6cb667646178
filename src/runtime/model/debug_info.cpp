#include "runtime/model/debug_info.h"

#include <torch/csrc/jit/ir/ir.h>

#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

void strip(jit::Block* block) {
    for (jit::Node* node : block->nodes()) {
        node->setSourceRange(jit::SourceRange());
        if (node->hasAttribute(c10::attr::Subgraph)) {
            strip(node->g(c10::attr::Subgraph)->block());
        }
        for (jit::Block* inner : node->blocks()) {
            strip(inner);
        }
    }
}

}  // namespace

void strip_debug_info(const jit::Module& model) {
    std::unordered_set<const void*> units;
    for (const jit::Module& module : model.modules()) {
        const auto unit = module.type()->compilation_unit();
        if (!units.insert(unit.get()).second) {
            continue;
        }
        for (jit::Function* function : unit->get_functions()) {
            // Null: a method that was taken away again.
            auto* graph_function = function ? jit::tryToGraphFunction(*function) : nullptr;
            if (graph_function != nullptr) {
                strip(graph_function->graph()->block());
            }
        }
    }
}

}  // namespace twinkle::runtime
