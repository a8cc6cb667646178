#include "project/kernel_locator.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "cache/snapshot.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

constexpr const char* pack_name = "twinkle-pack";

// LOCAL_KERNELS: repo=path:repo=path
std::map<std::string, fs::path> local_overrides(const target::Machine& machine) {
    std::map<std::string, fs::path> overrides;
    const std::string text = machine.environment("LOCAL_KERNELS").value_or("");
    if (text.empty()) {
        return overrides;
    }
    for (const std::string& entry : base::split(text, ':')) {
        const auto equals = entry.find('=');
        if (equals == std::string::npos) {
            throw Error(ErrorCode::malformed, {.what = "cannot read LOCAL_KERNELS",
                                               .where = base::printable(entry),
                                               .why = "it is not repository=path",
                                               .hint = "as in LOCAL_KERNELS=org/name=/path:…"});
        }
        overrides[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    return overrides;
}

// The name of the ref that a pin asks for. Ranges of releases need the list of tags, which only the
// Hub has; an exact release is a tag.
std::optional<std::string> ref_of(const Pin& pin) {
    if (pin.version) {
        return "v" + std::to_string(*pin.version);
    }
    if (!pin.specifier.empty()) {
        const bool exact =
            pin.specifier.find_first_not_of("0123456789.abrcdevpost") == std::string::npos;
        return exact ? std::optional("v" + pin.specifier) : std::nullopt;
    }
    return pin.revision.empty() ? "main" : pin.revision;
}

std::string pinned_name(const std::string& repo_id, const Pin& pin) {
    return pin.empty() ? repo_id + "@main" : repo_id + "@" + pin.text();
}

}  // namespace

KernelLocator::KernelLocator(const Manifest& manifest, fs::path bundled,
                             const target::Machine& machine)
    : manifest_(manifest),
      bundled_(std::move(bundled)),
      cache_(cache::cache_of(machine)),
      overrides_(local_overrides(machine)) {}

KernelSource KernelLocator::locate(const LayerBinding& binding) {
    if (!binding.repo_id.empty()) {
        return locate_hub(binding.repo_id, pin_from_kernels(binding), binding.where);
    }
    if (binding.repo_path.empty()) {
        return locate_bundled();
    }
    // A package in a repository of several, or the repository of a single one.
    std::error_code error;
    const fs::path package = binding.repo_path / binding.package_name;
    const bool inside = !binding.package_name.empty() && fs::is_directory(package, error);
    const fs::path folder = inside ? package : binding.repo_path;
    for (const KernelRequest& request : manifest_.kernels) {
        if (!request.path.empty() && request.path == folder) {
            return locate(request);
        }
    }
    // Named as seen from the manifest, so that the mapping does not depend on the current folder.
    const fs::path home = fs::absolute(manifest_.file).parent_path().lexically_normal();
    return locate_local(folder.lexically_relative(home).generic_string(), folder, binding.where);
}

KernelSource KernelLocator::locate(const KernelRequest& request) {
    return request.path.empty() ? locate_hub(request.key, request.pin, request.where)
                                : locate_local(request.key, request.path, request.where);
}

KernelSource KernelLocator::locate_bundled() const {
    const fs::path folder = bundled_ / pack_name;
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw Error(ErrorCode::not_found,
                    {.what = "the bundled kernels are not there",
                     .where = base::display_path(folder),
                     .why = "this twinkle was built or installed without them",
                     .hint = "build with -DTWINKLE_RUNTIME=ON, or name a kernel with repo_path"});
    }
    return {pack_name, "", "", fs::absolute(folder).lexically_normal()};
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
    return {name, "", "", folder};
}

KernelSource KernelLocator::locate_hub(const std::string& repo_id, const Pin& pin,
                                       const std::string& where) {
    const std::string name = pinned_name(repo_id, pin);
    if (const auto found = overrides_.find(repo_id); found != overrides_.end()) {
        warn(repo_id + " is taken from " + base::display_path(found->second) + " (LOCAL_KERNELS)");
        return locate_local(name, fs::absolute(found->second).lexically_normal(), where);
    }
    if (pin.empty()) {
        warn(where + ": " + repo_id + " has neither version nor revision: its branch main is used");
    }
    const auto ref = ref_of(pin);
    const auto snapshot = ref ? cache::find_snapshot(cache_, repo_id, *ref) : std::nullopt;
    if (!snapshot) {
        throw Error(ErrorCode::not_found,
                    {.what = "the kernel " + base::printable(name) + " is not in the cache",
                     .where = where,
                     .why = "nothing is fetched here, and this version of twinkle has no Hub "
                            "commands yet; looked in " +
                            base::display_path(cache_.root()),
                     .hint = "fetch it with the Python tool: kernels download, or name a local "
                             "copy: LOCAL_KERNELS=" +
                             repo_id + "=PATH"});
    }
    const auto& trusted = manifest_.trust;
    if (std::find(trusted.begin(), trusted.end(), repo_id) == trusted.end()) {
        warn(repo_id + " comes from the cache; its publisher was not checked");
    }
    return {name, repo_id, snapshot->commit, snapshot->folder};
}

// A layer without a version has the one that [kernels] gives to its repository.
Pin KernelLocator::pin_from_kernels(const LayerBinding& binding) const {
    if (!binding.pin.empty()) {
        return binding.pin;
    }
    std::vector<Pin> pins;
    std::vector<std::string> texts;
    for (const KernelRequest& request : manifest_.kernels) {
        if (request.key == binding.repo_id && request.path.empty()) {
            pins.push_back(request.pin);
            texts.push_back(request.pin.text());
        }
    }
    if (pins.size() > 1) {
        throw Error(ErrorCode::malformed,
                    {.what = "the layer \"" + binding.kernel_name +
                             "\" does not say which version of " + binding.repo_id + " it is from",
                     .where = binding.where,
                     .why = "[kernels] has several: " + base::join(texts, ", "),
                     .hint = "add version = …"});
    }
    return pins.empty() ? Pin{} : pins.front();
}

void KernelLocator::warn(std::string text) {
    if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end()) {
        warnings_.push_back(std::move(text));
    }
}

}  // namespace twinkle::project
