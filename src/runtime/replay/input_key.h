#pragma once
// The properties of its inputs that a captured run depends on, besides the numbers in their
// tensors.

#include "runtime/model/nested_values.h"

#include <c10/core/Device.h>

#include <string>

namespace twinkle::runtime {

struct InputKey {
    std::string text;      // equal for inputs that one captured run can serve
    c10::Device device;    // of all tensors
    std::string obstacle;  // why these inputs cannot be captured; empty: they can
};

// `type`: the kind of device that captures runs.
InputKey key_of(const Values& inputs, c10::DeviceType type);

}  // namespace twinkle::runtime
