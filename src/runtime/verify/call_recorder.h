#pragma once
// Records what the sites of a model, instances and calls of functions, are called with during one
// run.

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

// Runs `model` (a copy that nobody else uses: it is instrumented) once and returns the calls of
// every site, the first `max_calls` of each of its methods.
std::map<std::string, std::vector<RecordedCall>> record_calls(
    torch::jit::Module& model, const std::vector<std::string>& sites, std::size_t max_calls,
    const std::function<void(torch::jit::Module&)>& run);

}  // namespace twinkle::runtime
