#include "runtime/replay/graph_obstacles.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/model/nested_values.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// dropout(train=False), attention(dropout_p=0.): random only if a switch says so. A switch that is
// no constant (self.training) is found at capture: LibTorch then refuses to draw.
bool surely_draws(const jit::Node* node) {
    static const std::set<std::string> switches = {"train", "training", "p", "dropout_p",
                                                   "dropout"};
    if (!node->kind().is_aten() || !node->maybeSchema() || !node->isNondeterministic()) {
        return false;
    }
    const auto& arguments = node->schema().arguments();
    for (std::size_t i = 0; i < arguments.size() && i < node->inputs().size(); ++i) {
        if (switches.count(arguments[i].name()) != 0) {
            const auto value = jit::toIValue(node->input(i));
            if (!value || (value->isBool() && !value->toBool()) ||
                (value->isDouble() && value->toDouble() == 0)) {
                return false;
            }
        }
    }
    return true;
}

std::optional<std::string> obstacle_of(const jit::Node* node) {
    const std::string name = node->kind().toQualString();
    if (node->kind() == jit::prim::SetAttr) {
        return "the model changes its attribute " + node->s(jit::attr::name);
    }
    if (node->kind() == jit::prim::Print) {
        return "the model prints";
    }
    static const std::set<std::string> threads = {"prim::fork", "prim::awaitable", "aten::wait",
                                                  "prim::awaitable_wait"};
    if (threads.count(name) != 0) {
        return "the model runs code in other threads (" + name + ")";
    }
    if (node->kind() == jit::prim::CallMethod || node->kind() == jit::prim::CallFunction) {
        return "the model calls code that is not known before it runs";
    }
    if (surely_draws(node)) {
        return "the model draws random numbers (" + name + ")";
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> graph_obstacle(const jit::Graph& forward) {
    auto& from = const_cast<jit::Graph&>(forward);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    const auto graph = from.copy();
    jit::Inline(*graph);
    std::optional<std::string> found;
    for_each_node(graph->block(), [&](const jit::Node* node) {
        if (!found) {
            found = obstacle_of(node);
        }
    });
    return found;
}

std::optional<std::string> device_obstacle(const jit::Module& model) {
    std::optional<at::Device> seen;
    const auto differs = [&](const at::Tensor& tensor) {
        if (tensor.is_cpu() || (seen && *seen == tensor.device())) {
            return false;
        }
        const bool other = seen.has_value();
        seen = tensor.device();
        return other;
    };
    for (const at::Tensor& tensor : model.parameters()) {
        if (differs(tensor)) {
            return "the model's weights are on several devices";
        }
    }
    for (const at::Tensor& tensor : model.buffers()) {
        if (differs(tensor)) {
            return "the model's weights are on several devices";
        }
    }
    return std::nullopt;
}

StateVersions::StateVersions(const jit::Module& model) {
    for (const auto& attribute : model.named_attributes(/*recurse=*/true)) {
        for (const at::Tensor& tensor : tensors_of(attribute.value)) {
            states_.push_back(
                {attribute.name, tensor.unsafeGetTensorImpl(),
                 tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version())});
        }
    }
}

std::optional<std::string> StateVersions::changed_since(const StateVersions& before) const {
    if (states_.size() != before.states_.size()) {
        return "an attribute";
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
        if (states_[i].tensor != before.states_[i].tensor ||
            states_[i].version != before.states_[i].version) {
            return states_[i].path;
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
