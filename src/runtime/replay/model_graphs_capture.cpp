// Captures a model for inputs of one kind, or says why not.
#include "runtime/replay/model_graphs.h"

#include "runtime/replay/same_results.h"
#include "runtime/verify/run_error.h"

#include <stdexcept>

namespace twinkle::runtime {

namespace {

constexpr const char* memory_is_short = "memory is short for its graph";

// A recipe's objection; its text is the reason.
struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// TorchScript's interpreter turns it into another exception, with the same text.
bool is_out_of_memory(const std::exception& error) {
    const std::string_view text = error.what();
    return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
           text.find("out of memory") != std::string_view::npos ||
           text.find("STATUS_ALLOC_FAILED") != std::string_view::npos;  // cuBLAS, cuDNN
}

}  // namespace

std::string ModelGraphs::capture(const InputKey& key, const Values& inputs) {
    const std::unique_lock one(capturing_, std::try_to_lock);
    if (!one) {
        return another_captures;
    }
    std::unique_lock lock(mutex_);
    GraphLane* lane = nullptr;
    try {
        lane = &lane_of(key.device);
        if (model_.left_bytes() > 0 && !has_released_) {
            has_released_ = true;
            lane->release_cached_memory();  // which no graph could use
        }
        if (options_.max_bytes == 0 && cache_.graphs() == 0) {
            cache_.limit_bytes(lane->free_memory() / 4);
        }
    } catch (const std::exception& error) {
        return cannot_be_captured(error.what());
    }
    GraphCache::Entry& entry = cache_.find(key.text);
    if (const std::string full = cache_.make_room(entry, entry.bytes); !full.empty()) {
        return full;  // and asked again with the next use
    }
    captures_now_ = true;
    lock.unlock();
    const std::shared_ptr<const CaptureCode> code = capture_code();
    Attempt done = attempt(*lane, key, inputs, code);
    if (!done.call && code) {
        may_join_ = done.captured || done.reason == memory_is_short;
        done = attempt(*lane, key, inputs, nullptr);
    }
    lock.lock();
    captures_now_ = false;
    if (!done.call) {
        refuse(key, done.reason, !done.captured);
        return done.reason;
    }
    return keep(key, std::move(done.call));
}

ModelGraphs::Attempt ModelGraphs::attempt(GraphLane& lane, const InputKey& key,
                                          const Values& inputs,
                                          const std::shared_ptr<const CaptureCode>& code) {
    Attempt done;
    done.call = captured(lane, inputs, code, /*again=*/false, done.reason);
    if (done.reason == memory_is_short) {
        done.call = captured(lane, inputs, code, /*again=*/true, done.reason);
    }
    done.captured = done.call != nullptr;
    if (done.captured && host_.judge) {
        done.reason = judged(lane, *done.call, key, inputs);
        if (!done.reason.empty()) {
            done.call.reset();
        }
    }
    return done;
}

// None: `reason` says why.
std::shared_ptr<CapturedCall> ModelGraphs::captured(GraphLane& lane, const Values& inputs,
                                                    const std::shared_ptr<const CaptureCode>& code,
                                                    bool again, std::string& reason) {
    try {
        if (again) {
            lane.release_cached_memory();
        }
        return captured(lane, inputs, code);
    } catch (const Refusal& refusal) {
        reason = refusal.what();
    } catch (const std::exception& error) {
        reason =
            again || is_out_of_memory(error) ? memory_is_short : cannot_be_captured(error.what());
    }
    return nullptr;
}

// Asks the host to judge a captured run. Other calls do not wait; they run without a graph
// meanwhile.
std::string ModelGraphs::judged(GraphLane& lane, CapturedCall& call, const InputKey& key,
                                const Values& inputs) {
    const Contestant replay{[&] { return result_of(lane, call, inputs); }, [&] { lane.wait(); }};
    try {
        return host_.judge(key, inputs, replay);
    } catch (const std::exception& error) {
        return is_out_of_memory(error) ? memory_is_short : run_error(error.what());
    }
}

// Needs the lock.
void ModelGraphs::refuse(const InputKey& key, const std::string& reason, bool counts) {
    cache_.find(key.text).refusal = reason;
    if (counts && counted_.captures == 0 && reason != memory_is_short) {
        ++refusals_;
    }
}

// Needs the lock.
std::string ModelGraphs::keep(const InputKey& key, std::shared_ptr<CapturedCall> call) {
    ++counted_.captures;
    GraphCache::Entry& entry = cache_.find(key.text);
    entry.bytes = call->run->bytes();
    std::string full = cache_.make_room(entry, entry.bytes);
    if (full.empty()) {
        cache_.put(entry, std::move(call));
    }
    return full;
}

std::shared_ptr<CapturedCall> ModelGraphs::captured(
    GraphLane& lane, const Values& inputs, const std::shared_ptr<const CaptureCode>& code) {
    const torch::NoGradGuard no_grad;
    auto call = std::make_shared<CapturedCall>();
    CapturedCall& made = *call;  // it owns what the lane keeps of the recipe
    c10::IValue expected;
    made.code = code;
    Recipe recipe;
    recipe.warm_up = options_.warm_up;
    recipe.prepare = [&] {
        made.inputs = std::make_unique<StaticInputs>(inputs);
        if (made.code) {
            made.early = model_.run_early(*made.code, made.inputs->values());
        }
    };
    recipe.run = [this, &made] {
        const Values& values = made.inputs->values();
        return made.code ? model_.run(*made.code, values, made.early) : model_.run(values);
    };
    recipe.warmed = [&](const c10::IValue& outputs) {
        if (made.inputs->were_written(inputs)) {
            throw Refusal("the model writes into its inputs");
        }
        if (!is_plain(outputs)) {
            throw Refusal("the model returns an object");
        }
        if (made.code && !same_results(outputs, model_.run(made.inputs->values()))) {
            throw Refusal("joined linear layers, or values computed early, give other results");
        }
        expected = cloned(outputs);
    };
    recipe.replayed = [&](const c10::IValue& outputs) {
        if (!same_results(outputs, expected)) {
            throw Refusal("a replay gives other values than a run");
        }
    };
    call->run = lane.capture(recipe);
    return call;
}

// Null: forward() runs as it is. Needs `capturing_`.
std::shared_ptr<const CaptureCode> ModelGraphs::capture_code() {
    std::shared_ptr<const CaptureCode> code = may_join_ ? capture_code_.lock() : nullptr;
    if (!code && may_join_) {
        try {
            code = model_.capture_code(type_, !options_.clone_outputs);
        } catch (const std::exception&) {
            return nullptr;  // memory is short, for one: none is needed
        }
        capture_code_ = code;
        may_join_ = code != nullptr;
    }
    return code;
}

GraphLane& ModelGraphs::lane_of(c10::Device device) {
    std::unique_ptr<GraphLane>& lane = lanes_[device.index()];
    if (!lane) {
        lane = find_backend_().backend->lane(device);
    }
    return *lane;
}

}  // namespace twinkle::runtime
