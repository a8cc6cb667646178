#pragma once
// LibTorch's parser and compiler call themselves for what is nested in code, without a limit.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Whether saved code nests brackets, chains operators or indents further than any sane one; says
// which. Strings and comments do not count. Time is linear.
std::optional<std::string> invalid_code(std::string_view code);

}  // namespace twinkle::runtime
