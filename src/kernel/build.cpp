#include "kernel/build.h"

#include <algorithm>

#include "base/evp.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/digest.h"
#include "kernel/dispatch_keys.h"
#include "kernel/operators.h"
#include "kernel/package_files.h"
#include "kernel/variant.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::kernel {
namespace {

constexpr std::uint64_t largest_source = 16u << 20;

std::vector<std::string> folders_in(const fs::path& path) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        std::error_code ignored;
        if (entry->is_directory(ignored)) {
            names.push_back(entry->path().filename().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool is_source(std::string_view path) {
    return path.ends_with(".py");
}
// One pass over a file: its size and SHA-256, the hash of the digest, and the text of sources.
void read_one_file(const fs::path& folder, const std::string& path, bool with_sha512,
                   BuildFiles& result) {
    base::EvpDigest sha256(base::DigestKind::sha256);
    std::optional<base::EvpDigest> sha512;
    if (with_sha512) {
        sha512.emplace(base::DigestKind::sha512);
    }
    std::string text;
    const bool keep = is_source(path);
    const auto size =
        base::stream_file(folder / path, "file of a kernel", [&](std::string_view bytes) {
            sha256.update(bytes);
            if (sha512) {
                sha512->update(bytes);
            }
            if (keep && text.size() <= largest_source) {
                text += bytes;
            }
        });
    const std::string hash = sha256.finish();
    result.files.push_back({path, size, base::to_hex(hash)});
    result.digests.emplace(path, sha512 ? sha512->finish() : hash);
    if (keep && text.size() <= largest_source) {
        result.sources.emplace(path, std::move(text));
    }
}

void check_digest(const Build& build, const BuildFiles& files) {
    if (!build.metadata || !build.metadata->digest) {
        return;
    }
    const auto violations = digest_violations(*build.metadata->digest, files.digests);
    if (!violations.empty()) {
        throw Error(ErrorCode::verification,
                    {.what = "the files of a kernel are not those of its digest",
                     .where = base::display_path(build.path),
                     .why = base::join(violations, "\n         "),
                     .hint = "get the build again; do not edit it in place"});
    }
}

std::string find_package(const Build& build, const BuildFiles& files) {
    if (const auto prefix =
            package_prefix(files.sources, build.metadata ? build.metadata->package_name() : "")) {
        return *prefix;
    }
    throw Error(ErrorCode::malformed, {.what = "a build of a kernel has no Python package",
                                       .where = base::display_path(build.path),
                                       .why = "there is no __init__.py",
                                       .hint = ""});
}

}  // namespace

KernelFolder open_kernel_folder(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        throw Error(
            ErrorCode::not_found,
            {.what = "no kernel at this path",
             .where = base::display_path(path),
             .why = fs::exists(path, error) ? "it is not a folder" : "there is no such folder",
             .hint = ""});
    }
    KernelFolder folder{FolderKind::package, path, {}, {}};
    if (fs::exists(path / "metadata.json", error)) {
        folder.kind = FolderKind::build;
        return folder;
    }
    for (const fs::path& builds : {path / "build", path}) {
        const auto names = folders_in(builds);
        const auto is_variant = [](const auto& name) { return parse_variant(name).has_value(); };
        if (std::any_of(names.begin(), names.end(), is_variant)) {
            folder.kind = FolderKind::repository;
            folder.builds = builds;
            folder.variants = names;
            if (builds == path) {  // other folders of the repository are no builds
                std::erase_if(folder.variants, [&](const auto& name) { return !is_variant(name); });
            }
            return folder;
        }
    }
    if (fs::exists(path / "__init__.py", error)) {
        return folder;
    }
    throw Error(ErrorCode::malformed,
                {.what = "not a kernel",
                 .where = base::display_path(path),
                 .why = "a kernel has metadata.json (a build), build/<variant>/ (a repository of "
                        "builds) or __init__.py (a plain Python package)",
                 .hint = ""});
}

BuildFiles read_build_files(const fs::path& folder, bool with_sha512) {
    BuildFiles files;
    for (const std::string& path : package_files(folder)) {
        if (!is_bytecode(path)) {
            read_one_file(folder, path, with_sha512, files);
        }
    }
    return files;
}

bool is_library(std::string_view path) {
    return path.ends_with(".so");
}

std::optional<std::string> package_prefix(const PackageSources& sources, const std::string& name) {
    if (sources.contains("__init__.py")) {
        return "";
    }
    if (!name.empty() && sources.contains(name + "/__init__.py")) {
        return name + "/";
    }
    return std::nullopt;
}

PackageSources package_sources(const PackageSources& sources, const std::string& prefix) {
    PackageSources result;
    for (const auto& [path, text] : sources) {
        if (path.starts_with(prefix)) {
            result.emplace(path.substr(prefix.size()), text);
        }
    }
    return result;
}

void read_library_of(Build& build, const std::string& path) {
    const binary::FileSource source(build.path / path);
    const auto layout = binary::ElfLayout::read(source);
    auto library = binary::read_library(source);
    if (!layout || !library) {
        return;
    }
    BuildLibrary added{path, std::move(*library), {}, {}};
    if (build.metadata) {
        for (const MappedOperator& op :
             find_operators(*layout, build.metadata->id, build.sources)) {
            added.whole_schemas.push_back(op.name);
            build.operators.push_back(op);
        }
    }
    added.dispatch_keys = find_dispatch_keys(*layout, added.library);
    add_python_needs(build.python_needs, path, added.library);
    build.libraries.push_back(std::move(added));
}

// Packages of one operator are for different inputs and machines, and must take the same
// parameters.
void read_package_of(Build& build, const std::string& path) {
    auto package = read_operator_package(build.path / path, base::display_path(build.path / path));
    if (!package) {
        return;
    }
    const CompiledOperator& op = package->op;
    const auto same = std::find_if(build.operators.begin(), build.operators.end(),
                                   [&](const auto& other) { return other.name == op.name; });
    if (same == build.operators.end()) {
        build.operators.push_back({op.name, op.schema});
    } else if (same->schema != op.schema) {
        throw Error(ErrorCode::malformed,
                    {.what = "two files of a kernel disagree about an operator",
                     .where = base::display_path(build.path / path),
                     .why = "it has " + op.schema + ", another has " + same->schema,
                     .hint = "give them the same parameters, or operators of other names"});
    }
    build.packages.push_back({path, *std::move(package)});
}

bool Build::has_code() const {
    return !packages.empty() || std::any_of(files.begin(), files.end(),
                                            [](const auto& file) { return is_library(file.path); });
}

Build read_build(const fs::path& folder) {
    Build build;
    build.path = folder;
    std::error_code error;
    if (fs::exists(folder / "metadata.json", error)) {
        build.metadata = read_metadata(folder / "metadata.json");
    }
    const bool sha512 =
        build.metadata && build.metadata->digest && build.metadata->digest->algorithm == "sha512";
    BuildFiles files = read_build_files(folder, sha512);
    build.files = std::move(files.files);
    check_digest(build, files);
    const std::string prefix = find_package(build, files);
    build.package = prefix.empty() ? folder : folder / prefix.substr(0, prefix.size() - 1);
    build.sources = package_sources(files.sources, prefix);
    for (const MappedFile& file : build.files) {
        if (is_library(file.path)) {
            read_library_of(build, file.path);
        } else if (build.metadata && is_package(file.path)) {
            read_package_of(build, file.path);
        }
    }
    if (build.metadata) {
        add_merged_operators(build.operators, build.sources);
    }
    return build;
}

}  // namespace twinkle::kernel
