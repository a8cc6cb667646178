#include "runtime/rewrite/region_call.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// As Graph::insertFunctionCall writes it.
jit::Value* insert_constant(jit::Graph& graph, jit::Function* function) {
    jit::Value* constant = graph.insertNode(graph.create(c10::prim::Constant))->output();
    constant->node()->s_(c10::attr::name, function->name());
    constant->setType(c10::FunctionType::create(function));
    return constant;
}

// The node of `block` that a node is, or is inside of.
jit::Node* in_block(jit::Node* node, const jit::Block* block) {
    while (node != nullptr && node->owningBlock() != block) {
        node = node->owningBlock()->owningNode();
    }
    return node;
}

// Behind what: the last node, or, where a result is used before that, what gives the last input.
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

// Users of a result but those that the region itself is made of.
void rewire(jit::Value* from, jit::Value* to, const std::unordered_set<const jit::Node*>& inside) {
    const std::vector<jit::Use> uses = from->uses();
    for (const jit::Use& use : uses) {
        if (!inside.contains(use.user)) {
            use.user->replaceInput(use.offset, to);
        }
    }
}

std::unordered_set<const jit::Node*> destroy_unused(const std::vector<jit::Node*>& nodes) {
    std::unordered_set<const jit::Node*> destroyed;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
        if (!(*node)->hasUses()) {
            destroyed.insert(*node);
            (*node)->destroy();
        }
    }
    return destroyed;
}

}  // namespace

tl::expected<RegionCall, std::string> call_in_place_of(const Region& region,
                                                       jit::Function& function) {
    jit::Node* place = place_for(region);
    if (place == nullptr) {
        return tl::make_unexpected("a result is used before everything that goes in is there");
    }
    jit::Graph& graph = *place->owningGraph();
    const jit::WithInsertPoint behind(place->next());
    std::vector<jit::Value*> arguments{insert_constant(graph, &function)};
    arguments.insert(arguments.end(), region.inputs.begin(), region.inputs.end());
    jit::Node* call = graph.insertNode(graph.create(c10::prim::CallFunction, arguments));
    call->output()->setType(function.getSchema().returns().at(0).type());
    call->setSourceRange(region.nodes.back()->sourceRange());
    std::vector<jit::Value*> results{call->output()};
    if (region.results.size() > 1) {
        const auto unpacked = graph.insertNode(graph.createTupleUnpack(call->output()))->outputs();
        results.assign(unpacked.begin(), unpacked.end());
    }
    const std::unordered_set<const jit::Node*> inside(region.nodes.begin(), region.nodes.end());
    for (std::size_t i = 0; i < results.size(); ++i) {
        rewire(region.results[i], results[i], inside);
        results[i]->setType(region.results[i]->type());
    }
    RegionCall made{call, destroy_unused(region.nodes)};
    made.destroyed.merge(destroy_unused(region.copied));
    return made;
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
