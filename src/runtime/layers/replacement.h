#pragma once
// Replaces the forward of one class by a layer: every forward method of it, or none.

#include "runtime/graph/keep_reason.h"
#include "runtime/layers/operator_check.h"
#include "runtime/layers/site_adapter.h"
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

}  // namespace twinkle::runtime
