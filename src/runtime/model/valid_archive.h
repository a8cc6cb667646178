#pragma once
// A saved model before LibTorch reads it: what it would crash or choke on, and what of the model's
// code it would run.

#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>

namespace twinkle::runtime {

struct Validity {
    std::optional<std::string> problem;  // none: it can be loaded
    // Of where the code came from; nothing needs it but messages, and whoever tells a trace.
    bool readable_origin = true;
    // Reading the model runs code of it, in TorchScript.
    bool runs_code = false;
    // Of that code, or of a class that reading makes objects of: what it must not do unasked.
    std::optional<std::string> reaches_out;
};

// Reads the code and the pickles of an archive of so many bytes, not its weights. invalid_sizes
// (zip_directory.h) comes first.
Validity examine_archive(caffe2::serialize::PyTorchStreamReader& archive, std::uint64_t bytes);

// The pickle of what torch.save wrote, in the same way.
std::optional<std::string> invalid_data(caffe2::serialize::PyTorchStreamReader& archive,
                                        std::uint64_t bytes);

// LibTorch reads the origins when it first asks where a node came from, and throws there.
bool origins_can_be_read(const torch::jit::Module& model);

}  // namespace twinkle::runtime
