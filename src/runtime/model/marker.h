#pragma once
// The marker: a call in the graph that names a kernel build. It is a call because load and save
// drop a model's extra files, and freeze drops attributes; a call with an effect stays.

#include "runtime/model/model_file.h"
#include "twinkle/load.h"

#include <torch/script.h>

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::runtime {

// Puts `twinkle::needs_kernel("…", kernel)` at the start of every method of the root, once; of its
// children if it has no method. The kernel is an object that loads it (needed_kernel.h).
void mark_model(torch::jit::Module& root, const RequiredKernel& kernel);
// The same with another text and object.
void mark_model(torch::jit::Module& root, const std::string& text, const c10::IValue& object);

// Whether this code has a marker.
bool is_marked(torch::jit::Graph& graph);

std::string marker_text(const RequiredKernel& kernel);
// Returns nothing for a text that is no marker. Throws Error(malformed) for a damaged one.
std::optional<RequiredKernel> parse_marker(std::string_view text);
// Every build that the code of a saved model names, once.
std::vector<RequiredKernel> markers_in(const std::vector<CodeFile>& code);

}  // namespace twinkle::runtime
