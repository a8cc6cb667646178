#pragma once
// Loads kernelized models. The model itself names the kernels that it needs; they are looked up in
// folders that the user has chosen, hashed, and loaded before the model is.

#include "twinkle/api.h"

#include <torch/script.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace twinkle {

struct LoadOptions {
    // Searched before TWINKLE_KERNELS (dir:dir), the bundled pack and the Hub cache.
    std::vector<std::filesystem::path> kernel_dirs{};
    // Where its tensors go: torch::kCUDA is the current GPU, {torch::kCUDA, 1} the second.
    torch::Device device = torch::kCPU;
    // In an archive of torch.export that holds several models: the name of the one that is meant.
    std::string model{};
    // Of a model with kernels, on a CPU, in eval mode: lays out weights as this machine's kernels
    // read them, once, instead of in every call (those of convolutions and linear layers), where
    // the methods of the model's root give them to such kernels alone. The parameters then have
    // other shapes, also for methods of its parts, and what the module saves is slow elsewhere:
    // false leaves them as the file has them. Large tensors that keep their layout come into memory
    // of huge pages, where Linux has them.
    bool prepack = true;
    // Called for every folder that is searched and every build that is looked at, with why it is
    // not the one.
    std::function<void(const std::string& attempt)> explain{};
};

// The builds that a model file needs, as its graph names them. Reads only the code of the archive.
struct RequiredKernel {
    std::string name;
    std::string variant;
    std::string op_namespace;
    std::string build_id;  // MappedKernel::build_id()
};
TWINKLE_API std::vector<RequiredKernel> required_kernels(const std::filesystem::path& model);

// Finds, verifies and loads what required_kernels() names. Does nothing for a model without
// kernels. With the first kernel of a process, glibc's malloc begins to keep up to 64 MiB of what
// is freed, unless the program has set M_TRIM_THRESHOLD or M_MMAP_THRESHOLD.
TWINKLE_API void load_required_kernels(const std::filesystem::path& model,
                                       const LoadOptions& options = {});
// The same for an archive behind a reader; reads only its code. Leaves a file that is no
// TorchScript archive to its loader.
TWINKLE_API void load_required_kernels(
    const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& model,
    const LoadOptions& options = {});

// Both, then torch::jit::load; an archive of torch.export (.pt2) is converted. Throws Error:
// not_found (model, kernel), verification (another build under the same name), refused (the kernel
// cannot be loaded), malformed (no model; says what it is).
TWINKLE_API torch::jit::Module load(const std::filesystem::path& model,
                                    const LoadOptions& options = {});

// What LoadOptions::prepack does, for a model on a CPU that came in another way: one that was
// kernelized in memory, or that torch::jit::load has loaded behind load_required_kernels() or the
// preload library. Returns how many weights are laid out now that were not before; 0 for a model in
// training. Where a kernel fails, its weight stays as it was; so does what something else than the
// model holds. No thread may run the model meanwhile.
TWINKLE_API std::size_t prepack(const torch::jit::Module& model);

}  // namespace twinkle
