#pragma once
// Records what the sites of a model, instances and calls of functions, are called with during one
// run.

#include "runtime/trace/region.h"

#include <torch/script.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct RecordedCall {
    std::string method;               // forward, forward1, …; forward for a function
    std::vector<c10::IValue> inputs;  // without self; copies, as they were before the call
};

// By site, the calls that a trace had inlined into a model: the instance, and what they were.
using InlinedSites = std::map<std::string, std::pair<torch::jit::Module, Region>>;

// Records runs of a model, one at a time in a process.
class CallRecorder {
public:
    // Instruments the model: a copy that nobody else uses.
    CallRecorder(torch::jit::Module model, const std::vector<std::string>& sites,
                 const InlinedSites& inlined = {});

    // The calls of every site during `run`, the first `max_calls` of each of its methods.
    std::map<std::string, std::vector<RecordedCall>> record(
        std::size_t max_calls, const std::function<void(torch::jit::Module&)>& run);

private:
    torch::jit::Module model_;
    // By the object of the instance, and for a call of a function its place in the graphs.
    std::map<std::pair<const void*, std::int64_t>, std::string> sites_;
};

// What goes into regions of a model while `run` runs it, by region, the first `max_calls`. The
// graphs are then as they were; what was optimized for the run is not (past_runs.h).
std::vector<std::vector<std::vector<c10::IValue>>> record_regions(
    const std::vector<Region>& regions, std::size_t max_calls, const std::function<void()>& run);

}  // namespace twinkle::runtime
