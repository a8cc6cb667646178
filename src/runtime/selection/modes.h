#pragma once
// Modes and the order in which a mapping's candidates are tried for one.

#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

// "train" → "training", "compile" → "inference+compile"; throws Error(malformed) for anything
// unknown.
std::string normalized_mode(std::string_view mode);

bool wants_training(std::string_view mode);
bool wants_compile(std::string_view mode);

// The registered modes that serve `mode` (normalized), best first; "fallback" last.
std::vector<std::string> search_order(std::string_view mode);

}  // namespace twinkle::runtime
