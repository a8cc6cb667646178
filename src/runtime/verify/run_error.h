#pragma once

#include <string>

namespace twinkle::runtime {

// LibTorch's message for a failed model as one printable line, without the stack of the model's
// source and of C++ around it; with an explanation if it says little.
std::string run_error(const std::string& text);

// The same as a problem of what was tried, and whether a problem is one of these: there were no
// values that could be wrong.
std::string cannot_be_run(const std::string& text);
bool says_cannot_be_run(const std::string& problem);
// Says it of what was to be measured as a graph: its values are right, and memory may have been
// short.
std::string cannot_be_captured(const std::string& text);
bool says_cannot_be_captured(const std::string& problem);

}  // namespace twinkle::runtime
