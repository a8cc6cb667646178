#pragma once
// Conditions that must hold, as TorchScript has them: an exception if one does not.

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

namespace twinkle::runtime::exported {

// Raises with this message where `holds` is false; each "{}" in it stands for one of the values.
void write_check(torch::jit::Graph& graph, torch::jit::Value* holds, const std::string& message,
                 const std::vector<torch::jit::Value*>& values = {});

// Text for such a message that stands for itself.
std::string plain(const std::string& text);

}  // namespace twinkle::runtime::exported
