#pragma once
// Where the kernels that a manifest names are on this machine.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "project/manifest.h"
#include "target/machine.h"

namespace twinkle::project {

struct KernelSource {
    std::string name;  // "twinkle-pack", "org/name@1", "my_kernels"
    std::string repo_id;
    std::string commit;
    std::filesystem::path folder;
};

class KernelLocator {
public:
    KernelLocator(const Manifest& manifest, std::filesystem::path bundled,
                  const target::Machine& machine);

    // Throws Error(not_found) where the kernel is not on this machine.
    KernelSource locate(const LayerBinding& binding);
    KernelSource locate(const KernelRequest& request);

    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    KernelSource locate_bundled() const;
    KernelSource locate_local(const std::string& name, const std::filesystem::path& folder,
                              const std::string& where) const;
    KernelSource locate_hub(const std::string& repo_id, const Pin& pin, const std::string& where);
    Pin pin_from_kernels(const LayerBinding& binding) const;
    void warn(std::string text);

    const Manifest& manifest_;
    std::filesystem::path bundled_;
    cache::Cache cache_;
    std::map<std::string, std::filesystem::path> overrides_;  // LOCAL_KERNELS
    std::vector<std::string> warnings_;
};

}  // namespace twinkle::project
