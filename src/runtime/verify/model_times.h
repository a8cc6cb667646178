#pragma once
// Times whole models against each other, in a child process: the original and the kernelized one,
// each as it is and frozen. They take turns.

#include "runtime/verify/comparison.h"
#include "runtime/verify/timing.h"
#include "runtime/verify/verification.h"

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct ModelTimes {
    struct Contestant {
        std::string name;    // "original", "frozen original", "kernelized", "frozen kernelized"
        std::string absent;  // why it did not take part; empty: it did
        Comparison comparison;
        std::vector<double> us;  // by turn; empty where it did not take part
    };
    std::vector<Contestant> contestants;
    int threads = 0;             // that LibTorch used
    std::string cpu_capability;  // "AVX512": what LibTorch's own kernels use

    const Contestant& named(const std::string& name) const;
};

enum class Contest {
    all,          // these four, their results compared with a double-precision run of the original
    as_they_are,  // the original and the kernelized model, which have been verified
    frozen        // the kernelized model as it is, and frozen
};

// With context.steps a run is a step of training, and nothing is frozen. The observer gets each
// step. Throws Error(refused) if a contestant crashed or hung, naming it.
ModelTimes measure_models(const VerificationContext& context, const torch::jit::Module& kernelized,
                          Contest contest,
                          const std::function<void(const std::string& doing)>& observer);

}  // namespace twinkle::runtime
