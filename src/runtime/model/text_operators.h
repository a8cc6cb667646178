#pragma once
// Operators of LibTorch that take a string and are known to only compute with it. Any other
// operator that takes one might use it as a path.

#include <string_view>

namespace twinkle::runtime {

// `name`: without "aten::".
bool takes_text_to_compute(std::string_view name);

}  // namespace twinkle::runtime
