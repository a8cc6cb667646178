#pragma once
// A site, or a whole model, beside what it stands for: on every call, in every size.

#include "runtime/verify/sized_calls.h"
#include "runtime/verify/verification.h"

#include <torch/script.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// What is compared: the same work by the kernelized and the original module, and by its double.
struct Contest {
    torch::jit::Module kernelized;
    torch::jit::Module original;
    torch::jit::Module reference;  // computes in double, with its weights in double
    Norm norm = Norm::largest;
    std::function<void()> alive;                        // told between steps that take long
    std::function<void(const std::string& size)> size;  // told before what is run in a size
    const VerificationContext& context;
    // Of a converted model as a whole, instead of the original: a random result must not make
    // another that is right fail.
    std::optional<torch::jit::Module> measure = std::nullopt;
};

// `sized`: the calls on the given inputs first. These alone are measured.
Verdict judge(const Contest& contest, const std::vector<SizedCalls>& sized);

}  // namespace twinkle::runtime
