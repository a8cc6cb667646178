#pragma once
// The marker: a call in the graph that names a kernel build. Extra files of a saved model are lost
// by load and save, attributes by freeze; a call with an effect stays.

#include "twinkle/load.h"

#include <torch/script.h>

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Puts `twinkle::needs_kernel("…")` at the start of every method of the root.
void mark_model(torch::jit::Module& root, const RequiredKernel& kernel);

std::string marker_text(const RequiredKernel& kernel);
// Nothing for a text that is no marker. Throws Error(malformed) for one that is damaged.
std::optional<RequiredKernel> parse_marker(std::string_view text);

}  // namespace twinkle::runtime
