#include "project/lock.h"

#include <algorithm>

#include "base/base64.h"
#include "base/sha256.h"
#include "kernel/digest.h"
#include "twinkle/error.h"

namespace twinkle::project {
namespace {

bool dependency_before(const LockedDependency& a, const LockedDependency& b) {
    return a.repo_id != b.repo_id ? a.repo_id < b.repo_id : comes_before(a.pin, b.pin);
}

void sort_once(std::vector<LockedDependency>& dependencies) {
    std::sort(dependencies.begin(), dependencies.end(), dependency_before);
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
}

// The SHA-256 of the digest for this file; empty where it has none.
std::string digest_sha256(const kernel::Metadata& metadata, const std::string& path) {
    if (!metadata.digest || metadata.digest->algorithm != "sha256") {
        return "";
    }
    const auto found = metadata.digest->files.find(path);
    const auto bytes =
        found == metadata.digest->files.end() ? std::nullopt : base::from_base64(found->second);
    return bytes && bytes->size() == 32 ? base::to_hex(*bytes) : "";
}

}  // namespace

std::uint64_t LockedVariant::size() const {
    std::uint64_t total = 0;
    for (const LockedFile& file : files) {
        total += file.size;
    }
    return total;
}

const LockedFile* LockedVariant::find(std::string_view path) const {
    const auto at = std::ranges::lower_bound(files, path, {}, &LockedFile::path);
    return at != files.end() && at->path == path ? &*at : nullptr;
}

const LockedVariant* LockedKernel::find(std::string_view variant) const {
    const auto found =
        std::find_if(variants.begin(), variants.end(),
                     [&](const LockedVariant& candidate) { return candidate.name == variant; });
    return found == variants.end() ? nullptr : &*found;
}

std::vector<LockedDependency> LockedKernel::dependencies() const {
    std::vector<LockedDependency> all;
    for (const LockedVariant& variant : variants) {
        all.insert(all.end(), variant.dependencies.begin(), variant.dependencies.end());
    }
    sort_once(all);
    return all;
}

bool comes_before(const LockedKernel& a, const LockedKernel& b) {
    if (a.name != b.name) {
        return a.name < b.name;
    }
    return a.is_local() != b.is_local() ? a.is_local() : comes_before(a.pin, b.pin);
}

const LockedKernel* Lock::find(std::string_view repo_id, const Pin& pin) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const LockedKernel& k) {
        const bool any_pin = format == LockFormat::kernels_old;
        return k.name == repo_id && !k.is_local() && (k.pin == pin || any_pin);
    });
    return found == kernels.end() ? nullptr : &*found;
}

const LockedKernel* Lock::find_local(std::string_view name) const {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const LockedKernel& k) {
        return k.name == name && k.is_local();
    });
    return found == kernels.end() ? nullptr : &*found;
}

void Lock::set(LockedKernel kernel) {
    const auto place = std::lower_bound(
        kernels.begin(), kernels.end(), kernel,
        [](const LockedKernel& a, const LockedKernel& b) { return comes_before(a, b); });
    if (place != kernels.end() && !comes_before(kernel, *place)) {
        *place = std::move(kernel);
    } else {
        kernels.insert(place, std::move(kernel));
    }
}

std::vector<const LockedKernel*> Lock::tree(const LockedKernel& root,
                                            std::string_view variant) const {
    std::vector<const LockedKernel*> result{&root};
    for (std::size_t i = 0; i < result.size(); ++i) {
        const LockedVariant* only = i == 0 ? root.find(variant) : nullptr;
        for (const LockedDependency& needed :
             only != nullptr ? only->dependencies : result[i]->dependencies()) {
            const LockedKernel* kernel = find(needed.repo_id, needed.pin);
            if (kernel != nullptr &&
                std::find(result.begin(), result.end(), kernel) == result.end()) {
                result.push_back(kernel);
            }
        }
    }
    return result;
}

LockedDependency locked_dependency(const kernel::KernelDependency& dependency) {
    LockedDependency result{dependency.repo_id, {}};
    if (dependency.version) {
        if (*dependency.version > 1'000'000) {
            throw Error(ErrorCode::malformed,
                        {.what = "a kernel depends on a version that cannot be",
                         .where = dependency.repo_id,
                         .why = "version " + std::to_string(*dependency.version),
                         .hint = ""});
        }
        result.pin.version = static_cast<int>(*dependency.version);
    } else {
        result.pin.revision = dependency.revision;
    }
    return result;
}

LockedVariant lock_variant(std::string_view name, std::span<const cache::TreeFile> tree,
                           std::string_view metadata_json, std::string_view origin) {
    const kernel::Metadata metadata = kernel::parse_metadata(metadata_json, origin);
    LockedVariant variant;
    variant.name = name;
    variant.metadata_sha256 = base::sha256_hex(metadata_json);
    variant.archs = metadata.archs;
    for (const kernel::KernelDependency& dependency : metadata.kernel_depends) {
        variant.dependencies.push_back(locked_dependency(dependency));
    }
    sort_once(variant.dependencies);
    const std::string folder = "build/" + variant.name + "/";
    for (const cache::TreeFile& file : tree) {
        if (!file.path.starts_with(folder) || kernel::is_bytecode(file.path)) {
            continue;
        }
        LockedFile locked{file.path.substr(folder.size()), file.size, "", ""};
        if (file.lfs_sha256) {
            locked.sha256 = *file.lfs_sha256;
        } else {
            locked.git_sha1 = file.blob_id;
            locked.sha256 = locked.path == "metadata.json" ? variant.metadata_sha256
                                                           : digest_sha256(metadata, locked.path);
        }
        variant.files.push_back(std::move(locked));
    }
    std::sort(variant.files.begin(), variant.files.end(),
              [](const LockedFile& a, const LockedFile& b) { return a.path < b.path; });
    return variant;
}

}  // namespace twinkle::project
