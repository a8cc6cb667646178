#pragma once
// Operators of a kernel declared by their schemas alone: a model that calls them can be loaded and
// a layer that calls them compiled, and nothing of the kernel runs. They cannot be called.

#include "runtime/kernels/loaded_kernels.h"
#include "twinkle/mapping.h"

#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Declares what is not registered yet, for the life of the process. Returns what could not be
// declared, each with its reason: a schema that LibTorch cannot read.
std::vector<std::string> declare_operators(const MappedKernel& kernel);

// In the place of load_kernel(): checked sources, declared operators, no library opened. Throws
// Error(refused) where the mapping has no operators of a kernel that has some. Thread-safe.
// A process in which a kernel was declared cannot load it any more.
std::shared_ptr<const LoadedKernel> declare_kernel(const MappedKernel& kernel);

// The same for what a model names, which must be in the mapping; else Error(refused).
void declare_required(const std::vector<RequiredKernel>& required, const Mapping& mapping);

// Whether LibTorch or a kernel has an operator of this name, in any overload.
bool is_registered(const std::string& qualified_name);

}  // namespace twinkle::runtime
