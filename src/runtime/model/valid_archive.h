#pragma once
// Examines a saved model before LibTorch reads it: what would crash or exhaust LibTorch, and which
// of the model's code reading would run.

#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>

namespace twinkle::runtime {

struct Validity {
    std::optional<std::string> problem;  // none: it can be loaded
    // Whether the source ranges can be read; only messages need them, and recognizing a trace.
    bool readable_origin = true;
    // Reading the model runs code of it, in TorchScript.
    bool runs_code = false;
    // Forbidden effects of that code, or of a class that reading instantiates.
    std::optional<std::string> reaches_out;
};

// Reads the code and the pickles of an archive of so many bytes, not its weights. invalid_sizes
// (zip_directory.h) comes first.
Validity examine_archive(caffe2::serialize::PyTorchStreamReader& archive, std::uint64_t bytes);

// The same for the pickle of an archive of torch.save.
std::optional<std::string> invalid_data(caffe2::serialize::PyTorchStreamReader& archive,
                                        std::uint64_t bytes);

// LibTorch reads the origins lazily, when it first looks up where a node came from, and throws
// there.
bool origins_can_be_read(const torch::jit::Module& model);

}  // namespace twinkle::runtime
