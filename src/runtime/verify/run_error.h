#pragma once

#include <string>

namespace twinkle::runtime {

// LibTorch's message for a failed model as one printable line, without the stack of the model's
// source and of C++ around it; with an explanation if it says little.
std::string run_error(const std::string& text);

}  // namespace twinkle::runtime
