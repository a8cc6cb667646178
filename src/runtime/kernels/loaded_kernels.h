#pragma once
// The kernels of this process: each build is verified and loaded once, for good.

#include "runtime/kernels/verified_files.h"
#include "twinkle/load.h"
#include "twinkle/mapping.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct LoadedKernel {
    MappedKernel kernel;
    std::string build_id;
    std::map<std::string, std::string> sources;  // path → Python text, as verified
};

// Verifies, opens the operator libraries, keeps the sources. A build that is loaded already is
// returned as it is; another build under the same namespace is refused. Thread-safe.
std::shared_ptr<const LoadedKernel> load_kernel(const MappedKernel& kernel);

// The same with files that were checked before, as in the parent of this process.
std::shared_ptr<const LoadedKernel> load_verified(const MappedKernel& kernel, VerifiedFiles files);

// A kernel whose libraries somebody else has checked and opened. Thread-safe.
void add_loaded(std::shared_ptr<const LoadedKernel> kernel);

// All of this process, in the order of loading. Thread-safe.
std::vector<std::shared_ptr<const LoadedKernel>> loaded_kernels();
// Whether load_kernel() has loaded this build, from wherever.
bool is_loaded(const std::string& build_id);

// Where the sources and operators of a kernel come from: load_kernel; try_kernel where only
// children may open its libraries (trial/kernel_trial.h); declare_kernel where nothing of it may
// run.
using KernelProvider = std::function<std::shared_ptr<const LoadedKernel>(const MappedKernel&)>;

// Finds what a model names, and has it provided; `model` is for messages.
void load_named_kernels(const std::vector<RequiredKernel>& required,
                        const std::filesystem::path& model, const LoadOptions& options,
                        const KernelProvider& provider = load_kernel);
// The same for all that its code names, if that can run in this program. Whether it names any.
bool load_required_kernels(const std::filesystem::path& model, const LoadOptions& options,
                           const KernelProvider& provider);

}  // namespace twinkle::runtime
