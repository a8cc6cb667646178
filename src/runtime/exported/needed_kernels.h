#pragma once
// The kernels whose operators an exported model calls. A kernelized model names builds by their
// hash; an archive names operators alone, and gets them from what its user has chosen.

#include "runtime/exported/program.h"
#include "runtime/kernels/kernel_finder.h"
#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

// What an exported model needs of others.
struct Needs {
    std::map<std::string, std::size_t> operators;  // "ns::op" → calls
    std::map<std::string, std::size_t> classes;    // "ns.Class" of torch.classes → objects
};
Needs needs_of(const exported::Program& program);
Needs needs_of_export(const std::filesystem::path& file, const std::string& model);

// Finds for every namespace of operators or classes that this process lacks the first build that
// has it in the folders that the user has chosen (not the Hub cache, where anything may be) and
// that runs here, on this device. Throws Error(refused), about this file, where there are only
// builds that do not; an operator that nobody has is left to the caller.
std::vector<MappedKernel> kernels_with_operators(const std::filesystem::path& file,
                                                 const Needs& needs, const std::string& device,
                                                 const KernelFinder& finder);

// The kernels that an exported model needs, for its device. An operator that nobody has is refused
// later, by the conversion, which names its node.
std::vector<MappedKernel> kernels_of_export(const std::filesystem::path& file,
                                            const std::string& model, const KernelFinder& finder);

// The same for a machine that is not this one: the builds of the mapping.
std::vector<MappedKernel> kernels_of_export(const std::filesystem::path& file,
                                            const std::string& model, const Mapping& mapping);

// Marks a converted model with the kernels, loaded or declared here, whose operators it calls.
void mark_needed_kernels(torch::jit::Module& model);

}  // namespace twinkle::runtime
