#pragma once
// An exported program as a module of TorchScript: the hierarchy of modules that it came from, one
// method per call, weights where they lie in the archive. Nothing of the program runs.

#include "archive/archive.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime::exported {

// The model of this name; of an archive with one model, an empty name will do. Throws Error:
// malformed for an archive that contradicts itself, not_found for a model or an operator that is
// not there, refused for what TorchScript has no counterpart of.
torch::jit::Module convert(const archive::Archive& archive, const std::string& model);

}  // namespace twinkle::runtime::exported
