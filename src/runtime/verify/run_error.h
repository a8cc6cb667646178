#pragma once

#include <string>

namespace twinkle::runtime {

// What LibTorch says when a model fails, as one printable line: its message, without the stack of
// the model's source and of C++ around it; explained where it says little.
std::string run_error(const std::string& text);

}  // namespace twinkle::runtime
