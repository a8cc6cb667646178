#pragma once
// A saved model before LibTorch reads it: what it would crash or choke on.

#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

struct Soundness {
    std::optional<std::string> problem;  // none: it can be loaded
    // Of where the code came from; nothing needs it but messages, and whoever tells a trace.
    bool readable_origin = true;
};

// Reads the code and the pickles of an archive, not its weights.
Soundness examine_archive(caffe2::serialize::PyTorchStreamReader& archive);

// LibTorch reads the origins when it first asks where a node came from, and throws there.
bool origins_can_be_read(const torch::jit::Module& model);

}  // namespace twinkle::runtime
