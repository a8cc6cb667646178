// Local kernels in the lock: the same facts as of a Hub kernel, from the folder itself.

#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "kernel/build.h"
#include "kernel/digest.h"
#include "kernel/package_files.h"
#include "kernel/variant.h"
#include "project/lock.h"
#include "project/locked_build.h"
#include "project/requests.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

LockedVariant lock_folder(const fs::path& folder, std::string name) {
    LockedVariant variant;
    variant.name = std::move(name);
    for (const std::string& path : kernel::package_files(folder)) {
        if (kernel::is_bytecode(path)) {
            continue;
        }
        if (!cache::is_safe_path(path)) {
            throw Error(ErrorCode::malformed,
                        {.what = "a file of a local kernel cannot be locked",
                         .where = base::display_path(folder / path),
                         .why = "its name has characters that a lock cannot hold",
                         .hint = "rename it"});
        }
        const base::FileHash hash = base::hash_file(folder / path);
        variant.files.push_back({path, hash.size, "", hash.sha256});
        if (path == "metadata.json") {
            variant.metadata_sha256 = hash.sha256;
        }
    }
    if (!variant.metadata_sha256.empty()) {
        const kernel::Metadata metadata = kernel::read_metadata(folder / "metadata.json");
        variant.archs = metadata.archs;
        for (const kernel::KernelDependency& dependency : metadata.kernel_depends) {
            variant.dependencies.push_back(locked_dependency(dependency));
        }
    }
    return variant;
}

// What of one local kernel is not as the lock says; empty: nothing.
std::string difference(const LockedKernel& locked, const LockedKernel& found) {
    for (const LockedVariant& variant : found.variants) {
        const LockedVariant* other = locked.find(variant.name);
        if (other == nullptr) {
            return variant.name + " is new";
        }
        if (const auto differences = lock_differences(*other, variant.files);
            !differences.empty()) {
            return differences.front();
        }
    }
    return found.variants.size() == locked.variants.size() ? "" : "builds of it are gone";
}

}  // namespace

LockedKernel lock_local_kernel(const KernelRequest& request, const fs::path& root) {
    const kernel::KernelFolder folder = kernel::open_kernel_folder(request.path);
    LockedKernel locked;
    locked.name = request.key;
    locked.path = request.path.lexically_relative(base::absolute_path(root)).generic_string();
    if (folder.kind != kernel::FolderKind::repository) {
        locked.variants.push_back(lock_folder(folder.path, "."));
        return locked;
    }
    for (const std::string& name : folder.variants) {
        if (kernel::parse_variant(name)) {
            locked.variants.push_back(lock_folder(folder.builds / name, name));
        }
    }
    return locked;
}

std::vector<std::string> local_mismatches(const Manifest& manifest, const Lock& lock) {
    std::vector<std::string> reasons;
    for (const KernelRequest& request : local_requests(manifest)) {
        const LockedKernel* locked = lock.find_local(request.key);
        if (locked == nullptr) {
            continue;  // lock_mismatches says so
        }
        const LockedKernel found = lock_local_kernel(request, manifest.file.parent_path());
        if (const std::string what = difference(*locked, found); !what.empty()) {
            reasons.push_back("the local kernel " + base::printable(request.key) +
                              " is not as it was locked: " + what);
        }
    }
    return reasons;
}

}  // namespace twinkle::project
