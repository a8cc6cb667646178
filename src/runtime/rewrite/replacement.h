#pragma once
// Replaces the forward of one class by a layer: every forward method of it, or none.

#include "runtime/rewrite/operator_check.h"
#include "runtime/rewrite/site_adapter.h"
#include "runtime/selection/keep_reason.h"
#include "runtime/source/host_value.h"
#include "runtime/source/package_values.h"

#include <tl/expected.hpp>

#include <string>

namespace twinkle::runtime {

struct ReplacementRequest {
    std::string layer;
    HostAttributes host;
    std::map<std::string, PassedInputs> passed;  // by method
    OperatorUse use;
};

// On an error the class is as it was.
tl::expected<void, KeepReason> replace_forward(const c10::ClassTypePtr& type,
                                               Compilation& compilation,
                                               const ReplacementRequest& request);

// Whether replace_forward has put this method into a class: it is the kernel's, not the model's.
bool is_of_a_kernel(const torch::jit::Function& method);
// Whether replace_forward has taken this instance over before (in an earlier kernelize of a saved
// model).
bool is_kernelized(const torch::jit::Module& module);

}  // namespace twinkle::runtime
