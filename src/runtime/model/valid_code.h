#pragma once
// LibTorch's parser and compiler recurse into nested code without a limit.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Whether saved code nests brackets, chains operators or indents deeper than sane code; says which.
// Ignores strings and comments. Takes linear time.
std::optional<std::string> invalid_code(std::string_view code);

}  // namespace twinkle::runtime
