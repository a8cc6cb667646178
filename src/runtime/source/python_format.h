#pragma once
// format(value, specification) as Python prints it, for texts and numbers that are known while
// compiling.

#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// None where Python raises, or prints what this does not know how to print.
std::optional<std::string> python_format(const c10::IValue& value,
                                         const std::string& specification);

// str(value) of None, a text, a flag, an integer or a float; none for others.
std::optional<std::string> python_text(const c10::IValue& value);

}  // namespace twinkle::runtime
