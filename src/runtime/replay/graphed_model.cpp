#include "twinkle/graphed_model.h"

#include "runtime/replay/model_graphs.h"

namespace twinkle {

struct GraphedModel::State {
    runtime::ModelGraphs graphs;
};

GraphedModel::GraphedModel(torch::jit::Module model, GraphOptions options)
    : state_(new State{runtime::ModelGraphs(std::move(model), options, c10::DeviceType::CUDA,
                                            runtime::cuda_graph_backend)}) {}
GraphedModel::~GraphedModel() = default;
GraphedModel::GraphedModel(GraphedModel&&) noexcept = default;
GraphedModel& GraphedModel::operator=(GraphedModel&&) noexcept = default;

c10::IValue GraphedModel::forward(std::vector<c10::IValue> inputs,
                                  const torch::jit::Kwargs& named) {
    return state_->graphs.forward(std::move(inputs), named);
}

std::optional<std::string> GraphedModel::prepare(std::vector<c10::IValue> inputs,
                                                 const torch::jit::Kwargs& named) {
    return state_->graphs.prepare(std::move(inputs), named);
}

GraphStatistics GraphedModel::statistics() const {
    return state_->graphs.statistics();
}

void GraphedModel::clear() {
    state_->graphs.clear();
}

}  // namespace twinkle
