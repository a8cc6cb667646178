#pragma once
// Kernels without a model: their operators, and the functions of their Python package, compiled
// without Python.

#include "twinkle/implementation.h"
#include "twinkle/registry.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace twinkle {

// A function that the package of a kernel offers.
class TWINKLE_API FunctionInfo {
public:
    FunctionInfo(std::string name, std::string signature)
        : name_(std::move(name)), signature_(std::move(signature)) {}
    const std::string& name() const { return name_; }
    // As the source has it: "gelu_fast(out: torch.Tensor, x: torch.Tensor) -> None"
    const std::string& signature() const { return signature_; }

private:
    std::string name_, signature_;
};

// A kernel, loaded into this process for good. Copies are the same kernel. Thread-safe.
class TWINKLE_API Kernel {
public:
    const std::string& name() const;    // "org/name@1", or that of its folder
    const MappedKernel& build() const;  // repository, commit, variant, files with their hashes
    std::vector<std::string> operators() const;  // without namespace
    std::vector<std::string> layers() const;
    std::vector<FunctionInfo> functions() const;
    const std::vector<std::string>& warnings() const;  // warnings of the search for it

    // Throws Error(not_found) and lists the operators there are. Arguments choose the overload.
    Implementation op(const std::string& name) const;
    // A function of the package, or of a module of it ("layers.helper"); compiled once for each
    // combination of argument types.
    Implementation function(const std::string& name) const;

    struct State;
    explicit Kernel(std::shared_ptr<State> state) : state_(std::move(state)) {}

private:
    std::shared_ptr<State> state_;
};

struct KernelOptions {
    // At most one of them. Neither: the branch main, with a warning.
    std::optional<KernelVersion> version{};
    std::string revision{};
    std::string device{};  // empty: that of LibTorch's backend, else cpu
    std::filesystem::path lockfile{};
    std::string user_agent{};            // this call's part, if there is a hub client
    const Registry* registry = nullptr;  // whose lock and hub client are used; none: the process's
};

// Takes it from the lock or the cache; downloaded if a hub client is set. Verified, then loaded: a
// second call gives the same kernel. Versions 1 and 2 of a repository can be loaded side by side.
// Throws Error: not_found (with the `twinkle fetch` to run), unreachable, verification, refused.
TWINKLE_API Kernel get_kernel(const std::string& repo_id, const KernelOptions& options = {});
// Whether there is a build for options.device, else for LibTorch's own backend. As in Python, a CPU
// build does not count on a GPU, though get_kernel takes it if there is no other. Refuses the
// publishers that get_kernel refuses. Loads nothing, downloads nothing.
TWINKLE_API bool has_kernel(const std::string& repo_id, const KernelOptions& options = {});
// A build, a folder of builds, or a plain Python package.
TWINKLE_API Kernel get_local_kernel(const std::filesystem::path& folder,
                                    const KernelOptions& options = {});
// The build that a lock (options.lockfile, else the registry's) pins; it must name the repository.
TWINKLE_API Kernel get_locked_kernel(const std::string& repo_id, const KernelOptions& options = {});
// The one kernel of a lock; or, with options.lockfile, the named one. Never uses the network.
TWINKLE_API Kernel load_kernel(const std::string& lockfile_or_repo_id,
                               const KernelOptions& options = {});
// All kernels that any call has loaded, in the order of loading.
TWINKLE_API std::vector<Kernel> get_loaded_kernels();

}  // namespace twinkle
