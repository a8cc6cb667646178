#pragma once
// Opens a model file from outside as TorchScript, or refuses it with a message that says what it
// is.

#include <torch/script.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Throws Error(not_found) if the file does not exist, Error(malformed) if it is no TorchScript
// archive, and says what it is instead (a state_dict, .pt2, safetensors, a pickle, a truncated
// archive).
void require_torchscript(const std::filesystem::path& file);

struct Opening {
    torch::Device device = torch::kCPU;
    // Code that runs while the model is read may reach files, other processes and the network.
    bool allow_io = false;
    // An export's weights stay in the file until they are used (archive.h: Access).
    bool map_weights = false;
    // Called before a read that runs the model's code, with the function that reads: tries it where
    // it may hang or crash, before it is done here. Empty: it is done here at once.
    std::function<void(const std::function<void()>& read)> try_first{};
};

// torch::jit::load, with its failures as Error(malformed), Error(not_found) for an operator that no
// loaded kernel defines, or Error(refused) for a model that would do more than compute while it is
// read.
torch::jit::Module open_model(const std::filesystem::path& file, const Opening& opening = {});

// A part of the code that is saved in an archive.
struct CodeFile {
    std::string path;  // in the archive: "code/__torch__/pkg/mod.py"
    std::string text;
};

// Every code/**.py in the archive, without loading it. Throws as require_torchscript does.
std::vector<CodeFile> code_of(const std::filesystem::path& file);

// The same from an open archive; empty if it is no TorchScript archive.
std::vector<CodeFile> code_of(
    const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& archive);

// Whether the code was traced (its source ranges are stacks of a running Python), scripted (they
// are source text), or both. Read without loading.
struct CodeOrigin {
    bool traced = false;
    bool scripted = false;
};
CodeOrigin origin_of(const std::filesystem::path& file);

// Writes the model whole or not at all.
void save_model(const torch::jit::Module& model, const std::filesystem::path& file);

}  // namespace twinkle::runtime
