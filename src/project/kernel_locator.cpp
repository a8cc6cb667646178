#include "project/kernel_locator.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cache/snapshot.h"
#include "project/local_kernels.h"
#include "project/refs.h"
#include "project/requests.h"
#include "project/trust.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

constexpr const char* pack_name = "twinkle-pack";

}  // namespace

KernelLocator::KernelLocator(const Manifest& manifest, LocatorOptions options,
                             const target::Machine& machine)
    : manifest_(manifest),
      options_(std::move(options)),
      cache_(cache::cache_of(machine)),
      overrides_(local_kernels(machine)) {}

KernelSource KernelLocator::locate(const LayerBinding& binding) {
    return locate_bound(binding);
}

KernelSource KernelLocator::locate(const FunctionBinding& binding) {
    return locate_bound(binding);
}

template <typename Binding>
KernelSource KernelLocator::locate_bound(const Binding& binding) {
    if (!binding.repo_id.empty()) {
        return locate_hub(binding.repo_id, pin_of(manifest_, binding), binding.where);
    }
    if (binding.repo_path.empty()) {
        return locate_bundled();
    }
    const fs::path folder = local_folder(binding.repo_path, binding.package_name);
    return locate_local(local_name(manifest_, folder), folder, binding.where);
}

KernelSource KernelLocator::locate(const KernelRequest& request) {
    return request.path.empty() ? locate_hub(request.key, request.pin, request.where)
                                : locate_local(request.key, request.path, request.where);
}

KernelSource KernelLocator::locate(const LockedDependency& dependency, const std::string& where) {
    return locate_hub(dependency.repo_id, dependency.pin, where);
}

KernelSource KernelLocator::locate_bundled() const {
    const fs::path folder = options_.bundled / pack_name;
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw Error(ErrorCode::not_found,
                    {.what = "the bundled kernels are not there",
                     .where = base::display_path(folder),
                     .why = "this twinkle was built or installed without them",
                     .hint = "build with -DTWINKLE_RUNTIME=ON, or name a kernel with repo_path"});
    }
    return {pack_name, "", "", base::absolute_path(folder), {}, nullptr};
}

KernelSource KernelLocator::locate_local(const std::string& name, const fs::path& folder,
                                         const std::string& where) const {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw Error(ErrorCode::not_found,
                    {.what = "no kernel in the folder " + base::display_path(folder),
                     .where = where,
                     .why = "there is no such folder",
                     .hint = "paths in a manifest are relative to its own folder"});
    }
    const Lock* lock = options_.lock;
    return {name, "", "", folder, {}, lock != nullptr ? lock->find_local(name) : nullptr};
}

KernelSource KernelLocator::locate_hub(const std::string& repo_id, Pin pin,
                                       const std::string& where) {
    if (pin.empty()) {
        warn(where + ": " + repo_id + " has neither version nor revision: its branch main is used" +
             newest_known(repo_id));
        pin.revision = "main";
    }
    const std::string name = repo_id + "@" + pin.text();
    if (const auto found = overrides_.find(repo_id); found != overrides_.end()) {
        warn(local_kernel_warning(repo_id, found->second));
        KernelSource source = locate_local(name, found->second, where);
        source.locked = nullptr;
        return source;
    }
    const LockedKernel* locked =
        options_.lock != nullptr ? options_.lock->find(repo_id, pin) : nullptr;
    if (locked != nullptr) {
        return locate_locked(*locked, name, where);
    }
    if (options_.download) {  // which is up to date, and asks whom to trust
        const auto snapshot = options_.download(repo_id, pin);
        return {name, repo_id, snapshot.commit, snapshot.folder, pin, nullptr};
    }
    const auto ref = ref_of(pin, cached_refs(cache_, repo_id));
    const auto snapshot = ref ? cache::find_snapshot(cache_, repo_id, *ref) : std::nullopt;
    if (!snapshot) {
        fail_missing(name, repo_id, where);
    }
    if (!is_trusted(repo_id, manifest_.trust)) {
        warn(repo_id + " comes from the cache; its publisher was not checked");
    }
    return {name, repo_id, snapshot->commit, snapshot->folder, pin, nullptr};
}

// What to pin instead, as far as the cache knows: "; its newest known version is 3".
std::string KernelLocator::newest_known(const std::string& repo_id) const {
    const auto versions = cached_refs(cache_, repo_id).versions();
    return versions.empty()
               ? ""
               : "; its newest known version is " + std::to_string(versions.back().number);
}

// Whom to trust was decided when it was locked.
KernelSource KernelLocator::locate_locked(const LockedKernel& locked, const std::string& name,
                                          const std::string& where) const {
    const fs::path folder = cache_.snapshot(locked.home(), locked.commit);
    if (!cache::has_snapshot(cache_, locked.home(), locked.commit)) {
        fail_missing(name, locked.name, where);
    }
    return {name, locked.home(), locked.commit, folder, locked.pin, &locked};
}

void KernelLocator::fail_missing(const std::string& name, const std::string& repo_id,
                                 const std::string& where) const {
    throw Error(ErrorCode::not_found,
                {.what = "the kernel " + base::printable(name) + " is not in the cache",
                 .where = where,
                 .why = "looked in " + base::display_path(cache_.root()),
                 .hint = options_.fetch_command +
                         " gets it; or name a copy: LOCAL_KERNELS=" + repo_id + "=PATH"});
}

void KernelLocator::warn(std::string text) {
    if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) {
        warnings_.push_back(std::move(text));
    }
}

}  // namespace twinkle::project
