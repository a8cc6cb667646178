#pragma once
// The marker: a call in the graph that names a kernel build. Extra files of a saved model are lost
// by load and save, attributes by freeze; a call with an effect stays.

#include "runtime/model/model_file.h"
#include "twinkle/load.h"

#include <torch/script.h>

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Puts `twinkle::needs_kernel("…", kernel)` at the start of every method of the root, once; of what
// it holds where it has none. The kernel is an object that loads it (needed_kernel.h).
void mark_model(torch::jit::Module& root, const RequiredKernel& kernel);
// The same with another text and object.
void mark_model(torch::jit::Module& root, const std::string& text, const c10::IValue& object);

std::string marker_text(const RequiredKernel& kernel);
// Nothing for a text that is no marker. Throws Error(malformed) for one that is damaged.
std::optional<RequiredKernel> parse_marker(std::string_view text);
// Every build that the code of a saved model names, once.
std::vector<RequiredKernel> markers_in(const std::vector<CodeFile>& code);

}  // namespace twinkle::runtime
