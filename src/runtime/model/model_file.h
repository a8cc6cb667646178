#pragma once
// A model file as it comes from outside: opened as TorchScript, or refused with the words for what
// it is.

#include <torch/script.h>

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Throws Error(not_found) if the file is not there, Error(malformed) if it is no TorchScript
// archive, and says what it is instead (a state_dict, .pt2, safetensors, a pickle, a truncated
// archive).
void require_torchscript(const std::filesystem::path& file);

// torch::jit::load, with its failures as Error(malformed), or Error(not_found) for an operator that
// no loaded kernel defines.
torch::jit::Module open_model(const std::filesystem::path& file,
                              torch::Device device = torch::kCPU);

// The texts of code/**.py in the archive, without loading it.
std::vector<std::string> code_of(const std::filesystem::path& file);

// The same from an open archive; empty for what is no TorchScript archive.
std::vector<std::string> code_of(
    const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& archive);

// Writes the model whole or not at all.
void save_model(const torch::jit::Module& model, const std::filesystem::path& file);

}  // namespace twinkle::runtime
