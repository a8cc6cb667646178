#include "runtime/model/debug_info.h"

#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/ir/ir.h>

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
    for (const auto& graph : graphs_of(model)) {
        strip(graph->block());
    }
}

}  // namespace twinkle::runtime
