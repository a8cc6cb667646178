#pragma once
// Implements twinkle/graphed_model.h, over any device that can capture.

#include "runtime/replay/graph_backend.h"
#include "runtime/replay/graph_cache.h"
#include "runtime/replay/graph_model.h"
#include "runtime/replay/input_key.h"
#include "twinkle/graphed_model.h"

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace twinkle::runtime {

// A replay, as a caller gets it, for whoever measures it.
struct Contestant {
    std::function<c10::IValue()> run;
    std::function<void()> wait;  // for the device
};

class ModelGraphs {
public:
    // Called when the first inputs arrive that could be captured.
    using FindBackend = std::function<FoundBackend()>;

    // For a caller that can run the model itself.
    struct Host {
        std::function<c10::IValue(const Values& inputs)> run;
        // Called once for a captured shape. Why a replay is not what the caller wants; empty: it
        // is.
        std::function<std::string(const InputKey& key, const Values& inputs,
                                  const Contestant& replay)>
            judge;
    };

    ModelGraphs(torch::jit::Module model, GraphOptions options, c10::DeviceType type,
                FindBackend find_backend);
    ModelGraphs(GraphModel model, GraphOptions options, c10::DeviceType type,
                FindBackend find_backend, Host host = {});

    // The result, or nothing where the host is to run the model. The inputs are the arguments of
    // forward() in their order.
    std::optional<c10::IValue> replayed(const Values& inputs);
    c10::IValue forward(Values inputs, const torch::jit::Kwargs& named);
    std::optional<std::string> prepare(Values inputs, const torch::jit::Kwargs& named);
    GraphStatistics statistics() const;
    void clear();

private:
    static constexpr const char* another_captures = "another thread is capturing";
    static constexpr int most_refusals = 3;  // for a model that was never captured

    // The next step for a call: unfit ones could not be captured whatever was before, refused ones
    // run as LibTorch runs any model. The entry may be gone once the lock is released.
    enum class Step { unfit, plain, refused, first, capture, replay };
    struct Plan {
        Step step;
        std::string reason;  // for a plain run
    };
    struct Turn {
        Step step;
        std::optional<c10::IValue> replayed{};
    };

    std::string obstacle_of(const InputKey& key, const Values& inputs) const;
    Plan plan(const GraphCache::Entry& entry) const;
    Turn turn(const InputKey& key, const Values& inputs);
    void count_plain(const std::string& reason);
    c10::IValue first(const InputKey& key, const Values& inputs);
    c10::IValue replay(CapturedCall& call, const InputKey& key, const Values& inputs);
    c10::IValue result_of(GraphLane& lane, CapturedCall& call, const Values& inputs) const;
    // Why nothing was captured; empty: the key's entry has the graph.
    std::string capture(const InputKey& key, const Values& inputs);
    struct Attempt {
        std::shared_ptr<CapturedCall> call;
        bool captured = false;  // if it is null: the host does not want it
        std::string reason;     // why it is null
    };
    Attempt attempt(GraphLane& lane, const InputKey& key, const Values& inputs,
                    const std::shared_ptr<const CaptureCode>& code);
    std::shared_ptr<CapturedCall> captured(GraphLane& lane, const Values& inputs,
                                           const std::shared_ptr<const CaptureCode>& code,
                                           bool again, std::string& reason);
    std::shared_ptr<CapturedCall> captured(GraphLane& lane, const Values& inputs,
                                           const std::shared_ptr<const CaptureCode>& code);
    std::string judged(GraphLane& lane, CapturedCall& call, const InputKey& key,
                       const Values& inputs);
    void refuse(const InputKey& key, const std::string& reason, bool counts);
    std::string keep(const InputKey& key, std::shared_ptr<CapturedCall> call);
    GraphLane& lane_of(c10::Device device);
    std::shared_ptr<const CaptureCode> capture_code();

    GraphOptions options_;
    c10::DeviceType type_;
    FindBackend find_backend_;
    Host host_;
    GraphModel model_;

    std::mutex capturing_;  // one capture at a time, and its code; taken before the other
    bool may_join_;
    std::weak_ptr<const CaptureCode> capture_code_;  // alive as long as a captured run has it
    mutable std::mutex mutex_;                       // guards everything below
    bool captures_now_ = false;
    bool has_released_ = false;  // what gathered weights have left behind
    std::string state_;          // which the model writes; empty: none so far
    int refusals_ = 0;           // for other reasons than memory, before the first capture
    GraphStatistics counted_;
    std::map<c10::DeviceIndex, std::unique_ptr<GraphLane>> lanes_;
    GraphCache cache_;  // gone before the lanes
};

}  // namespace twinkle::runtime
