#pragma once
// Judges a site, or a whole model, against what it replaces: on every call, in every size.

#include "runtime/verify/sized_calls.h"
#include "runtime/verify/verdict.h"

#include <torch/script.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// The modules to compare: kernelized, original, and the original in double.
struct Contest {
    torch::jit::Module kernelized;
    torch::jit::Module original;
    torch::jit::Module reference;  // computes in double, with its weights in double
    Norm norm = Norm::largest;
    std::function<void()> alive;                        // told between steps that take long
    std::function<void(const std::string& size)> size;  // told before what is run in a size
    const VerificationContext& context;
    // For a converted model as a whole, the error measured instead of the original's: a random
    // error of the original must not make a correct model fail.
    std::optional<torch::jit::Module> measure = std::nullopt;
    std::optional<double> most{};  // the error that may be, instead of the rule's
    std::optional<double> agreement{};
    ModelWeights weights{};  // of the model whose sites these are
};

// `sized` starts with the calls on the given inputs. Only these are timed.
Verdict judge(const Contest& contest, const std::vector<SizedCalls>& sized);

struct JudgedSizes {
    Verdict verdict;
    std::vector<std::pair<std::size_t, Calls>> timed;  // groups to measure, the given inputs first
};

// The same for each group of calls by itself: what is wrong in one may be right in others. Times
// are for the caller (side_by_side.h).
JudgedSizes judge_by_size(const Contest& contest, const std::vector<SizedCalls>& sized,
                          const SizeGroups& groups);

// The group of a call; none: its input is no tensor.
std::optional<std::size_t> group_of(const SizeGroups& groups, const Inputs& inputs);

}  // namespace twinkle::runtime
