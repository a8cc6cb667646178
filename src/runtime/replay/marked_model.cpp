#include "runtime/replay/marked_model.h"

#include "runtime/model/graphs_mark.h"
#include "runtime/replay/replay_decisions.h"
#include "runtime/replay/replay_log.h"
#include "runtime/replay/served_model.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/runtime/custom_operator.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace twinkle::runtime {

namespace {

// Copies of one model, which have its code. A program may make them again and again: those used
// last are kept.
constexpr std::size_t most_models = 8;

// Holds those of which statistics are due when the process ends.
class Living {
public:
    void add(MarkedModels* one) {
        const std::lock_guard lock(mutex_);
        if (!at_exit_) {
            at_exit_ = std::atexit([] { living().tell(); }) == 0;
        }
        all_.insert(one);
    }
    void remove(MarkedModels* one) {
        const std::lock_guard lock(mutex_);
        all_.erase(one);
    }
    void tell() {
        const std::lock_guard lock(mutex_);
        for (const MarkedModels* one : all_) {
            one->tell();
        }
        all_.clear();
    }
    static Living& living() {
        static auto& only = *new Living;
        return only;
    }

private:
    std::mutex mutex_;
    std::set<MarkedModels*> all_;
    bool at_exit_ = false;
};

void replay(torch::jit::Stack& stack) {
    const c10::IValue inputs = torch::jit::pop(stack);
    const c10::IValue model = torch::jit::pop(stack);
    const c10::IValue graphs = torch::jit::pop(stack);
    torch::jit::drop(stack, 1);
    std::optional<c10::IValue> result;
    if (model.isModule() && inputs.isTuple()) {
        result = graphs.toCustomClass<MarkedModels>()->replayed(
            model.toObject(), inputs.toTupleRef().elements().vec());
    }
    const bool replayed = result.has_value();
    stack.emplace_back(replayed);
    stack.push_back(std::move(result).value_or(c10::IValue()));
}

// A schema without aliases: it changes nothing, and its result is new.
const torch::jit::RegisterOperators replay_registration({torch::jit::Operator(
    std::string(replay_operator) + "(str mark, Any graphs, Any model, Any inputs) -> (bool, Any)",
    replay, c10::AliasAnalysisKind::FROM_SCHEMA)});

// "twinkle.graphs/1", and behind it what was decided before.
std::string state_of(const MarkedModels& models) {
    const std::string decided = models.decided();
    return graphs_mark_text + (decided.empty() ? "" : " " + decided);
}

c10::intrusive_ptr<MarkedModels> marked_models_of(const std::string& state) {
    const std::string mark = state.substr(0, state.find(' '));
    if (mark != graphs_mark_text) {
        throw Error(ErrorCode::malformed,
                    {.what = "the model's mark for graphs is another one",
                     .where = {},
                     .why = "this twinkle knows " + std::string(graphs_mark_text),
                     .hint = "kernelize the original model again"});
    }
    return c10::make_intrusive<MarkedModels>(
        ReplayDevice(), replay_settings(),
        mark.size() < state.size() ? state.substr(mark.size() + 1) : "");
}

const auto class_registration =
    torch::class_<MarkedModels>("twinkle", "MarkedModels")
        .def_pickle(
            [](const c10::intrusive_ptr<MarkedModels>& models) { return state_of(*models); },
            [](const std::string& state) { return marked_models_of(state); });

}  // namespace

c10::IValue marked_models(const std::string& decided) {
    return torch::make_custom_class<MarkedModels>(ReplayDevice(), replay_settings(), decided);
}

MarkedModels::MarkedModels(ReplayDevice device, const ReplaySettings& settings,
                           const std::string& decided)
    : device_(std::move(device)),
      settings_(settings),
      decisions_(std::make_unique<const ReplayDecisions>(
          decided.empty() ? ReplayDecisions() : ReplayDecisions::parse(decided))) {
    if (settings_.statistics) {
        Living::living().add(this);
    }
}

MarkedModels::~MarkedModels() {
    if (settings_.statistics) {
        Living::living().remove(this);
        tell();
    }
}

std::string MarkedModels::decided() const {
    return decisions_->empty() ? "" : decisions_->text();
}

void MarkedModels::tell() const {
    std::unique_lock lock(mutex_);
    if (!models_.empty()) {
        lock.unlock();
        log_replays(statistics_text(statistics()));
    }
}

std::optional<c10::IValue> MarkedModels::replayed(
    const c10::intrusive_ptr<c10::ivalue::Object>& model, const Values& inputs) {
    if (!settings_.on || ServedModel::runs_plainly() || !may_fit(inputs)) {
        return std::nullopt;
    }
    return served(model)->replayed(model, inputs);
}

// Asked first: most calls elsewhere are on the CPU, where this is all that they pay.
bool MarkedModels::may_fit(const Values& inputs) const {
    return std::any_of(inputs.begin(), inputs.end(), [&](const c10::IValue& input) {
        return input.isTensor()
                   ? input.toTensor().defined() && input.toTensor().device().type() == device_.type
                   : !input.isNone() && !tensors_of(input).empty();
    });
}

std::shared_ptr<ServedModel> MarkedModels::served(
    const c10::intrusive_ptr<c10::ivalue::Object>& model) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(models_.begin(), models_.end(),
                                    [&](const auto& one) { return one->is(model); });
    if (found != models_.end()) {
        std::rotate(found, found + 1, models_.end());
        return models_.back();
    }
    if (models_.size() >= most_models) {
        models_.erase(models_.begin());
    }
    models_.push_back(std::make_shared<ServedModel>(model, device_, settings_, *decisions_));
    return models_.back();
}

GraphStatistics MarkedModels::statistics() const {
    const std::lock_guard lock(mutex_);
    GraphStatistics sum;
    for (const auto& one : models_) {
        add_statistics(sum, one->statistics());
    }
    return sum;
}

}  // namespace twinkle::runtime
