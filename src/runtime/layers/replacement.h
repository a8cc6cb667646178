#pragma once
// Replaces the forward of one class by layers: every forward method of it, or none.

#include "runtime/graph/keep_reason.h"
#include "runtime/layers/operator_check.h"
#include "runtime/layers/site_adapter.h"
#include "runtime/source/host_value.h"
#include "runtime/source/package_values.h"
#include "twinkle/tuning_config.h"

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A kernel's layer, and what it may use at the site.
struct HostedLayer {
    Compilation* compilation = nullptr;
    std::string layer;
    HostAttributes host;
    std::string op_namespace{};  // of its operators
    CfgFields cfg{};             // their keyword arguments; empty: as its code calls them
};

struct ReplacementRequest {
    std::vector<HostedLayer> layers;             // at least one
    std::map<std::string, PassedInputs> passed;  // by method
    OperatorUse use;

    // Which of the layers serves calls with up to so many elements in one input of the forward
    // (without self); none: the original. Ordered by `up_to`, the last part serves all others.
    // Empty: the first layer serves every call.
    struct Part {
        std::optional<std::size_t> layer;
        std::int64_t up_to = 0;
    };
    std::vector<Part> parts{};
    std::size_t input = 0;
};

// On an error the class is as it was.
tl::expected<void, KeepReason> replace_forward(const c10::ClassTypePtr& type,
                                               const ReplacementRequest& request);

}  // namespace twinkle::runtime
