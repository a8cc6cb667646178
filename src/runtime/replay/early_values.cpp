#include "runtime/replay/early_values.h"

#include "runtime/graph/graph_values.h"

#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t small_weight = std::size_t{1} << 20;  // bytes

bool is_tensor(const jit::Value* value) {
    return value->type()->isSubtypeOf(*c10::TensorType::get());
}

// Says of a tensor what its shape says, or where it lies.
bool reads_no_numbers(const jit::Node* node) {
    static const std::unordered_set<std::string_view> kinds = {
        "aten::size", "aten::dim", "aten::numel", "aten::len", "prim::device", "prim::dtype"};
    return kinds.contains(node->kind().toQualString());
}

bool rearranges(const jit::Node* node) {
    static const std::unordered_set<std::string_view> kinds = {
        "prim::ListConstruct", "prim::ListUnpack",  "prim::TupleConstruct", "prim::TupleUnpack",
        "prim::TupleIndex",    "prim::NumToTensor", "prim::dtype",          "prim::device",
        "prim::min",           "prim::max",         "prim::unchecked_cast"};
    return kinds.contains(node->kind().toQualString());
}

// The same every time, if its inputs are.
bool is_pure(const jit::Node* node) {
    if (!node->kind().is_aten() && !rearranges(node)) {
        return false;
    }
    const std::string_view name = node->kind().toUnqualString();
    const auto* schema = node->maybeSchema();
    return node->blocks().empty() && !node->hasSideEffects() && !node->isNondeterministic() &&
           name.find("empty") == std::string_view::npos && (!schema || !schema->is_mutable());
}

// The tensor that this is a view of.
const jit::Value* base_of(const jit::Value* value) {
    for (;;) {
        const auto* schema = value->node()->maybeSchema();
        const bool is_view = schema && schema->returns().size() == 1 &&
                             schema->returns()[0].alias_info() && !value->node()->inputs().empty();
        if (!is_view) {
            return value;
        }
        value = value->node()->input(0);
    }
}

class EarlyValues {
public:
    EarlyValues(const std::shared_ptr<jit::Graph>& graph, const c10::ivalue::Object& self)
        : graph_(graph), self_(self), aliases_(graph) {
        for (const jit::Node* node : graph->nodes()) {
            if (is_early(node)) {
                early_.insert(node->outputs().begin(), node->outputs().end());
            }
        }
    }

    std::vector<jit::Value*> found() const {
        std::vector<jit::Value*> all;
        for (jit::Node* node : graph_->nodes()) {
            for (jit::Value* output : node->outputs()) {
                if (is_wanted(output)) {
                    all.push_back(output);
                }
            }
        }
        return all;
    }

private:
    bool is_early(const jit::Node* node) const {
        if (node->kind() == c10::prim::Constant || node->kind() == c10::prim::GetAttr) {
            return is_small(node->output());
        }
        if (!is_pure(node) || is_written(node)) {
            return false;
        }
        const auto inputs = node->inputs();
        const auto first = reads_no_numbers(node) ? std::next(inputs.begin()) : inputs.begin();
        return std::all_of(first, inputs.end(),
                           [&](const jit::Value* input) { return early_.contains(input); });
    }
    bool is_small(const jit::Value* value) const {
        if (!is_tensor(value)) {
            return true;
        }
        const auto held = held_value(value, self_);
        return held && held->isTensor() && held->toTensor().defined() &&
               held->toTensor().nbytes() <= small_weight && !aliases_.hasWriters(value);
    }
    bool is_written(const jit::Node* node) const {
        const auto written = [&](const jit::Value* value) { return aliases_.hasWriters(value); };
        return std::any_of(node->inputs().begin(), node->inputs().end(), written) ||
               std::any_of(node->outputs().begin(), node->outputs().end(), written);
    }

    // Others read it, and a kernel computes it.
    bool is_wanted(const jit::Value* value) const {
        if (!early_.contains(value) || !is_tensor(value) || !is_read_later(value)) {
            return false;
        }
        const jit::Node* from = base_of(value)->node();
        return from->kind().is_aten() &&
               !aliases_.mayContainAlias(const_cast<jit::Value*>(value), graph_->outputs());
    }
    // Counts elements of what others read, too.
    bool is_read_later(const jit::Value* value) const {
        return std::any_of(value->uses().begin(), value->uses().end(), [&](const jit::Use& use) {
            const jit::Node* user = use.user;
            const bool early = user->outputs().size() > 0 && early_.contains(user->output(0)) &&
                               user->owningBlock() == graph_->block();
            const bool holds = user->kind() == c10::prim::ListConstruct ||
                               user->kind() == c10::prim::TupleConstruct;
            return !early || (holds && is_read_later(user->output()));
        });
    }

    const std::shared_ptr<jit::Graph>& graph_;
    const c10::ivalue::Object& self_;
    const jit::AliasDb aliases_;
    std::unordered_set<const jit::Value*> early_;
};

// The same inputs, and these results alone.
std::shared_ptr<jit::Graph> computing(const std::shared_ptr<jit::Graph>& graph,
                                      const std::vector<jit::Value*>& values) {
    const std::size_t before = graph->outputs().size();
    for (jit::Value* value : values) {
        graph->registerOutput(value);
    }
    const std::shared_ptr<jit::Graph> early = graph->copy();
    for (std::size_t i = 0; i < values.size(); ++i) {
        graph->eraseOutput(graph->outputs().size() - 1);
    }
    for (std::size_t i = 0; i < before; ++i) {
        early->eraseOutput(0);
    }
    const std::vector<jit::Value*> results = early->outputs().vec();
    jit::Value* const tuple = early->insertNode(early->createTuple(results))->output();
    for (std::size_t i = 0; i < results.size(); ++i) {
        early->eraseOutput(0);
    }
    early->registerOutput(tuple);
    jit::EliminateDeadCode(early);
    return early;
}

}  // namespace

std::shared_ptr<jit::Graph> take_early_values(const std::shared_ptr<jit::Graph>& graph,
                                              const c10::ivalue::Object& self) {
    const std::vector<jit::Value*> values = EarlyValues(graph, self).found();
    if (values.empty()) {
        return nullptr;
    }
    auto early = computing(graph, values);
    for (jit::Value* value : values) {
        jit::Value* const input = graph->addInput();
        input->setType(c10::TensorType::get());
        value->replaceAllUsesWith(input);
    }
    jit::EliminateDeadCode(graph);
    return early;
}

}  // namespace twinkle::runtime
