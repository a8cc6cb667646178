#pragma once
// The cache that twinkle shares with the Python tools, read only: what is there already resolves
// without the Hub.

#include <filesystem>
#include <optional>
#include <string>

#include "project/manifest.h"
#include "target/machine.h"

namespace twinkle::project {

// KERNELS_CACHE, else HF_HUB_CACHE, else $HF_HOME/hub, else the default below the home folder.
std::filesystem::path hub_cache_folder(const target::Machine& machine);

struct Snapshot {
    std::string commit;
    std::filesystem::path folder;
};

// The snapshot that a version, revision or commit stands for in the cache. None: not there.
std::optional<Snapshot> find_snapshot(const std::filesystem::path& cache,
                                      const std::string& repo_id, const Pin& pin);

}  // namespace twinkle::project
