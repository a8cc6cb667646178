#pragma once
// The builds that a repository has at one commit: from the Hub, or, offline, those in the cache.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/tree_file.h"
#include "kernel/metadata.h"
#include "kernel/versions.h"
#include "operations/context.h"

namespace twinkle::operations {

struct OfferedBuild {
    std::string variant;
    std::vector<cache::TreeFile> files;  // paths from the root of the repository
    std::string metadata_text;           // of metadata.json; empty: the build has none, or offline
    std::optional<kernel::Metadata> metadata;
};

struct OfferedKernel {
    std::string repo_id;
    std::string commit;
    std::vector<OfferedBuild> builds;   // by name
    std::vector<std::string> warnings;  // folders that are no builds, builds without metadata
    bool complete = true;               // false: offline, and only what is in the cache is known

    const OfferedBuild* find(std::string_view variant) const;
};

struct KernelHome {
    std::string repo_id;
    std::string commit;
};

// Which metadata.json is read: that of every build, or, later, those that decide.
enum class WithMetadata { all, none };

// Returns them in the order of `homes`, all asked for at once. A repository without builds is not
// an error here. Throws Error(malformed) for metadata.json that cannot be read, Error(not_found), …
std::vector<OfferedKernel> read_offers(Context& context, std::span<const KernelHome> homes,
                                       WithMetadata metadata = WithMetadata::all);

// One kernel, with its warnings said.
OfferedKernel read_offer(Context& context, const KernelHome& home);

// "org/name@3f2c9a01b2c3:build/<variant>/metadata.json", for messages.
std::string metadata_origin(const OfferedKernel& kernel, const OfferedBuild& build);

// Input for kernel::rank_variants, which must not outlive `kernel`. Metadata that was not read yet
// is asked for where GPU architectures decide.
std::vector<kernel::OfferedVariant> as_offered_variants(Context& context,
                                                        const OfferedKernel& kernel);

}  // namespace twinkle::operations
