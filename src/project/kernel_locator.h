#pragma once
// Where the kernels that a manifest names are on this machine.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "cache/snapshot.h"
#include "project/lock.h"
#include "project/manifest.h"
#include "target/machine.h"

namespace twinkle::project {

struct KernelSource {
    std::string name;  // "twinkle-pack", "org/name@1", "my_kernels"
    std::string repo_id;
    std::string commit;
    std::filesystem::path folder;
    Pin pin;                               // of a Hub kernel
    const LockedKernel* locked = nullptr;  // none: not locked, or taken from somewhere else
};

// Gets what is not in the cache. Throws Error.
using Download = std::function<cache::Snapshot(const std::string& repo_id, const Pin& pin)>;

struct LocatorOptions {
    std::filesystem::path bundled;                // where the bundled kernels are
    const Lock* lock = nullptr;                   // none: what the cache says a version is
    std::string fetch_command = "twinkle fetch";  // that gets what is missing
    Download download = {};                       // where there is a way to the Hub
};

class KernelLocator {
public:
    KernelLocator(const Manifest& manifest, LocatorOptions options, const target::Machine& machine);

    // Throws Error(not_found) where the kernel is not on this machine.
    KernelSource locate(const LayerBinding& binding);
    KernelSource locate(const FunctionBinding& binding);
    KernelSource locate(const KernelRequest& request);
    // What the build of another kernel depends on; `where` says whose.
    KernelSource locate(const LockedDependency& dependency, const std::string& where);

    const cache::Cache& cache() const { return cache_; }
    const std::string& fetch_command() const { return options_.fetch_command; }
    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    template <typename Binding>
    KernelSource locate_bound(const Binding& binding);
    KernelSource locate_bundled() const;
    KernelSource locate_local(const std::string& name, const std::filesystem::path& folder,
                              const std::string& where) const;
    KernelSource locate_hub(const std::string& repo_id, Pin pin, const std::string& where);
    std::string newest_known(const std::string& repo_id) const;
    KernelSource locate_locked(const LockedKernel& locked, const std::string& name,
                               const std::string& where) const;
    [[noreturn]] void fail_missing(const std::string& name, const std::string& repo_id,
                                   const std::string& where) const;
    void warn(std::string text);

    const Manifest& manifest_;
    LocatorOptions options_;
    cache::Cache cache_;
    std::map<std::string, std::filesystem::path> overrides_;  // LOCAL_KERNELS
    std::vector<std::string> warnings_;
};

}  // namespace twinkle::project
