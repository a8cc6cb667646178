#pragma once
// The captured runs of one model that its program holds, and may change.

#include "runtime/replay/marked_model.h"
#include "runtime/replay/model_state.h"

#include <string>

namespace twinkle::runtime {

class ServedModel {
public:
    using Object = c10::ivalue::Object;
    ServedModel(const c10::intrusive_ptr<Object>& model, const ReplayDevice& device,
                const ReplaySettings& settings, const ReplayDecisions& decisions);

    bool is(const c10::intrusive_ptr<Object>& model) const { return model_ == model.get(); }
    std::optional<c10::IValue> replayed(const c10::intrusive_ptr<Object>& model,
                                        const Values& inputs);
    GraphStatistics statistics() const;

    // Whether this thread runs a model plainly for us.
    static bool runs_plainly();

private:
    std::shared_ptr<ModelGraphs> graphs_of(const c10::intrusive_ptr<Object>& model);
    std::shared_ptr<ModelGraphs> made_graphs(const torch::jit::Module& model,
                                             const std::shared_ptr<torch::jit::Graph>& code);
    c10::IValue run(const Values& inputs) const;
    std::string judged(const Values& inputs, const Contestant& replay) const;
    void forget();

    const ReplayDevice& device_;
    const ReplaySettings& settings_;
    const ReplayDecisions& decisions_;
    // Alive while a call is under way. Another one in its place is seen by its state.
    Object* model_;
    std::string name_;

    mutable std::mutex mutex_;  // guards everything below
    std::optional<ModelState> state_;
    std::shared_ptr<ModelGraphs> graphs_;  // none: the model cannot be replayed
    std::string obstacle_;
    int changes_ = 0;
    GraphStatistics before_;  // of the model as it was
};

}  // namespace twinkle::runtime
