#pragma once
// Operators called by name, as TorchScript would: the overload is chosen by the arguments.

#include "twinkle/kernel.h"

#include <string>
#include <vector>

namespace twinkle::runtime {

// Throws Error(not_found) if no operator of this name is registered; its calls throw as
// Implementation says.
Implementation operator_named(const std::string& op_namespace, const std::string& name);

// Fits a value to a formal type where only the kind of number differs: 1 for 1.0.
c10::IValue fitted(const c10::IValue& value, const c10::TypePtr& type);

}  // namespace twinkle::runtime
