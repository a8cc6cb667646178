// Reading twinkle.lock. It decides what is fetched and run, and people merge it: nothing in it is
// taken on trust.

#include <algorithm>
#include <array>

#include "base/document.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/text.h"
#include "base/toml.h"
#include "cache/layout.h"
#include "project/kernels_lock.h"
#include "project/lock.h"
#include "project/lock_text.h"
#include "project/manifest_sections.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

using base::Node;
using base::TableReader;

constexpr std::size_t longest_path = 1024;

// A line that git leaves where it could not merge.
bool is_conflict_marker(std::string_view line) {
    static constexpr std::array<std::string_view, 4> markers{"<<<<<<<", "|||||||",
                                                             "=======", ">>>>>>>"};
    return std::any_of(markers.begin(), markers.end(), [&](std::string_view marker) {
        return line.starts_with(marker) &&
               (line.size() == marker.size() || line[marker.size()] == ' ' ||
                line[marker.size()] == '\r');
    });
}

void refuse_conflicts(std::string_view text, std::string_view origin) {
    std::size_t number = 1;
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (is_conflict_marker(text.substr(0, end))) {
            throw Error(ErrorCode::malformed,
                        {.what = "the lock has a conflict that git could not merge",
                         .where = base::located(origin, {number, 1}),
                         .why = "",
                         .hint = "take either side (git checkout --ours or --theirs), then run "
                                 "twinkle lock"});
        }
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        ++number;
    }
}

class LockReader {
public:
    explicit LockReader(std::string_view origin) : origin_(origin) {}

    Lock read(const Node& root) {
        TableReader reader(root, origin_, "the lock");
        const Node& version = reader.require("version");
        if (version.kind != Node::Kind::integer || version.integer != 1) {
            reader.fail(version, "its version is not 1", "it was written by a newer twinkle");
        }
        Lock lock;
        if (const Node* kernels = reader.find("kernel")) {
            for (const Node& item : reader.as_array(*kernels, "kernel").items) {
                add(lock, item);
            }
        }
        reader.finish();
        return lock;
    }

private:
    [[noreturn]] void fail_merge(const Node& at, std::string what, std::string why) const {
        throw Error(ErrorCode::out_of_date, {.what = std::move(what),
                                             .where = base::located(origin_, at.at),
                                             .why = std::move(why),
                                             .hint = "run twinkle lock"});
    }

    void add(Lock& lock, const Node& item) {
        LockedKernel kernel = read_kernel(item);
        if (!lock.kernels.empty() && !comes_before(lock.kernels.back(), kernel)) {
            const bool twice = !comes_before(kernel, lock.kernels.back());
            fail_merge(item, "the lock is the result of a merge that does not fit together",
                       base::printable(kernel.text()) +
                           (twice ? " is locked twice" : " is not at its place in the order"));
        }
        lock.kernels.push_back(std::move(kernel));
    }

    LockedKernel read_kernel(const Node& item) {
        TableReader reader(item, origin_, "a kernel in the lock");
        LockedKernel kernel;
        kernel.name = reader.required_string("name");
        const Node* path = reader.find("path");
        kernel.pin = read_pin(reader);
        if (path != nullptr) {
            read_local(reader, *path, kernel);
        } else {
            read_hub(reader, kernel);
        }
        const std::string checksum = reader.required_string("checksum");
        if (const Node* variants = reader.find("variant")) {
            for (const Node& variant : reader.as_array(*variants, "variant").items) {
                kernel.variants.push_back(read_variant(variant, kernel));
            }
        }
        reader.finish();
        if (checksum != checksum_of(kernel)) {
            fail_merge(reader.require("checksum"),
                       "the checksum of " + base::printable(kernel.text()) +
                           " in the lock is not that of its lines",
                       "it was edited, or merged out of two different states");
        }
        return kernel;
    }

    static void read_local(TableReader& reader, const Node& path, LockedKernel& kernel) {
        kernel.path = reader.as_string(path, "path");
        if (!kernel.pin.empty()) {
            reader.fail(path, "a local kernel has no version or revision");
        }
        if (kernel.name.empty() || kernel.path.empty() || kernel.path.size() > longest_path ||
            base::printable(kernel.name) != kernel.name ||
            base::printable(kernel.path) != kernel.path) {
            reader.fail(path, "that is no name and path of a local kernel");
        }
    }

    static void read_hub(TableReader& reader, LockedKernel& kernel) {
        if (!is_repository_id(kernel.name)) {
            reader.fail(reader.require("name"), "\"name\" is not org/name");
        }
        if (kernel.pin.empty()) {
            reader.fail(reader.table(), "one of \"version\", \"revision\" and \"path\" is needed");
        }
        const Node& ref = reader.require("ref");
        kernel.ref = reader.as_string(ref, "ref");
        if (!is_revision(kernel.ref)) {
            reader.fail(ref, "\"ref\" is no name of a branch, tag or commit");
        }
        if (const Node* moved = reader.find("moved_to")) {
            kernel.moved_to = reader.as_string(*moved, "moved_to");
            if (!is_repository_id(kernel.moved_to)) {
                reader.fail(*moved, "\"moved_to\" is not org/name");
            }
        }
        const Node& commit = reader.require("commit");
        kernel.commit = reader.as_string(commit, "commit");
        if (!cache::is_commit(kernel.commit)) {
            reader.fail(commit, "\"commit\" is not 40 or 64 hexadecimal digits in lower case");
        }
    }

    LockedVariant read_variant(const Node& item, const LockedKernel& kernel) {
        TableReader reader(item, origin_, "a build in the lock");
        LockedVariant variant;
        const Node& name = reader.require("name");
        variant.name = reader.as_string(name, "name");
        const bool whole = kernel.is_local() && variant.name == ".";
        if (!whole &&
            (!cache::is_safe_path(variant.name) || variant.name.find('/') != std::string::npos)) {
            reader.fail(name, "\"name\" is no name of a build");
        }
        if (!kernel.variants.empty() && !(kernel.variants.back().name < variant.name)) {
            reader.fail(name, "the builds are not sorted by name, or one is there twice");
        }
        if (const Node* metadata = reader.find("metadata")) {
            variant.metadata_sha256 = hash(reader, *metadata, "metadata", 64);
        }
        variant.archs = reader.strings("archs");
        if (const Node* list = reader.find("dependencies")) {
            for (const Node& entry : reader.as_array(*list, "dependencies").items) {
                variant.dependencies.push_back(read_dependency(entry));
            }
        }
        const Node& files = reader.require("files");
        for (const Node& entry : reader.as_array(files, "files").items) {
            LockedFile file = read_file(entry);
            if (!variant.files.empty() && !(variant.files.back().path < file.path)) {
                reader.fail(entry, "the files are not sorted by path, or one is there twice");
            }
            variant.files.push_back(std::move(file));
        }
        reader.finish();
        return variant;
    }

    LockedDependency read_dependency(const Node& item) {
        TableReader reader(item, origin_, "a dependency in the lock");
        LockedDependency dependency{reader.required_string("repo_id"), read_pin(reader)};
        reader.finish();
        if (!is_repository_id(dependency.repo_id) || dependency.pin.empty()) {
            reader.fail(item, "a dependency is a repository with a version or revision");
        }
        return dependency;
    }

    static constexpr std::int64_t largest_file = std::int64_t{1} << 40;

    LockedFile read_file(const Node& item) {
        TableReader reader(item, origin_, "a file in the lock");
        LockedFile file;
        file.path = reader.required_string("path");
        if (!cache::is_safe_path(file.path) || file.path.size() > longest_path) {
            reader.fail(item, "the path leaves the folder of the build");
        }
        reader.require("size");
        file.size = static_cast<std::uint64_t>(*reader.integer("size", 0, largest_file));
        if (const Node* git = reader.find("git")) {
            file.git_sha1 = hash(reader, *git, "git", 40);
        }
        if (const Node* sha256 = reader.find("sha256")) {
            file.sha256 = hash(reader, *sha256, "sha256", 64);
        }
        reader.finish();
        if (file.git_sha1.empty() && file.sha256.empty()) {
            reader.fail(item, "the file has no hash");
        }
        return file;
    }

    static std::string hash(TableReader& reader, const Node& value, std::string_view key,
                            std::size_t digits) {
        std::string text = reader.as_string(value, key);
        if (!base::is_hex(text, digits)) {
            reader.fail(value, "\"" + std::string(key) + "\" is not " + std::to_string(digits) +
                                   " hexadecimal digits in lower case");
        }
        return text;
    }

    std::string origin_;
};

}  // namespace

Lock parse_lock(std::string_view text, std::string_view origin) {
    refuse_conflicts(text, origin);
    return LockReader(origin).read(base::parse_toml_document(text, origin));
}

Lock read_lock(const fs::path& file) {
    const std::string text = base::read_file(file, "lock", largest_lock);
    const std::string origin = base::display_path(file);
    const auto first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string::npos && (text[first] == '[' || text[first] == '{') &&
                      text.compare(first, 2, "[[") != 0;
    refuse_conflicts(text, origin);
    try {
        Lock lock = json ? parse_kernels_lock(text, origin) : parse_lock(text, origin);
        lock.file = file;
        return lock;
    } catch (const Error& error) {
        ErrorDetails details = error.details();
        if (details.hint.empty()) {
            details.hint = "put back the lock that was there, or remove it and run twinkle lock";
        }
        throw Error(error.code(), std::move(details));
    }
}

}  // namespace twinkle::project
