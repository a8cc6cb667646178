#include "runtime/kernels/kernel_finder.h"

#include "archive/archive.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cache/layout.h"
#include "kernel/build.h"
#include "runtime/kernels/own_place.h"
#include "target/compiled_code.h"
#include "twinkle/error.h"

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

// Packages that may be kernels by themselves.
void add_packages(const fs::path& folder, std::vector<fs::path>& to) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        std::error_code ignored;
        if (kernel::is_package(it->path().string()) && it->is_regular_file(ignored)) {
            found.push_back(it->path());
        }
    }
    std::sort(found.begin(), found.end());
    to.insert(to.end(), found.begin(), found.end());
}

// The same folders that builds_in() looks into; or the path is such a file.
std::vector<fs::path> packages_in(const fs::path& folder) {
    std::error_code error;
    if (fs::is_regular_file(folder, error)) {
        return {folder};
    }
    std::vector<fs::path> found;
    add_packages(folder, found);
    for (const fs::path& child : children(folder)) {
        add_packages(child, found);
    }
    for (const fs::path& child : children(folder / "kernels")) {
        add_packages(child, found);
    }
    return found;
}

// A folder may be a build, a repository of builds, a folder of repositories, a cache of the Hub, or
// a bundle, which has such a folder beside its mapping.
std::vector<fs::path> builds_in(const fs::path& folder) {
    if (fs::exists(folder / "metadata.json")) {
        return {folder};
    }
    if (fs::exists(folder / "twinkle.map.json") && fs::exists(folder / "kernels")) {
        return builds_in(folder / "kernels");
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
    if (kernel::is_package(build.string())) {
        if (archive::kind_of_archive(build) != archive::ArchiveKind::compiled) {
            return "";  // not hashed: an exported model may be large
        }
        try {
            return kernel::package_namespace(base::hash_file(build).sha256);
        } catch (const Error&) {
            return "";
        }
    }
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

// `kernel` with the path of a package; nothing for one that is no kernel by itself.
std::optional<MappedKernel> describe_package(MappedKernel kernel) {
    auto build = kernel::read_package_file(kernel.path);
    if (!build) {
        return std::nullopt;
    }
    const target::CompiledFor& code = build->packages.front().package.model.made_for;
    kernel.path = build->path;
    kernel.device = code.device;
    if (const auto capability = target::capability_text(code)) {
        kernel.archs = {*capability};
    }
    kernel.files = std::move(build->files);
    kernel.operators = std::move(build->operators);
    return kernel;
}

// Nothing for a damaged build: it is one that does not fit.
std::optional<MappedKernel> describe(const RequiredKernel& required, const fs::path& folder) {
    MappedKernel kernel;
    kernel.name = required.name;
    kernel.variant = required.variant;
    kernel.op_namespace = required.op_namespace;
    kernel.path = folder;
    try {
        if (fs::is_regular_file(folder)) {
            return describe_package(std::move(kernel));
        }
        kernel::Build build = kernel::read_build(folder);
        kernel.files = std::move(build.files);
        kernel.operators = std::move(build.operators);
        if (build.metadata) {
            kernel.device = target::Backend{build.metadata->backend, {}}.device();
            kernel.archs = build.metadata->archs;
        }
    } catch (const Error&) {
        return std::nullopt;
    }
    return kernel;
}

// "org/name" in the cache, the folder of the repository elsewhere.
std::string repository_of(const fs::path& build) {
    for (fs::path folder = build; folder.has_relative_path(); folder = folder.parent_path()) {
        if (const auto repo_id = cache::repository_of(folder.filename().string())) {
            return *repo_id;
        }
    }
    const fs::path above = build.parent_path();
    return above.filename() == "build" ? above.parent_path().filename().string()
                                       : build.filename().string();
}

}  // namespace

void KernelFinder::explain(const std::string& attempt) const {
    if (explain_) {
        explain_(attempt);
    }
}

KernelFinder::KernelFinder(const std::vector<fs::path>& first,
                           std::function<void(const std::string&)> explain)
    : folders_(first), explain_(std::move(explain)) {
    for (const std::string& folder : base::split(variable("TWINKLE_KERNELS"), ':')) {
        if (!folder.empty()) {
            folders_.emplace_back(folder);
        }
    }
    folders_.push_back(bundled_kernels());
    folders_.push_back(cache::cache_folder(target::this_machine()));
}

const KernelFinder::Index& KernelFinder::index() const {
    if (!index_) {
        index_.emplace();
        for (const fs::path& folder : folders_) {
            for (const fs::path& build : builds_in(folder)) {
                (*index_)[namespace_of(build)].push_back({build, &folder != &folders_.back()});
            }
        }
    }
    return *index_;
}

std::vector<MappedKernel> KernelFinder::builds_of(const std::string& op_namespace,
                                                  Search search) const {
    std::vector<MappedKernel> found;
    const auto builds = index().find(op_namespace);
    if (op_namespace.empty() || builds == index().end()) {
        return found;
    }
    for (const auto& [build, chosen] : builds->second) {
        if (search == Search::chosen && !chosen) {
            continue;
        }
        const RequiredKernel named{repository_of(build), build.filename().string(), op_namespace,
                                   ""};
        if (auto kernel = describe(named, build)) {
            found.push_back(*std::move(kernel));
        }
    }
    return found;
}

MappedKernel KernelFinder::find(const RequiredKernel& required, const fs::path& model) const {
    std::vector<std::string> others;
    for (const fs::path& folder : folders_) {
        const bool of_package = required.op_namespace.starts_with(kernel::package_namespace(""));
        const auto builds = of_package ? packages_in(folder) : builds_in(folder);
        explain("looking for " + required.name + " in " + base::display_path(folder) + ": " +
                std::to_string(builds.size()) + (builds.size() == 1 ? " build" : " builds"));
        for (const fs::path& build : builds) {
            const std::string where = base::display_path(build);
            if (const auto other = namespace_of(build); other != required.op_namespace) {
                explain("  not " + where + ": its operators are " +
                        (other.empty() ? "not named" : base::printable(other)) + ", not " +
                        required.op_namespace);
                continue;
            }
            auto kernel = describe(required, build);
            if (kernel && kernel->build_id() == required.build_id) {
                explain("  " + where + " is the build that the model names");
                return *std::move(kernel);
            }
            explain("  not " + where + ": " +
                    (kernel ? "it is another build (" + kernel->build_id().substr(0, 12) + "…)"
                            : "it is damaged"));
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
