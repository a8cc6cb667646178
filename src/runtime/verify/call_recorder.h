#pragma once
// Records what the sites of a model, instances and calls of functions, are called with during one
// run.

#include "runtime/rewrite/region.h"

#include <torch/script.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct RecordedCall {
    std::string method;               // forward, forward1, …; forward for a function
    std::vector<c10::IValue> inputs;  // without self; copies, as they were before the call
};

// By site, the calls that a trace had inlined into a model: the instance, and what they were.
using InlinedSites = std::map<std::string, std::pair<torch::jit::Module, Region>>;

// Runs `model` (a copy that nobody else uses: it is instrumented) once and returns the calls of
// every site, the first `max_calls` of each of its methods.
std::map<std::string, std::vector<RecordedCall>> record_calls(
    torch::jit::Module& model, const std::vector<std::string>& sites, std::size_t max_calls,
    const std::function<void(torch::jit::Module&)>& run, const InlinedSites& inlined = {});

// What goes into regions of a model while `run` runs it, by region, the first `max_calls`. The
// graphs are then as they were; what was optimized for the run is not (past_runs.h).
std::vector<std::vector<std::vector<c10::IValue>>> record_regions(
    const std::vector<Region>& regions, std::size_t max_calls, const std::function<void()>& run);

}  // namespace twinkle::runtime
