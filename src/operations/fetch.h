#pragma once
// `twinkle fetch`: builds into the cache. What the lock says costs no question; what is in the
// cache costs no request at all.

#include <filesystem>
#include <string>
#include <vector>

#include "hub/download.h"
#include "operations/context.h"
#include "project/kernel_spec.h"
#include "project/signatures.h"

namespace twinkle::operations {

struct FetchOptions {
    std::vector<project::KernelSpec> specs;  // none: what the project has
    std::vector<std::string> targets;        // none: this machine
    bool all_variants = false;
    bool locked = false;             // the lock must be there and fit the manifest
    std::vector<std::string> trust;  // besides the manifest's
    bool alone = false;              // in no project, wherever the current folder is
    project::SignatureOptions signature;
};

struct FetchedBuild {
    std::string kernel;  // "org/name@1"
    std::string repo_id;
    std::string commit;
    std::string variant;
    std::filesystem::path folder;
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
};

struct FetchReport {
    std::vector<FetchedBuild> builds;  // by kernel and variant
    hub::DownloadResult download;
    bool locked = false;  // the lock decided
};

FetchReport fetch(Context& context, const FetchOptions& options);

}  // namespace twinkle::operations
