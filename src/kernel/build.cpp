#include "kernel/build.h"

#include <algorithm>

#include "base/evp.h"
#include "base/file.h"
#include "base/text.h"
#include "kernel/digest.h"
#include "kernel/operators.h"
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
bool is_library(std::string_view path) {
    return path.ends_with(".so");
}

// One pass over a file: its size and SHA-256, the hash of the digest, and the text of sources.
class FileReader {
public:
    FileReader(Build& build, bool with_sha512) : build_(build), with_sha512_(with_sha512) {}

    void read(const std::string& path) {
        base::EvpDigest sha256(base::DigestKind::sha256);
        std::optional<base::EvpDigest> sha512;
        if (with_sha512_) {
            sha512.emplace(base::DigestKind::sha512);
        }
        std::string text;
        const bool keep = is_source(path);
        const auto size =
            base::stream_file(build_.path / path, "file of a kernel", [&](std::string_view bytes) {
                sha256.update(bytes);
                if (sha512) {
                    sha512->update(bytes);
                }
                if (keep && text.size() <= largest_source) {
                    text += bytes;
                }
            });
        const std::string hash = sha256.finish();
        build_.files.push_back({path, size, base::to_hex(hash)});
        digests_.emplace(path, sha512 ? sha512->finish() : hash);
        if (keep && text.size() <= largest_source) {
            texts_.emplace(path, std::move(text));
        }
    }

    const std::map<std::string, std::string>& digests() const { return digests_; }
    const std::map<std::string, std::string>& texts() const { return texts_; }

private:
    Build& build_;
    bool with_sha512_;
    std::map<std::string, std::string> digests_;
    std::map<std::string, std::string> texts_;
};

void check_digest(const Build& build, const FileReader& reader) {
    if (!build.metadata || !build.metadata->digest) {
        return;
    }
    const auto violations = digest_violations(*build.metadata->digest, reader.digests());
    if (!violations.empty()) {
        throw Error(ErrorCode::verification,
                    {.what = "the files of a kernel are not those of its digest",
                     .where = base::display_path(build.path),
                     .why = base::join(violations, "\n         "),
                     .hint = "get the build again; do not edit it in place"});
    }
}

// The package is the build itself, or, in older builds, a folder in it with the kernel's name.
std::string find_package(const Build& build, const FileReader& reader) {
    if (reader.texts().contains("__init__.py")) {
        return "";
    }
    const std::string name = build.metadata ? build.metadata->package_name() : "";
    if (!name.empty() && reader.texts().contains(name + "/__init__.py")) {
        return name + "/";
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

Build read_build(const fs::path& folder) {
    Build build;
    build.path = folder;
    std::error_code error;
    if (fs::exists(folder / "metadata.json", error)) {
        build.metadata = read_metadata(folder / "metadata.json");
    }
    const bool sha512 =
        build.metadata && build.metadata->digest && build.metadata->digest->algorithm == "sha512";
    FileReader reader(build, sha512);
    for (const std::string& path : base::list_files(folder)) {
        if (!is_bytecode(path)) {
            reader.read(path);
        }
    }
    check_digest(build, reader);
    const std::string prefix = find_package(build, reader);
    build.package = prefix.empty() ? folder : folder / prefix.substr(0, prefix.size() - 1);
    for (const auto& [path, text] : reader.texts()) {
        if (path.starts_with(prefix)) {
            build.sources.emplace(path.substr(prefix.size()), text);
        }
    }
    if (build.metadata) {
        for (const MappedFile& file : build.files) {
            if (is_library(file.path)) {
                const auto found = find_operators(folder / file.path, build.metadata->id);
                build.operators.insert(build.operators.end(), found.begin(), found.end());
            }
        }
        add_merged_operators(build.operators, build.sources);
    }
    return build;
}

}  // namespace twinkle::kernel
