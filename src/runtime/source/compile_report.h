#pragma once
// What LibTorch says about a failure, in one line.

#include <exception>
#include <string>

namespace twinkle::runtime {

// LibTorch's reports are a message, then the source with a caret, then frames: "file:line: message"
// is left of them.
std::string compile_report(const std::string& text);
// The same of whatever was thrown; CannotCompile says it in our words.
std::string compile_report(const std::exception& error);

}  // namespace twinkle::runtime
