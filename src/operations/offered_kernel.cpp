#include "operations/offered_kernel.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "cache/snapshot.h"
#include "kernel/digest.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

constexpr std::string_view build_folder = "build/";
constexpr std::size_t metadata_limit = 16u << 20;  // the digest in it names every file

std::string metadata_path(const std::string& variant) {
    return std::string(build_folder) + variant + "/metadata.json";
}

// "build/<variant>/…": the builds by name. Bytecode is not part of a build.
OfferedKernel sort_files(const KernelHome& home, std::vector<cache::TreeFile> files) {
    OfferedKernel kernel{home.repo_id, home.commit, {}, {}, true};
    std::map<std::string, std::vector<cache::TreeFile>> folders;
    for (auto& file : files) {
        if (!file.path.starts_with(build_folder) || kernel::is_bytecode(file.path)) {
            continue;
        }
        const auto end = file.path.find('/', build_folder.size());
        if (end != std::string::npos) {
            folders[file.path.substr(build_folder.size(), end - build_folder.size())].push_back(
                std::move(file));
        }
    }
    for (auto& [name, members] : folders) {
        if (kernel::parse_variant(name)) {
            kernel.builds.push_back({name, std::move(members), {}, {}});
        } else {
            kernel.warnings.push_back(home.repo_id + ": build/" + name +
                                      " is not named as a build variant and is left out");
        }
    }
    return kernel;
}

const cache::TreeFile* metadata_file(const OfferedBuild& build) {
    const auto path = metadata_path(build.variant);
    const auto at = std::find_if(build.files.begin(), build.files.end(),
                                 [&](const auto& file) { return file.path == path; });
    return at == build.files.end() ? nullptr : &*at;
}

void set_metadata(const OfferedKernel& kernel, OfferedBuild& build, std::string text) {
    build.metadata_text = std::move(text);
    build.metadata = kernel::parse_metadata(build.metadata_text, metadata_origin(kernel, build));
}

// What was fetched before, if every byte of it is right.
std::optional<std::string> cached_text(const Context& context, const OfferedKernel& kernel,
                                       const cache::TreeFile& file) {
    const auto& cache = context.cache();
    if (file.size > metadata_limit ||
        !cache::has_file(cache, kernel.repo_id, kernel.commit, file.path, file.size)) {
        return std::nullopt;
    }
    try {
        auto text = base::read_file(cache.file(kernel.repo_id, kernel.commit, file.path),
                                    "metadata of a kernel", metadata_limit);
        const auto wanted = file.hash();
        return cache::hash_bytes(text, wanted.kind) == wanted.hex ? std::optional(std::move(text))
                                                                  : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;  // the Hub has it
    }
}

// Equal files (as they often are between builds) are asked for once, and not at all where the
// cache has them.
void read_metadata(Context& context, std::vector<OfferedKernel>& kernels) {
    std::map<std::pair<std::string, std::string>, std::string> known;  // repository, etag
    std::vector<hub::FileRequest> requests;
    for (const auto& kernel : kernels) {
        for (const auto& build : kernel.builds) {
            const auto* file = metadata_file(build);
            if (file == nullptr || known.contains({kernel.repo_id, file->etag()})) {
                continue;
            }
            auto text = cached_text(context, kernel, *file);
            if (!text) {
                requests.push_back({kernel.repo_id, kernel.commit, *file});
            }
            known[{kernel.repo_id, file->etag()}] = text ? std::move(*text) : std::string();
        }
    }
    auto texts = context.hub().read_files(requests, metadata_limit);
    for (std::size_t i = 0; i < requests.size(); ++i) {
        known[{requests[i].repo_id, requests[i].file.etag()}] = std::move(texts[i]);
    }
    for (auto& kernel : kernels) {
        for (auto& build : kernel.builds) {
            if (const auto* file = metadata_file(build)) {
                set_metadata(kernel, build, known.at({kernel.repo_id, file->etag()}));
            } else {
                kernel.warnings.push_back(kernel.repo_id + ": the build " + build.variant +
                                          " has no metadata.json");
            }
        }
    }
}

std::vector<std::string> archs_of(Context& context, const OfferedKernel& kernel,
                                  const OfferedBuild& build) {
    if (build.metadata) {
        return build.metadata->archs;
    }
    const auto* file = metadata_file(build);
    if (file == nullptr || context.offline()) {
        return {};
    }
    const auto cached = cached_text(context, kernel, *file);
    const auto text =
        cached ? *cached
               : context.hub().read_file(kernel.repo_id, kernel.commit, *file, metadata_limit);
    return kernel::parse_metadata(text, metadata_origin(kernel, build)).archs;
}

// A list of the whole commit that was stored before, by the Python tools.
std::optional<OfferedKernel> from_stored_tree(const Context& context, const KernelHome& home) {
    auto files = cache::read_tree(context.cache(), home.repo_id, home.commit);
    return files ? std::optional(sort_files(home, std::move(*files))) : std::nullopt;
}

// A file of a snapshot: its hash is the name of the blob that it links to.
cache::TreeFile snapshot_file(const fs::path& folder, const std::string& path) {
    cache::TreeFile file;
    file.path = path;
    file.size = fs::file_size(folder / path);
    std::error_code error;
    auto etag = fs::read_symlink(folder / path, error).filename().string();
    if (!cache::is_etag(etag)) {  // a cache without links
        etag = cache::hash_file_as(folder / path, cache::HashKind::git_sha1);
    }
    if (cache::kind_of_etag(etag) == cache::HashKind::sha256) {
        file.lfs_sha256 = etag;
    } else {
        file.blob_id = etag;
    }
    return file;
}

// The Python tools leave metadata.json behind of builds that nobody fetched.
bool is_more_than_metadata(const OfferedBuild& build) {
    return std::any_of(build.files.begin(), build.files.end(), [&](const auto& file) {
        return !file.path.starts_with(metadata_path(build.variant));
    });
}

// What lies in the snapshot.
OfferedKernel from_snapshot(const Context& context, const KernelHome& home) {
    const auto folder = context.cache().snapshot(home.repo_id, home.commit);
    std::vector<cache::TreeFile> files;
    if (cache::has_snapshot(context.cache(), home.repo_id, home.commit)) {
        for (const auto& path : base::list_files(folder)) {
            files.push_back(snapshot_file(folder, path));
        }
    }
    auto kernel = sort_files(home, std::move(files));
    kernel.complete = false;
    std::erase_if(kernel.builds, [](const auto& build) { return !is_more_than_metadata(build); });
    return kernel;
}

OfferedKernel offline_offer(const Context& context, const KernelHome& home) {
    auto stored = from_stored_tree(context, home);
    auto kernel = stored ? std::move(*stored) : from_snapshot(context, home);
    for (auto& build : kernel.builds) {
        const auto path = metadata_path(build.variant);
        if (cache::has_file(context.cache(), home.repo_id, home.commit, path)) {
            set_metadata(kernel, build,
                         base::read_file(context.cache().file(home.repo_id, home.commit, path),
                                         "metadata of a kernel", metadata_limit));
        }
    }
    return kernel;
}

}  // namespace

const OfferedBuild* OfferedKernel::find(std::string_view variant) const {
    const auto at = std::find_if(builds.begin(), builds.end(),
                                 [&](const auto& build) { return build.variant == variant; });
    return at == builds.end() ? nullptr : &*at;
}

std::string metadata_origin(const OfferedKernel& kernel, const OfferedBuild& build) {
    return kernel.repo_id + "@" + kernel.commit.substr(0, 12) + ":" + metadata_path(build.variant);
}

std::vector<OfferedKernel> read_offers(Context& context, std::span<const KernelHome> homes,
                                       WithMetadata metadata) {
    std::vector<OfferedKernel> kernels;
    if (context.offline()) {
        for (const auto& home : homes) {
            kernels.push_back(offline_offer(context, home));
        }
        return kernels;
    }
    std::vector<hub::TreeRequest> requests;
    std::vector<std::size_t> waiting;
    for (const auto& home : homes) {
        if (auto stored = from_stored_tree(context, home)) {
            kernels.push_back(std::move(*stored));
            continue;
        }
        waiting.push_back(kernels.size());
        requests.push_back({home.repo_id, home.commit, "", true});
        kernels.push_back({home.repo_id, home.commit, {}, {}, true});
    }
    auto trees = context.hub().trees(requests);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        kernels[waiting[i]] = sort_files(homes[waiting[i]], std::move(trees[i].files));
    }
    if (metadata == WithMetadata::all) {
        read_metadata(context, kernels);
    }
    return kernels;
}

OfferedKernel read_offer(Context& context, const KernelHome& home) {
    auto kernel = std::move(read_offers(context, std::span(&home, 1)).front());
    for (const auto& warning : kernel.warnings) {
        context.listener().warn(warning);
    }
    return kernel;
}

std::vector<kernel::OfferedVariant> as_offered_variants(Context& context,
                                                        const OfferedKernel& kernel) {
    std::vector<kernel::OfferedVariant> offered;
    for (const auto& build : kernel.builds) {
        offered.push_back({build.variant, [&] { return archs_of(context, kernel, build); }});
    }
    return offered;
}

}  // namespace twinkle::operations
