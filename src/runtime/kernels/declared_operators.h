#pragma once
// Operators of a kernel declared by their schemas alone: a model that calls them can be loaded and
// a layer that calls them compiled, and nothing of the kernel runs. They cannot be called.

#include "runtime/kernels/loaded_kernels.h"
#include "runtime/kernels/operator_facts.h"
#include "runtime/kernels/verified_files.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Declares what is not registered yet, for the life of the process. Returns what could not be
// declared, each with its reason: a schema that LibTorch cannot read.
std::vector<std::string> declare_operators(const MappedKernel& kernel);

// Stands in for load_kernel(): checked sources, declared operators, no library opened. Throws
// Error(refused) where the mapping has no operators of a kernel that has some. Thread-safe. A
// process in which a kernel was declared cannot load it any more.
std::shared_ptr<const LoadedKernel> declare_kernel(const MappedKernel& kernel);

// Declares for this machine the operators that the kernel's libraries have registered in a child
// process. Its children open the libraries in the place of the declarations.
std::shared_ptr<const LoadedKernel> declare_tried(const MappedKernel& kernel, VerifiedFiles files,
                                                  const std::vector<OperatorFacts>& operators);
// What declare_tried() has returned for this build; null: nothing.
std::shared_ptr<const LoadedKernel> tried_kernel(const std::string& build_id);

// The kernel of this process, loaded or declared, that has the operators of a namespace; null:
// none.
std::shared_ptr<const LoadedKernel> kernel_with_operators(const std::string& op_namespace);

// Whether this process has libraries that its children are to open.
bool has_declared_libraries();
// Opens them in a child, in the order of their declaration. Graphs that call declared operators
// call those of the libraries from here on. Throws as load_kernel() does.
void open_declared_libraries();

// declare_kernel() for what a model file needs, which must be in the mapping; else Error(refused).
// `name` is that of the model in an archive of several.
void declare_required(const std::filesystem::path& model, const std::string& name,
                      const Mapping& mapping);

// Whether LibTorch or a kernel has an operator of this name, in any overload.
bool is_registered(const std::string& qualified_name);

}  // namespace twinkle::runtime
