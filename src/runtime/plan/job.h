#pragma once
// One kernelize: the options, the model and the kernels.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/selection/selection.h"
#include "twinkle/implementation.h"
#include "twinkle/kernelize.h"

#include <map>
#include <string>

namespace twinkle::runtime {

struct Job {
    torch::jit::Module& model;
    const Mapping& mapping;
    const KernelizeOptions& options;
    KernelProvider provider = load_kernel;
    // C++ functions that candidates of the mapping name as operators of "twinkle_native".
    std::map<std::string, Implementation> natives{};
    SelectionContext context{};  // from the options and the model

    void observe(const std::string& stage, const std::string& what) const {
        if (options.observer) {
            options.observer(stage, what);
        }
    }
};

// DISABLE_KERNEL_MAPPING in the environment: every model stays as it is.
bool mapping_disabled();

}  // namespace twinkle::runtime
