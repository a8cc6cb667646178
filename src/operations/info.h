#pragma once
// What a kernel is, from the metadata of its builds.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/metadata.h"
#include "operations/context.h"
#include "project/kernel_spec.h"

namespace twinkle::operations {

struct KernelInfo {
    std::string repo_id;         // of the Hub …
    std::filesystem::path path;  // … or a folder
    std::optional<int> version;
    std::string ref;
    std::string commit;
    std::vector<int> versions;                 // all that the repository has
    std::optional<kernel::Metadata> metadata;  // of the first build; none: no build has any
    std::vector<std::string> variants;         // every build, by name
    std::vector<std::string> backends;         // of all builds
    std::vector<std::string> archs;            // GPU architectures of all builds
    std::vector<kernel::KernelDependency> dependencies;  // of all builds
    std::vector<std::string> dirty;                      // builds from trees with changes in them
    std::uint64_t bytes = 0;                             // of all builds
};

// Describes the kernel of the Hub, or of the folder that LOCAL_KERNELS names instead. Throws
// Error(not_found) where there is no build at all.
KernelInfo kernel_info(Context& context, const project::KernelSpec& spec);
KernelInfo local_kernel_info(const std::filesystem::path& folder);

}  // namespace twinkle::operations
