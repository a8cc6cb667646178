#pragma once
// Operators of LibTorch that take a text and are known to compute with it, and nothing else. Any
// other that takes one may use it as a path.

#include <string_view>

namespace twinkle::runtime {

// The name without "aten::".
bool takes_text_to_compute(std::string_view name);

}  // namespace twinkle::runtime
