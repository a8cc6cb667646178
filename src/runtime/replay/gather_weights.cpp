#include "runtime/replay/gather_weights.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/replay/linear_groups.h"

#include <torch/csrc/jit/passes/inliner.h>

#include <map>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// The constants that a tensor is, by tensor.
using Holders = std::map<const c10::TensorImpl*, std::vector<jit::Node*>>;

Holders holders_in(const jit::Graph& graph) {
    Holders holders;
    for_each_node(graph.block(), [&](const jit::Node* node) {
        if (is_tensor_constant(node)) {
            holders[node->t(c10::attr::value).unsafeGetTensorImpl()].push_back(
                const_cast<jit::Node*>(node));
        }
    });
    return holders;
}

// Returns of each packed group what lies below one another: values, scales.
std::vector<std::vector<at::Tensor>> columns_of(const std::shared_ptr<jit::Graph>& graph,
                                                const c10::ivalue::Object& self,
                                                c10::DeviceType type) {
    const auto inlined = graph->copy();
    jit::Inline(*inlined);
    std::vector<std::vector<at::Tensor>> columns;
    for (const LinearGroup& group : linear_groups(inlined, self, type, /*dense_results=*/false)) {
        const std::size_t weights = group[0].weights.size();
        for (std::size_t i = 0; weights > 1 && i < weights; ++i) {
            columns.emplace_back();
            for (const LinearLayer& layer : group) {
                columns.back().push_back(layer.weights[i]);
            }
        }
    }
    return columns;
}

// Beside these constants, `tensor` itself is the only one to hold it.
bool is_ours(const at::Tensor& tensor, const Holders& holders) {
    const auto found = holders.find(tensor.unsafeGetTensorImpl());
    return found != holders.end() && tensor.use_count() == found->second.size() + 1 &&
           tensor.storage().use_count() == 1 && tensor.is_contiguous() && !tensor.requires_grad();
}

std::size_t gather(std::vector<at::Tensor>& column, const Holders& holders) {
    for (const at::Tensor& tensor : column) {
        if (!is_ours(tensor, holders)) {
            return 0;
        }
    }
    const at::Tensor whole = below_one_another(column);
    std::int64_t row = 0;
    for (at::Tensor& tensor : column) {
        const at::Tensor part = whole.narrow(0, row, tensor.size(0));
        for (jit::Node* node : holders.at(tensor.unsafeGetTensorImpl())) {
            node->t_(c10::attr::value, part);
        }
        row += tensor.size(0);
        tensor = at::Tensor();
    }
    return whole.nbytes();
}

}  // namespace

std::size_t gather_weights(const std::shared_ptr<jit::Graph>& graph,
                           const c10::ivalue::Object& self, c10::DeviceType type) {
    const torch::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> columns = columns_of(graph, self, type);
    const Holders holders = columns.empty() ? Holders() : holders_in(*graph);
    std::size_t bytes = 0;
    for (std::vector<at::Tensor>& column : columns) {
        try {
            bytes += gather(column, holders);
        } catch (const c10::OutOfMemoryError&) {
            break;
        }
    }
    return bytes;
}

at::Tensor below_one_another(const std::vector<at::Tensor>& tensors) {
    const at::ScalarType dtype = tensors[0].scalar_type();
    if (!c10::isFloat8Type(dtype)) {
        return at::cat(tensors);
    }
    std::vector<at::Tensor> bytes;  // LibTorch joins fp8 on few devices
    for (const at::Tensor& tensor : tensors) {
        bytes.push_back(tensor.contiguous().view(at::kByte));
    }
    return at::cat(bytes).view(dtype);
}

at::Tensor gathered(const std::vector<at::Tensor>& tensors) {
    const at::Tensor& first = tensors[0];
    std::int64_t rows = 0;
    for (const at::Tensor& tensor : tensors) {
        if (!tensor.is_contiguous() || !tensor.storage().is_alias_of(first.storage()) ||
            tensor.storage_offset() != first.storage_offset() + rows * first.stride(0)) {
            return {};
        }
        rows += tensor.size(0);
    }
    return first.as_strided({rows, first.size(1)}, first.strides());
}

}  // namespace twinkle::runtime
