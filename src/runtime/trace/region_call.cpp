#include "runtime/trace/region_call.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Writes it as Graph::insertFunctionCall does.
jit::Value* insert_constant(jit::Graph& graph, jit::Function* function) {
    jit::Value* constant = graph.insertNode(graph.create(c10::prim::Constant))->output();
    constant->node()->s_(c10::attr::name, function->name());
    constant->setType(c10::FunctionType::create(function));
    return constant;
}

// The node of `block` that is this node, or contains it.
jit::Node* in_block(jit::Node* node, const jit::Block* block) {
    while (node != nullptr && node->owningBlock() != block) {
        node = node->owningBlock()->owningNode();
    }
    return node;
}

// The node to insert after: the last one, or, if a result is used before that, the one that gives
// the last input.
jit::Node* place_for(const Region& region) {
    const std::unordered_set<const jit::Node*> inside(region.nodes.begin(), region.nodes.end());
    jit::Block* block = region.nodes.front()->owningBlock();
    jit::Node* last = region.nodes.back();
    jit::Node* first_user = block->return_node();
    for (jit::Value* result : region.results) {
        for (const jit::Use& use : result->uses()) {
            jit::Node* user = in_block(use.user, block);
            if (!inside.contains(use.user) && user->isBefore(first_user)) {
                first_user = user;
            }
        }
    }
    if (last->isBefore(first_user)) {
        return last;
    }
    const bool ready =
        std::all_of(region.inputs.begin(), region.inputs.end(), [&](jit::Value* input) {
            const jit::Node* from = input->node();
            return from->owningBlock() != block || from == block->param_node() ||
                   from->isBefore(first_user);
        });
    return ready ? first_user->prev() : nullptr;
}

// Redirects the users of a result, except those inside the region.
void rewire(jit::Value* from, jit::Value* to, const std::unordered_set<const jit::Node*>& inside) {
    const std::vector<jit::Use> uses = from->uses();
    for (const jit::Use& use : uses) {
        if (!inside.contains(use.user)) {
            use.user->replaceInput(use.offset, to);
        }
    }
}

DestroyedNodes destroy_unused(const std::vector<jit::Node*>& nodes) {
    DestroyedNodes destroyed;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        if (!(*node)->hasUses()) {
            destroyed.insert(*node);
            (*node)->destroy();
        }
    }
    return destroyed;
}

}  // namespace

tl::expected<DestroyedNodes, std::string> call_in_place_of(const Region& region,
                                                           jit::Function& function) {
    jit::Node* place = place_for(region);
    if (place == nullptr) {
        return tl::make_unexpected("a result is used before everything that goes in is there");
    }
    jit::Graph& graph = *place->owningGraph();
    const jit::WithInsertPoint behind(place->next());
    const auto results = insert_call(graph, function, region.inputs, region.results.size(),
                                     region.nodes.back()->sourceRange());
    const std::unordered_set<const jit::Node*> inside(region.nodes.begin(), region.nodes.end());
    for (std::size_t i = 0; i < results.size(); ++i) {
        rewire(region.results[i], results[i], inside);
        results[i]->setType(region.results[i]->type());
    }
    DestroyedNodes destroyed = destroy_unused(region.nodes);
    destroyed.merge(destroy_unused(region.copied));
    return destroyed;
}

std::vector<jit::Value*> insert_call(jit::Graph& graph, jit::Function& function,
                                     const std::vector<jit::Value*>& arguments, std::size_t count,
                                     const jit::SourceRange& range) {
    std::vector<jit::Value*> inputs{insert_constant(graph, &function)};
    inputs.insert(inputs.end(), arguments.begin(), arguments.end());
    jit::Node* call = graph.insertNode(graph.create(c10::prim::CallFunction, inputs));
    call->output()->setType(function.getSchema().returns().at(0).type());
    call->setSourceRange(range);
    return count > 1 ? graph.insertNode(graph.createTupleUnpack(call->output()))->outputs().vec()
                     : std::vector<jit::Value*>{call->output()};
}

void call_instead(jit::Node* call, jit::Function* function) {
    const jit::WithInsertPoint before(call);
    jit::Node* old = call->input(0)->node();
    call->replaceInput(0, insert_constant(*call->owningGraph(), function));
    if (!old->hasUses()) {
        old->destroy();
    }
}

}  // namespace twinkle::runtime
