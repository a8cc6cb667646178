#pragma once
// Loads the operator library of a kernel into this process, without Python.

#include "runtime/kernels/verified_files.h"
#include "twinkle/mapping.h"

namespace twinkle::runtime {

// Opens every library of the kernel from its checked copy. Refused before anything runs: a
// namespace that is taken already. Checked after: every operator that the mapping names is
// registered. Alias sets of bare `Tensor!` arguments are completed (reference: LibTorch's alias
// analysis asserts that the set before and after a call are equal). Libraries stay open for the
// life of the process.
void open_op_libraries(const MappedKernel& kernel, std::vector<SealedLibrary> libraries);

// Whether any operator of this namespace is registered.
bool namespace_is_taken(const std::string& op_namespace);

}  // namespace twinkle::runtime
