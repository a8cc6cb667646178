#include "runtime/patterns/opened_method.h"

#include <torch/script.h>

#include <set>
#include <string>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

bool is_pure(const jit::Node* node) {
    static const std::set<std::string> kinds = {"prim::Constant",
                                                "prim::GetAttr",
                                                "prim::ListConstruct",
                                                "prim::TupleConstruct",
                                                "prim::TupleUnpack",
                                                "prim::ListUnpack",
                                                "prim::NumToTensor",
                                                "prim::dtype",
                                                "aten::Int",
                                                "aten::ScalarImplicit",
                                                "aten::to",
                                                "aten::type_as",
                                                "aten::size"};
    if (kinds.contains(node->kind().toQualString())) {
        return true;
    }
    const auto* schema = node->kind().is_aten() ? node->maybeSchema() : nullptr;
    return schema != nullptr && !schema->is_mutable() && !node->hasSideEffects() &&
           !node->isNondeterministic();
}

void remove_dead(jit::Block* block, const std::unordered_set<const jit::Node*>& dead) {
    std::vector<jit::Node*> all(block->nodes().begin(), block->nodes().end());
    for (auto node = all.rbegin(); node != all.rend(); ++node) {
        for (jit::Block* inner : (*node)->blocks()) {
            remove_dead(inner, dead);
        }
        if (!(*node)->hasUses() && (dead.contains(*node) || is_pure(*node))) {
            (*node)->destroy();
        }
    }
}

}  // namespace

void UneditedGraphs::keep(const std::shared_ptr<jit::Graph>& graph) {
    const auto [entry, first] = copies_.try_emplace(graph.get());
    if (!first) {
        return;
    }
    Copy& copy = entry->second;
    copy.graph = std::make_shared<jit::Graph>();
    std::vector<jit::Value*> inputs;
    for (jit::Value* input : graph->inputs()) {
        inputs.push_back(copy.graph->addInput()->copyMetadata(input));
    }
    for (jit::Value* output : jit::insertGraph(*copy.graph, *graph, inputs, copy.values)) {
        copy.graph->registerOutput(output);
    }
}

const UneditedGraphs::Copy* UneditedGraphs::of(const std::shared_ptr<jit::Graph>& graph) const {
    const auto known = copies_.find(graph.get());
    return known == copies_.end() ? nullptr : &known->second;
}

jit::Value* OpenedMethod::here(jit::Value* value, std::int32_t frame, std::int32_t home) {
    jit::Value* now = frame == home ? value : opened(frame, home).at(value);
    for (auto next = replaced_.find(now); next != replaced_.end(); next = replaced_.find(now)) {
        now = next->second;
    }
    return now;
}

void OpenedMethod::replace(jit::Value* value, jit::Value* by) {
    value->replaceAllUsesWith(by);
    replaced_[value] = by;
}

OpenedMethod::Path OpenedMethod::path_of(std::int32_t frame, std::int32_t home) const {
    Path path;
    for (; frame != home; frame = flat_.frame(frame).parent) {
        path.push_back(flat_.frame(frame).call);
    }
    return path;
}

const ValueMap& OpenedMethod::opened(std::int32_t frame, std::int32_t home) {
    const Path path = path_of(frame, home);
    if (const auto known = opened_.find(path); known != opened_.end()) {
        return known->second;
    }
    const Frame& inner = flat_.frame(frame);
    jit::Node* call = inner.call;
    if (inner.parent != home) {
        call = opened(inner.parent, home).at(call->output())->node();
    }
    const ValueMap& values = opened_.emplace(path, insert(call, inner.graph)).first->second;
    take_known_branches(values, frame, home);
    return values;
}

// Replaces each if whose flag is known by the branch that it takes: an if that stays would keep
// what its other branch computes.
void OpenedMethod::take_known_branches(const ValueMap& values, std::int32_t frame,
                                       std::int32_t home) {
    for (const auto& [inner, value] : values) {
        const auto flag = known_flag(inner, frame, home);
        if (!flag) {
            continue;
        }
        for (const jit::Use& use : std::vector<jit::Use>(value->uses())) {
            if (use.user->kind() == c10::prim::If && !dead_.contains(use.user)) {
                take_branch(use.user, *use.user->blocks()[*flag ? 0 : 1]);
            }
        }
    }
}

// Leaves out what is known only of this call of the method.
std::optional<bool> OpenedMethod::known_flag(const jit::Value* value, std::int32_t frame,
                                             std::int32_t home) const {
    const ValueId id = flat_.value_in(frame, value);
    const c10::IValue* held = id == nothing ? nullptr : flat_.constant_of(id);
    if (held == nullptr || !held->isBool()) {
        return std::nullopt;
    }
    std::int32_t at = flat_.value(id).frame;
    while (at != home && at != nothing) {
        at = flat_.frame(at).parent;
    }
    const bool is_attribute = flat_.value(id).from->node()->kind() == c10::prim::GetAttr;
    return at == home || is_attribute ? std::optional(held->toBool()) : std::nullopt;
}

void OpenedMethod::take_branch(jit::Node* choice, jit::Block& taken) {
    const std::vector<jit::Node*> nodes(taken.nodes().begin(), taken.nodes().end());
    for (jit::Node* node : nodes) {
        node->moveBefore(choice);
    }
    for (std::size_t i = 0; i < choice->outputs().size(); ++i) {
        replace(choice->outputs()[i], taken.outputs()[i]);
    }
    dead_.insert(choice);
}

ValueMap OpenedMethod::insert(jit::Node* call, const std::shared_ptr<jit::Graph>& body) {
    const jit::WithInsertPoint before(call);
    const std::size_t first = call->kind() == c10::prim::CallFunction ? 1 : 0;
    const UneditedGraphs::Copy* unedited = unedited_.of(body);
    ValueMap values;
    const auto outputs = jit::insertGraph(graph_, unedited != nullptr ? *unedited->graph : *body,
                                          call->inputs().slice(first), values);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        replace(call->outputs()[i], outputs[i]);
    }
    dead_.insert(call);
    if (unedited == nullptr) {
        return values;
    }
    ValueMap of_body;
    for (const auto& [from, to] : unedited->values) {
        of_body.emplace(from, values.at(to));
    }
    return of_body;
}

void OpenedMethod::clean() {
    remove_dead(graph_.block(), dead_);
}

}  // namespace twinkle::runtime
