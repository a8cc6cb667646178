#include "runtime/replay/model_graphs.h"

#include "runtime/replay/graph_obstacles.h"
#include "twinkle/error.h"

#include <ATen/autocast_mode.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

namespace twinkle::runtime {

namespace {

constexpr std::size_t most_reasons = 64;

GraphOptions checked(GraphOptions options) {
    if (options.warm_up < 1 || options.warm_up > 1000) {
        throw Error(ErrorCode::malformed, {.what = "these options of a graphed model make no sense",
                                           .where = {},
                                           .why = "warm_up is not between 1 and 1000",
                                           .hint = "3 is enough for most libraries"});
    }
    return options;
}

// Brackets one use of a captured run.
class Use {
public:
    explicit Use(GraphLane& lane) : lane_(lane) { lane_.enter(); }
    ~Use() { lane_.leave(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

private:
    GraphLane& lane_;
};

}  // namespace

ModelGraphs::ModelGraphs(torch::jit::Module model, GraphOptions options, c10::DeviceType type,
                         FindBackend find_backend)
    : ModelGraphs(GraphModel(std::move(model), options.freeze, options.fuse,
                             options.join ? std::optional(type) : std::nullopt),
                  options, type, std::move(find_backend)) {}

ModelGraphs::ModelGraphs(GraphModel model, GraphOptions options, c10::DeviceType type,
                         FindBackend find_backend, Host host)
    : options_(checked(options)),
      type_(type),
      find_backend_(std::move(find_backend)),
      host_(std::move(host)),
      model_(std::move(model)),
      may_join_(options_.join),
      cache_(options_.max_graphs, options_.max_bytes) {}

c10::IValue ModelGraphs::forward(Values inputs, const torch::jit::Kwargs& named) {
    inputs = model_.arguments(std::move(inputs), named);
    const InputKey key = key_of(inputs, type_);
    Turn taken = turn(key, inputs);
    if (taken.replayed) {
        return *std::move(taken.replayed);
    }
    if (taken.step == Step::unfit) {
        return model_.run(inputs);
    }
    const c10::DeviceGuard device(key.device);
    return taken.step == Step::first     ? first(key, inputs)
           : taken.step == Step::refused ? model_.run_uncaptured(inputs)
                                         : model_.run(inputs);
}

std::optional<c10::IValue> ModelGraphs::replayed(const Values& inputs) {
    const InputKey key = key_of(inputs, type_);
    Turn taken = turn(key, inputs);
    if (taken.step == Step::first) {
        return first(key, inputs);
    }
    return std::move(taken.replayed);
}

ModelGraphs::Turn ModelGraphs::turn(const InputKey& key, const Values& inputs) {
    if (const std::string obstacle = obstacle_of(key, inputs); !obstacle.empty()) {
        count_plain(obstacle);
        return {Step::unfit};
    }
    const c10::DeviceGuard device(key.device);
    std::unique_lock lock(mutex_);
    Plan planned = plan(cache_.use(key.text));
    if (planned.step == Step::capture) {
        lock.unlock();
        const std::string reason = capture(key, inputs);
        lock.lock();
        planned = plan(cache_.find(key.text));
        if (planned.step == Step::capture) {
            planned = {Step::plain, reason};  // and asked again with the next use
        }
    }
    if (planned.step == Step::replay) {
        return {Step::replay, replay(*cache_.find(key.text).call, key, inputs)};
    }
    lock.unlock();
    if (planned.step != Step::first) {
        count_plain(planned.reason);
    }
    return {planned.step};
}

std::optional<std::string> ModelGraphs::prepare(Values inputs, const torch::jit::Kwargs& named) {
    inputs = model_.arguments(std::move(inputs), named);
    const InputKey key = key_of(inputs, type_);
    std::string reason = obstacle_of(key, inputs);
    if (reason.empty()) {
        const c10::DeviceGuard device(key.device);
        // Runs on copies: a model may write into its inputs.
        first(key, StaticInputs(inputs).values());
        std::unique_lock lock(mutex_);
        const Plan planned = plan(cache_.find(key.text));
        lock.unlock();
        reason = planned.step == Step::capture  ? capture(key, inputs)
                 : planned.step == Step::replay ? ""
                                                : planned.reason;
    }
    return reason.empty() ? std::nullopt : std::optional(reason);
}

// The obstacle of this call, whatever was captured before.
std::string ModelGraphs::obstacle_of(const InputKey& key, const Values& inputs) const {
    if (!key.obstacle.empty()) {
        return key.obstacle;
    }
    if (!model_.obstacle().empty()) {
        return model_.obstacle();
    }
    if (model_.is_training()) {
        return "the model is in training";
    }
    if (c10::GradMode::is_enabled()) {
        const std::vector<at::Tensor> tensors = tensors_of(inputs);
        if (model_.wants_gradients() ||
            std::any_of(tensors.begin(), tensors.end(),
                        [](const at::Tensor& tensor) { return tensor.requires_grad(); })) {
            return "gradients are recorded (torch::NoGradGuard turns that off)";
        }
    }
    if (at::autocast::is_autocast_enabled(type_)) {
        return "autocast is on";
    }
    const FoundBackend found = find_backend_();
    if (!found.backend) {
        return found.why_none;
    }
    return found.backend->stream_is_capturing(key.device) ? "the stream is being captured already"
                                                          : "";
}

ModelGraphs::Plan ModelGraphs::plan(const GraphCache::Entry& entry) const {
    if (!entry.has_run) {
        return {Step::first, {}};
    }
    if (captures_now_) {
        return {Step::plain, another_captures};
    }
    if (entry.call) {
        return {Step::replay, {}};
    }
    if (!entry.refusal.empty()) {
        return {Step::refused, entry.refusal};
    }
    if (refusals_ >= most_refusals) {
        return {Step::refused,
                "it could not be captured at " + std::to_string(most_refusals) + " other shapes"};
    }
    if (!state_.empty() && !options_.may_write_state) {
        return {Step::plain, "the model writes into " + state_ + " (see may_write_state)"};
    }
    return {Step::capture, {}};
}

void ModelGraphs::count_plain(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    ++counted_.plain_runs;
    if (counted_.reasons.size() < most_reasons || counted_.reasons.count(reason) != 0) {
        ++counted_.reasons[reason];
    }
}

// A plain run that shows whether the model writes to its own tensors.
c10::IValue ModelGraphs::first(const InputKey& key, const Values& inputs) {
    const StateVersions before(model_.module());
    count_plain("the shape is new");
    c10::IValue result = host_.run ? host_.run(inputs) : model_.run(inputs);
    const auto changed = StateVersions(model_.module()).changed_since(before);
    const std::lock_guard lock(mutex_);
    state_ = changed.value_or(state_);
    cache_.find(key.text).has_run = true;
    return result;
}

// Needs the lock.
c10::IValue ModelGraphs::replay(CapturedCall& call, const InputKey& key, const Values& inputs) {
    c10::IValue result = result_of(lane_of(key.device), call, inputs);
    ++counted_.replays;
    return result;
}

c10::IValue ModelGraphs::result_of(GraphLane& lane, CapturedCall& call,
                                   const Values& inputs) const {
    const Use use(lane);
    call.inputs->copy_from(inputs);
    call.run->replay();
    return options_.clone_outputs ? cloned(call.run->outputs) : call.run->outputs;
}

GraphStatistics ModelGraphs::statistics() const {
    const std::lock_guard lock(mutex_);
    GraphStatistics result = counted_;
    result.graphs = cache_.graphs();
    result.bytes = cache_.bytes();
    result.evictions = cache_.evictions();
    if (const std::shared_ptr<const CaptureCode> code = cache_.capture_code()) {
        result.joined_layers = code->joined.layers;
        result.joined_bytes = code->joined.bytes;
    }
    result.not_frozen = model_.not_frozen();
    return result;
}

void ModelGraphs::clear() {
    const std::lock_guard one(capturing_);
    const std::lock_guard lock(mutex_);
    cache_.clear();
    may_join_ = options_.join;
    state_.clear();
    refusals_ = 0;
}

}  // namespace twinkle::runtime
