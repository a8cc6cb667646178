#pragma once
// A model that is made, and written, in a confined child: foreign code runs while it is made.

#include "runtime/trial/sandbox.h"
#include "twinkle/error.h"

#include <torch/script.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

namespace twinkle::worker {

// Writes what `make` returns, in the child, whole or not at all; how many modules it has. Throws
// what `make` throws as Error, what keeps the file from being written, and `failed`, given why,
// where the child ends otherwise.
std::size_t save_from_child(const std::filesystem::path& file, runtime::SandboxLimits limits,
                            const std::function<torch::jit::Module()>& make,
                            const std::function<Error(const std::string& why)>& failed);

}  // namespace twinkle::worker
