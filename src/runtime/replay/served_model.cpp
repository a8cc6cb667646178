#include "runtime/replay/served_model.h"

#include "runtime/graph/class_name.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/replay/replay_contest.h"
#include "runtime/replay/replay_decisions.h"
#include "runtime/replay/replay_log.h"
#include "runtime/verify/run_error.h"

#include <torch/csrc/jit/passes/inliner.h>

namespace twinkle::runtime {

namespace {

constexpr int most_changes = 16;

thread_local int plain_runs = 0;

// A run of the model by this thread that its mark leaves alone.
class PlainRun {
public:
    PlainRun() { ++plain_runs; }
    ~PlainRun() { --plain_runs; }
    PlainRun(const PlainRun&) = delete;
    PlainRun& operator=(const PlainRun&) = delete;
};

}  // namespace

bool ServedModel::runs_plainly() {
    return plain_runs > 0;
}

ServedModel::ServedModel(const c10::intrusive_ptr<Object>& model, const ReplayDevice& device,
                         const ReplaySettings& settings, const ReplayDecisions& decisions)
    : device_(device),
      settings_(settings),
      decisions_(decisions),
      model_(model.get()),
      name_(unmangled(model->name())) {}

std::optional<c10::IValue> ServedModel::replayed(const c10::intrusive_ptr<Object>& model,
                                                 const Values& inputs) {
    if (!decisions_.empty() && decisions_.of(shapes_text(inputs)) == false) {
        return std::nullopt;
    }
    const std::shared_ptr<ModelGraphs> graphs = graphs_of(model);
    return graphs ? graphs->replayed(inputs) : std::nullopt;
}

// The graphs of the model as it is now. A model that goes on changing has none.
std::shared_ptr<ModelGraphs> ServedModel::graphs_of(const c10::intrusive_ptr<Object>& model) {
    const std::lock_guard lock(mutex_);
    if (!obstacle_.empty() || (state_ && state_->is_current())) {
        return graphs_;
    }
    if (state_) {
        forget();
        if (++changes_ > most_changes) {
            obstacle_ = "its weights or attributes go on changing";
            return graphs_;
        }
    }
    const torch::jit::Module module(model);
    try {
        const auto code = unmarked_forward(module);
        torch::jit::Inline(*code);
        state_.emplace(module, *code);
        obstacle_ =
            state_->object().empty() ? "" : "its attribute " + state_->object() + " is an object";
        graphs_ = obstacle_.empty() ? made_graphs(module, code) : nullptr;
    } catch (const std::exception& error) {
        obstacle_ = "its code cannot be prepared: " + run_error(error.what());
    }
    if (!obstacle_.empty() && settings_.statistics) {
        log_replays(name_ + " runs plainly: " + obstacle_);
    }
    return graphs_;
}

// Needs the lock.
void ServedModel::forget() {
    if (graphs_) {
        add_statistics(before_, graphs_->statistics());
        before_.graphs = 0;
        before_.bytes = before_.joined_layers = before_.joined_bytes = 0;
        graphs_.reset();
    }
}

// Captured is a copy of the code, which does not ask for a replay. It keeps neither the model alive
// nor the code, of which this object is a part. (A clone of the model would: it has the same
// compilation unit.)
std::shared_ptr<ModelGraphs> ServedModel::made_graphs(
    const torch::jit::Module& model, const std::shared_ptr<torch::jit::Graph>& code) {
    GraphModel unmarked(model._ivalue(), code);
    const ModelGraphs::Host host{
        .run = [this](const Values& inputs) { return run(inputs); },
        .judge = [this](const InputKey&, const Values& inputs,
                        const Contestant& replay) { return judged(inputs, replay); }};
    return std::make_shared<ModelGraphs>(std::move(unmarked), settings_.limits, device_.type,
                                         device_.find_backend, host);
}

// Called while the program's own call is under way, which holds the model.
c10::IValue ServedModel::run(const Values& inputs) const {
    const PlainRun plain;
    const torch::jit::Module model(c10::intrusive_ptr<Object>::reclaim_copy(model_));
    return model.get_method("forward")(inputs);
}

std::string ServedModel::judged(const Values& inputs, const Contestant& replay) const {
    if (decisions_.of(shapes_text(inputs))) {  // faster: else it would not be here
        return replay_objection([&] { return run(inputs); }, replay);
    }
    const ContestResult result =
        replay_contest([&] { return run(inputs); }, replay,
                       device_.clock ? device_.clock : std::function<double()>(steady_seconds));
    if (settings_.statistics) {
        log_replays(name_ + " " + shapes_text(inputs) + ": " +
                    (result.objection.empty() ? "replayed" : "runs plainly: " + result.objection) +
                    (result.times.plain == 0
                         ? ""
                         : " (" + milliseconds(result.times.replay) + " a replay, " +
                               milliseconds(result.times.plain) + " a run)"));
    }
    return result.objection;
}

GraphStatistics ServedModel::statistics() const {
    const std::lock_guard lock(mutex_);
    GraphStatistics sum = before_;
    if (graphs_) {
        add_statistics(sum, graphs_->statistics());
    }
    if (!obstacle_.empty()) {
        ++sum.reasons[obstacle_];
    }
    return sum;
}

}  // namespace twinkle::runtime
