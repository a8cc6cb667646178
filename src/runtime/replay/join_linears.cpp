#include "runtime/replay/join_linears.h"

#include "runtime/graph/graph_values.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/replay/gather_weights.h"
#include "runtime/replay/linear_groups.h"

#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::size_t weights_for_a_copy = 8;
constexpr std::size_t least_limit = std::size_t{64} << 20;

std::size_t most_bytes(const jit::Graph& graph, const c10::ivalue::Object& self,
                       c10::DeviceType type) {
    std::set<const void*> seen;
    std::size_t sum = 0;
    for_each_node(graph.block(), [&](const jit::Node* node) {
        for (const jit::Value* output : node->outputs()) {
            if (!output->type()->isSubtypeOf(*c10::TensorType::get())) {
                continue;
            }
            const auto value = held_value(output, self);
            if (value && value->isTensor() && value->toTensor().defined() &&
                value->toTensor().device().type() == type &&
                seen.insert(value->toTensor().unsafeGetTensorImpl()).second) {
                sum += value->toTensor().nbytes();
            }
        }
    });
    return std::max(least_limit, sum / weights_for_a_copy);
}

std::vector<at::Tensor> weights_of(const LinearGroup& group, std::size_t which) {
    std::vector<at::Tensor> all;
    for (const LinearLayer& layer : group) {
        all.push_back(layer.weights[which].detach());
    }
    return all;
}

// What joining copies.
std::size_t copied_bytes(const LinearGroup& group) {
    std::size_t bytes = bytes_of(group);
    for (std::size_t i = 0; i < group[0].weights.size(); ++i) {
        const at::Tensor whole = gathered(weights_of(group, i));
        bytes -= whole.defined() ? whole.nbytes() : 0;
    }
    return bytes;
}

// Zeros for a layer that has none beside others that have. None: no layer has.
c10::IValue joined_bias(const LinearGroup& group) {
    const auto some = std::find_if(group.begin(), group.end(),
                                   [](const LinearLayer& layer) { return layer.bias.defined(); });
    if (some == group.end()) {
        return {};
    }
    std::vector<at::Tensor> all;
    for (const LinearLayer& layer : group) {
        all.push_back(layer.bias.defined() ? layer.bias.detach()
                                           : at::zeros({layer.outputs()}, some->bias.options()));
    }
    return at::cat(all);
}

// Returns the bytes of what was copied.
std::size_t join(const LinearGroup& group) {
    jit::Node* const first = group[0].node;
    jit::Graph& graph = *first->owningGraph();
    const jit::WithInsertPoint here(first);
    std::vector<jit::Value*> arguments{first->input(0)};
    std::size_t bytes = 0;
    const auto insert = [&](const c10::IValue& value, bool copied) {
        bytes += copied && value.isTensor() ? value.toTensor().nbytes() : 0;
        arguments.push_back(graph.insertConstant(value));
    };
    for (std::size_t i = 0; i < group[0].weights.size(); ++i) {
        const std::vector<at::Tensor> weights = weights_of(group, i);
        const at::Tensor whole = gathered(weights);
        insert(whole.defined() ? whole : below_one_another(weights), !whole.defined());
    }
    insert(joined_bias(group), true);
    jit::Value* whole = graph.insertNode(graph.create(first->kind(), arguments, 1))->output();
    std::vector<std::int64_t> outputs;
    for (const LinearLayer& layer : group) {
        outputs.push_back(layer.outputs());
    }
    jit::Value* parts =
        graph.insert(c10::aten::split_with_sizes, {whole, graph.insertConstant(outputs), -1});
    jit::Node* part = graph.insertNode(graph.createListUnpack(parts, group.size()));
    for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].node->output()->replaceAllUsesWith(part->output(i));
        group[i].node->destroy();
    }
    return bytes;
}

}  // namespace

JoinedLinears join_linears(const std::shared_ptr<jit::Graph>& graph,
                           const c10::ivalue::Object& self, c10::DeviceType type,
                           bool dense_results) {
    const torch::NoGradGuard no_grad;
    jit::Inline(*graph);
    std::vector<LinearGroup> groups = linear_groups(graph, self, type, dense_results);
    std::stable_sort(groups.begin(), groups.end(),
                     [](const LinearGroup& one, const LinearGroup& other) {
                         return copied_bytes(one) < copied_bytes(other);
                     });
    const std::size_t most = groups.empty() ? 0 : most_bytes(*graph, self, type);
    JoinedLinears done;
    for (const LinearGroup& group : groups) {
        if (done.bytes + copied_bytes(group) > most) {
            break;
        }
        done.bytes += join(group);
        done.layers += group.size() - 1;
    }
    return done;
}

}  // namespace twinkle::runtime
