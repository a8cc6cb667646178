#pragma once
// A model file of any format that twinkle reads: TorchScript, or an archive of torch.export, which
// becomes TorchScript in memory. What it is, its content says.

#include "runtime/model/model_file.h"

#include <torch/script.h>

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::runtime {

// An archive of torch.export, whether it can be converted or not.
bool is_export(const std::filesystem::path& file);

// open_model (model_file.h), or what the archive's model converts to (convert.h), marked with the
// kernels that it needs, which are loaded or declared already (needed_kernels.h). `model` is its
// name in an archive of several; elsewhere it must be empty: Error(malformed).
torch::jit::Module open_model_file(const std::filesystem::path& file, const std::string& model,
                                   const Opening& opening = {});

// code_of (model_file.h); an exported model has none.
std::vector<CodeFile> code_of_model_file(const std::filesystem::path& file);

}  // namespace twinkle::runtime
