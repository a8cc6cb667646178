#pragma once
// The attributes of an instance: those that the saved model has, and those that its graph still
// shows (lost_attributes.h), which are found once for all questions.

#include "runtime/layers/lost_attributes.h"
#include "runtime/source/host_value.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <tl/expected.hpp>

#include <optional>
#include <string>

namespace twinkle::runtime {

// Attribute, constant of the class, or among those that tracing has lost.
std::optional<c10::IValue> attribute_of(const torch::jit::Module& module,
                                        const LostAttributes& lost, const std::string& name);

bool equals(const c10::IValue& actual, const AttributeValue& expected);
c10::IValue to_ivalue(const AttributeValue& value);
std::string to_text(const AttributeValue& value);

// What the layer may find on top of the instance's own attributes: the manifest's, then the
// graph's. The reason, if the two contradict each other.
tl::expected<HostAttributes, std::string> supplied_attributes(
    LostAttributes lost, const std::map<std::string, AttributeValue>& from_manifest);

}  // namespace twinkle::runtime
