#pragma once
// The attributes of an instance: those that the saved model has, and those that its graph still
// shows.

#include "runtime/graph/passed_parameters.h"
#include "runtime/source/host_value.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <tl/expected.hpp>

#include <optional>
#include <string>

namespace twinkle::runtime {

// Attribute, constant of the class, or found in the graph of forward by the rules of
// lost_attributes.h.
std::optional<c10::IValue> attribute_of(const torch::jit::Module& module, const std::string& name);

bool equals(const c10::IValue& actual, const AttributeValue& expected);
c10::IValue to_ivalue(const AttributeValue& value);
std::string to_text(const AttributeValue& value);

// What the layer may find on top of the instance's own attributes: the manifest's, then the
// graph's. The reason, if the two contradict each other. `passed`: see lost_attributes.h.
tl::expected<HostAttributes, std::string> supplied_attributes(
    const torch::jit::Module& module, const std::map<std::string, AttributeValue>& from_manifest,
    const std::map<std::string, PassedInputs>& passed = {});

}  // namespace twinkle::runtime
