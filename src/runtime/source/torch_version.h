#pragma once
// torch.version.cuda and the CUDA devices of the machine, as kernel sources ask for them.

#include <optional>
#include <string>

namespace twinkle::runtime {

// "13.0" for a build of the variant torch213-cxx11-cu130-x86_64-linux, none for other backends. A
// variant that is for every backend gets what this LibTorch was built with.
std::optional<std::string> torch_cuda_version(const std::string& variant);

}  // namespace twinkle::runtime
