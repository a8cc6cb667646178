#pragma once
// Operators that a model calls and nothing here has.

#include <string>

namespace twinkle::runtime {

// Refuses a model that calls this one ("my_kernel::norm"), and says what would help.
[[noreturn]] void refuse_unknown_operator(const std::string& name, const std::string& where);

}  // namespace twinkle::runtime
