#include "runtime/replay/linear_groups.h"

#include "runtime/graph/graph_values.h"

#include <torch/csrc/jit/ir/alias_analysis.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::string_view pack_namespace = "twinkle_pack_";

struct Kind {
    std::size_t weights;
    bool in_blocks;  // of 16 outputs: only such can stand below others, or are multiplied fast
};

bool is_of_pack(const jit::Node* node) {
    return std::string_view(node->kind().ns().toUnqualString()).starts_with(pack_namespace);
}

std::optional<Kind> kind_of(const jit::Node* node) {
    if (node->kind() == c10::aten::linear) {
        return Kind{1, false};
    }
    const std::string_view name = node->kind().toUnqualString();
    if (is_of_pack(node) &&
        (name == "linear_int8" || name == "linear_int4" || name == "linear_fp8")) {
        return Kind{2, true};
    }
    return std::nullopt;
}

// Parts of a row begin where vectors of 16 bytes do: products and kernels are slow otherwise.
bool are_aligned(const LinearLayer& layer, const Kind& kind) {
    return kind.in_blocks ? layer.outputs() % 16 == 0
                          : layer.outputs() * layer.weights[0].element_size() % 16 == 0;
}

bool takes_strides(const jit::Node* node) {
    return std::string_view(node->kind().toUnqualString()).find("as_strided") !=
               std::string_view::npos ||
           node->kind() == c10::Symbol::fromQualString("aten::_reshape_alias");
}
// Whether a part of another tensor may not do for it.
bool needs_dense(const jit::Node* node) {
    return takes_strides(node) ||
           (!node->kind().is_aten() && !node->kind().is_prim() && !is_of_pack(node));
}

// Writes into tensors of inference mode are not counted, so that a copy could be out of date.
bool is_weight(const c10::IValue& value, c10::DeviceType type, std::int64_t dimensions) {
    if (!value.isTensor() || !value.toTensor().defined()) {
        return false;
    }
    const at::Tensor& tensor = value.toTensor();
    return tensor.device().type() == type && !tensor.is_inference() &&
           tensor.layout() == at::kStrided && tensor.dim() == dimensions && tensor.size(0) > 0;
}

bool are_alike(const at::Tensor& one, const at::Tensor& other) {
    return one.scalar_type() == other.scalar_type() && one.device() == other.device();
}

// Whether both can be parts of one layer.
bool fit(const LinearLayer& one, const LinearLayer& other) {
    const bool same_place = one.node->input(0) == other.node->input(0) &&
                            one.node->owningBlock() == other.node->owningBlock() &&
                            one.node->kind() == other.node->kind();
    if (!same_place) {
        return false;
    }
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
        if (!are_alike(one.weights[i], other.weights[i]) ||
            one.weights[i].size(1) != other.weights[i].size(1)) {
            return false;
        }
    }
    return !one.bias.defined() || !other.bias.defined() || are_alike(one.bias, other.bias);
}
bool fit(const LinearGroup& group, const LinearLayer& layer) {
    return std::all_of(group.begin(), group.end(),
                       [&](const LinearLayer& one) { return fit(one, layer); });
}

class Finder {
public:
    Finder(const std::shared_ptr<jit::Graph>& graph, const c10::ivalue::Object& self,
           c10::DeviceType type, bool dense_results)
        : self_(self), type_(type), aliases_(graph) {
        collect_dense(graph->block());
        if (dense_results) {
            dense_.insert(dense_.end(), graph->outputs().begin(), graph->outputs().end());
        }
        collect(graph->block());
    }

    std::vector<LinearGroup> groups() && {
        std::erase_if(groups_, [](const LinearGroup& group) { return group.size() < 2; });
        return std::move(groups_);
    }

private:
    void collect_dense(jit::Block* block) {
        for (jit::Node* node : block->nodes()) {
            if (needs_dense(node)) {
                dense_.insert(dense_.end(), node->inputs().begin(), node->inputs().end());
            }
            for (jit::Block* inner : node->blocks()) {
                collect_dense(inner);
            }
        }
    }

    void collect(jit::Block* block) {
        for (jit::Node* node : block->nodes()) {
            if (const auto layer = layer_of(node)) {
                const auto group =
                    std::find_if(groups_.begin(), groups_.end(),
                                 [&](const LinearGroup& one) { return fit(one, *layer); });
                group == groups_.end() ? groups_.push_back({*layer}) : group->push_back(*layer);
            }
            for (jit::Block* inner : node->blocks()) {
                collect(inner);
            }
        }
    }

    std::optional<LinearLayer> layer_of(jit::Node* node) const {
        const auto kind = kind_of(node);
        if (!kind || node->inputs().size() != kind->weights + 2 || node->outputs().size() != 1 ||
            aliases_.hasWriters(node->input(0)) || aliases_.hasWriters(node->output())) {
            return std::nullopt;
        }
        LinearLayer layer{node, {}, {}};
        for (std::size_t i = 1; i <= kind->weights; ++i) {
            const auto weight = unwritten(node->input(i));
            if (!weight || !is_weight(*weight, type_, 2)) {
                return std::nullopt;
            }
            layer.weights.push_back(weight->toTensor());
        }
        const auto bias = unwritten(node->input(kind->weights + 1));
        if (!bias || (!bias->isNone() && !is_weight(*bias, type_, 1))) {
            return std::nullopt;
        }
        layer.bias = bias->isNone() ? at::Tensor() : bias->toTensor();
        const bool whole = are_aligned(layer, *kind) &&
                           (!layer.bias.defined() || layer.bias.size(0) == layer.outputs());
        return whole && !aliases_.mayContainAlias(node->output(), dense_) ? std::optional(layer)
                                                                          : std::nullopt;
    }

    std::optional<c10::IValue> unwritten(const jit::Value* value) const {
        return aliases_.hasWriters(value) ? std::nullopt : held_value(value, self_);
    }

    const c10::ivalue::Object& self_;
    const c10::DeviceType type_;
    const jit::AliasDb aliases_;
    std::vector<jit::Value*> dense_;  // what must be
    std::vector<LinearGroup> groups_;
};

}  // namespace

std::size_t LinearLayer::bytes() const {
    std::size_t sum = bias.defined() ? bias.nbytes() : 0;
    for (const at::Tensor& weight : weights) {
        sum += weight.nbytes();
    }
    return sum;
}

std::size_t bytes_of(const LinearGroup& group) {
    std::size_t sum = 0;
    for (const LinearLayer& layer : group) {
        sum += layer.bytes();
    }
    return sum;
}

std::vector<LinearGroup> linear_groups(const std::shared_ptr<jit::Graph>& graph,
                                       const c10::ivalue::Object& self, c10::DeviceType type,
                                       bool dense_results) {
    return Finder(graph, self, type, dense_results).groups();
}

}  // namespace twinkle::runtime
