#pragma once
// Kernels that this process uses without loading them: their libraries are opened in confined
// children, here they are schemas.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/kernels/operator_facts.h"
#include "twinkle/mapping.h"

#include <memory>
#include <vector>

namespace twinkle::runtime {

// Stands in for load_kernel(): the files are checked, a child loads the libraries and says which
// operators they register, and these are declared. Every later child of this process has the
// libraries (run_in_sandbox). Throws what load_kernel() throws, and Error(refused) for libraries
// that crash, hang, or say what cannot be.
std::shared_ptr<const LoadedKernel> try_kernel(const MappedKernel& kernel);

// The operators that the kernel's libraries register when a child loads them, whatever the mapping
// says of them. Throws as try_kernel() does.
std::vector<OperatorFacts> registered_operators(const MappedKernel& kernel);

}  // namespace twinkle::runtime
