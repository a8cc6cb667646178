#include "runtime/kernels/kernel_finder.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cache/layout.h"
#include "kernel/build.h"
#include "twinkle/error.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace twinkle::runtime {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// libexec/twinkle/torchX.Y-B/libtwinkle.so → lib/twinkle/kernels
fs::path bundled_kernels() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&variable), &info) == 0) {
        return {};
    }
    std::error_code ignored;
    const fs::path own = fs::canonical(info.dli_fname, ignored).parent_path();
    return own.parent_path().parent_path().parent_path() / "lib" / "twinkle" / "kernels";
}

std::vector<fs::path> children(const fs::path& folder) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->is_directory(error)) {
            found.push_back(it->path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

// A folder may be a build, a repository of builds, a folder of repositories, or a cache of the Hub.
std::vector<fs::path> builds_in(const fs::path& folder) {
    if (fs::exists(folder / "metadata.json")) {
        return {folder};
    }
    std::vector<fs::path> builds = children(folder / "build");
    for (const fs::path& child : children(folder)) {
        const auto direct = children(child / "build");
        builds.insert(builds.end(), direct.begin(), direct.end());
        if (child.filename().string().starts_with("kernels--")) {
            for (const fs::path& snapshot : children(child / "snapshots")) {
                const auto cached = children(snapshot / "build");
                builds.insert(builds.end(), cached.begin(), cached.end());
            }
        }
    }
    return builds;
}

// The namespace in the build's metadata; empty where it has none. A broken one is no reason to
// fail: the search is for another build.
std::string namespace_of(const fs::path& build) {
    const fs::path metadata = build / "metadata.json";
    if (!fs::exists(metadata)) {
        return "";
    }
    try {
        const base::Json json = base::read_json_file(metadata, "metadata", {.bytes = 8u << 20});
        return json.is_object() ? json.value("id", std::string()) : "";
    } catch (const std::exception&) {
        return "";
    }
}

// Nothing for a damaged build: it is one that does not fit.
std::optional<MappedKernel> describe(const RequiredKernel& required, const fs::path& folder) {
    MappedKernel kernel;
    kernel.name = required.name;
    kernel.variant = required.variant;
    kernel.op_namespace = required.op_namespace;
    kernel.path = folder;
    try {
        kernel.files = kernel::read_build(folder).files;
    } catch (const Error&) {
        return std::nullopt;
    }
    return kernel;
}

}  // namespace

KernelFinder::KernelFinder(const std::vector<fs::path>& first) : folders_(first) {
    for (const std::string& folder : base::split(variable("TWINKLE_KERNELS"), ':')) {
        if (!folder.empty()) {
            folders_.emplace_back(folder);
        }
    }
    folders_.push_back(bundled_kernels());
    folders_.push_back(cache::cache_folder(target::this_machine()));
}

MappedKernel KernelFinder::find(const RequiredKernel& required, const fs::path& model) const {
    std::vector<std::string> others;
    for (const fs::path& folder : folders_) {
        for (const fs::path& build : builds_in(folder)) {
            if (namespace_of(build) != required.op_namespace) {
                continue;
            }
            auto kernel = describe(required, build);
            if (kernel && kernel->build_id() == required.build_id) {
                return *std::move(kernel);
            }
            others.push_back(build.string());
        }
    }
    if (!others.empty()) {
        throw Error(ErrorCode::verification,
                    {.what = "the kernel " + required.name +
                             " is not the build that the model was made with",
                     .where = others.front(),
                     .why = "its files do not have the hashes that the model names (build " +
                            required.build_id.substr(0, 12) + "…)",
                     .hint = "restore that build, or kernelize the original model again"});
    }
    std::vector<std::string> searched;
    for (const fs::path& folder : folders_) {
        searched.push_back(base::display_path(folder));
    }
    throw Error(
        ErrorCode::not_found,
        {.what = "the model needs the kernel " + required.name + " (" + required.variant + ")",
         .where = base::display_path(model),
         .why = "no build with the operators " + required.op_namespace + " is in " +
                base::join(searched, ", "),
         .hint = "name the folder that holds it with --kernels or TWINKLE_KERNELS"});
}

}  // namespace twinkle::runtime
