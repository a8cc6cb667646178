#include "runtime/verify/model_weights.h"

#include "runtime/convert/dtype_rewriting.h"
#include "runtime/graph/graph_walk.h"

#include <torch/csrc/jit/ir/constants.h>

namespace twinkle::runtime {

namespace {

// Empty tensors have no memory, and are all alike.
bool has_memory(const at::Tensor& tensor) {
    return tensor.defined() && tensor.has_storage() && tensor.storage().data() != nullptr;
}

}  // namespace

ModelWeights::ModelWeights(const torch::jit::Module& model) {
    for (const at::Tensor& parameter : model.parameters()) {
        add(parameter);
    }
    for (const auto& graph : graphs_of(model)) {
        for_each_node_and_forked(graph->block(), [&](const torch::jit::Node* node) {
            if (is_weight_constant(node)) {
                add(node->t(c10::attr::value));
            }
        });
    }
}

void ModelWeights::add(const at::Tensor& weight) {
    if (has_memory(weight) && storages_.insert(weight.storage().data()).second && weight.is_cpu()) {
        bytes_ += static_cast<std::int64_t>(weight.storage().nbytes());
    }
}

bool ModelWeights::has(const at::Tensor& tensor) const {
    return has_memory(tensor) && storages_.contains(tensor.storage().data());
}

void evict_from_caches([[maybe_unused]] const at::Tensor& tensor) {
#if defined(__x86_64__)
    constexpr std::size_t line = 64;
    if (!has_memory(tensor) || !tensor.is_cpu()) {
        return;
    }
    const auto* from = static_cast<const char*>(tensor.storage().data());
    for (std::size_t at = 0; at < tensor.storage().nbytes(); at += line) {
        __builtin_ia32_clflush(from + at);
    }
    __builtin_ia32_mfence();
#endif
}

}  // namespace twinkle::runtime
