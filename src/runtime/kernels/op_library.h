#pragma once
// Loads the operator library of a kernel into this process, without Python.

#include "runtime/kernels/verified_files.h"
#include "twinkle/mapping.h"

#include <filesystem>

namespace twinkle::runtime {

// Opens every library of the kernel from its checked copy, and registers the operators of its
// packages (package_operators.h). Refused before anything runs: a
// namespace that is taken already, but by this very build, loaded by somebody else. Checked after:
// every operator that the mapping names is registered. Alias sets are completed. Libraries stay
// open for the life of the process.
void open_op_libraries(const MappedKernel& kernel, SealedCode code);

// Hub kernels refer to one Python function, the entry point that nobody calls here. Where no Python
// is in the process, a stub beside libtwinkle provides it.
void provide_python_symbol();
// That stub's file, which confined children must be able to read.
std::filesystem::path python_stub();

// LibTorch's alias analysis wants the alias set of an argument to be the same before and after a
// call; of a bare `Tensor!` there is only the first.
void complete_alias_sets(const std::string& op_namespace);

// Whether any operator of this namespace is registered.
bool namespace_is_taken(const std::string& op_namespace);

}  // namespace twinkle::runtime
