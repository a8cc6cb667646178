#pragma once
// Records the arguments that a model's sites, instances and calls of functions, get during one
// run.

#include "runtime/trace/region.h"
#include "runtime/verify/model_weights.h"

#include <torch/script.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct RecordedCall {
    std::string method;  // forward, forward1, …; forward for a function
    // Without self; copies, as they were before the call, but for the model's weights.
    std::vector<c10::IValue> inputs;
};

// Calls that a trace has inlined, by site: the instance and the region.
using InlinedSites = std::map<std::string, std::pair<torch::jit::Module, Region>>;

// Records runs of a model, one at a time in a process.
class CallRecorder {
public:
    // Instruments the model, which must be a copy that nobody else uses.
    CallRecorder(torch::jit::Module model, const std::vector<std::string>& sites,
                 const InlinedSites& inlined = {});

    // The calls of every site during `run`, the first `max_calls` of each of its methods.
    std::map<std::string, std::vector<RecordedCall>> record(
        std::size_t max_calls, const std::function<void(torch::jit::Module&)>& run);

    const ModelWeights& weights() const { return weights_; }

private:
    torch::jit::Module model_;
    ModelWeights weights_;
    // Key: the object of the instance, and for a call of a function its place in the graphs.
    std::map<std::pair<const void*, std::int64_t>, std::string> sites_;
};

// The inputs of each region during `run`, the first `max_calls`. The graphs are restored after it;
// what was optimized for the run is not (past_runs.h).
std::vector<std::vector<std::vector<c10::IValue>>> record_regions(
    const std::vector<Region>& regions, std::size_t max_calls, const std::function<void()>& run);

}  // namespace twinkle::runtime
