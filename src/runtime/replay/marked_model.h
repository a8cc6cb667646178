#pragma once
// What the mark for graphs (model/graphs_mark.h) calls: replays the forward() of a model that its
// program loaded and calls as any other.

#include "runtime/replay/model_graphs.h"
#include "runtime/replay/replay_settings.h"

#include <torch/custom_class.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace twinkle::runtime {

// The device that replays, and its clock.
struct ReplayDevice {
    c10::DeviceType type = c10::DeviceType::CUDA;
    ModelGraphs::FindBackend find_backend = cuda_graph_backend;
    std::function<double()> clock;  // seconds; none: a steady one
};

class ReplayDecisions;
class ServedModel;

// The object in the code of a marked model. A copy of a model shares it, so that it tells models
// apart. It keeps no model alive.
class MarkedModels : public torch::CustomClassHolder {
public:
    MarkedModels() : MarkedModels({}, replay_settings()) {}
    // `decided`: shapes whose replay was measured before (replay_decisions.h), as text; "": none.
    MarkedModels(ReplayDevice device, const ReplaySettings& settings,
                 const std::string& decided = "");
    ~MarkedModels() override;

    // The result of the model's forward(); none: it is to run as it is.
    std::optional<c10::IValue> replayed(const c10::intrusive_ptr<c10::ivalue::Object>& model,
                                        const Values& inputs);
    GraphStatistics statistics() const;
    std::string decided() const;
    void tell() const;  // the same on stderr, if there is anything to say

private:
    std::shared_ptr<ServedModel> served(const c10::intrusive_ptr<c10::ivalue::Object>& model);
    bool may_fit(const Values& inputs) const;

    ReplayDevice device_;
    ReplaySettings settings_;
    std::unique_ptr<const ReplayDecisions> decisions_;
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<ServedModel>> models_;
};

// For mark_for_graphs().
c10::IValue marked_models(const std::string& decided = "");

}  // namespace twinkle::runtime
