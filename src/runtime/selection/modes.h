#pragma once
// Modes and the order in which a mapping's candidates are tried for one.

#include "project/modes.h"

#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

// "train" → "training", "compile" → "inference+compile"; throws Error(malformed) for anything
// unknown.
std::string normalized_mode(std::string_view mode);

using project::wants_compile;
using project::wants_training;

// The registered modes that serve `mode` (normalized), best first; "fallback" last.
std::vector<std::string> search_order(std::string_view mode);

}  // namespace twinkle::runtime
