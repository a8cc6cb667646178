#pragma once
// twinkle.lock: what was decided, for every machine. Which commit each request means, and the size
// and hash of every file of every build, so that a changed byte anywhere is refused.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/tree_file.h"
#include "kernel/metadata.h"
#include "project/manifest.h"
#include "project/pin.h"

namespace twinkle::project {

// A hash is empty where it is not known; at least one of the two is there.
struct LockedFile {
    std::string path;  // POSIX, below the folder of the build
    std::uint64_t size = 0;
    std::string git_sha1;  // blob id; none for files in LFS and for local kernels
    std::string sha256;    // of LFS files; of others where the digest of the build has it

    bool operator==(const LockedFile&) const = default;
};

struct LockedDependency {
    std::string repo_id;
    Pin pin;

    std::string text() const { return repo_id + "@" + pin.text(); }
    bool operator==(const LockedDependency&) const = default;
};

struct LockedVariant {
    std::string name;  // the folder below build/; "." for a local kernel that is one build
    std::string metadata_sha256;     // empty for a plain Python package
    std::vector<std::string> archs;  // of its metadata: builds are chosen without fetching it
    std::vector<LockedDependency> dependencies;  // sorted
    std::vector<LockedFile> files;               // sorted by path, all of them, without bytecode
    // The older lock of Python's `kernels`, which has no files, has "sha256-…" over paths and
    // hashes.
    std::string concat_hash;

    std::uint64_t size() const;
    const LockedFile* find(std::string_view path) const;
    bool operator==(const LockedVariant&) const = default;
};

// One request and what it means. Each stands for itself: two requests that mean the same commit are
// two entries.
struct LockedKernel {
    std::string name;  // "org/name"; of a local kernel its key in the manifest
    Pin pin;           // the request; empty for local kernels, and where the lock does not say
    std::string ref;   // what the pin was taken to mean: "v1", "v0.1.0", "main"
    std::string commit;
    std::string path;                     // of a local kernel: its folder as seen from the manifest
    std::vector<LockedVariant> variants;  // sorted by name; empty: the lock has no hashes
    std::string moved_to{};               // the repository that has it now; empty: `name` itself

    // The repository that its commit is in.
    const std::string& home() const { return moved_to.empty() ? name : moved_to; }
    bool is_local() const { return commit.empty(); }
    std::string text() const { return is_local() ? name : name + "@" + pin.text(); }
    const LockedVariant* find(std::string_view variant) const;
    std::vector<LockedDependency> dependencies() const;  // of all variants, sorted, each once
    bool operator==(const LockedKernel&) const = default;
};

bool comes_before(const LockedKernel& a, const LockedKernel& b);  // the order of a lock

// Which file it was read from. The locks of Python's `kernels` pin commits only.
enum class LockFormat { twinkle, kernels, kernels_old };

struct Lock {
    LockFormat format = LockFormat::twinkle;
    std::filesystem::path file = {};  // where it was read from
    std::vector<LockedKernel> kernels =
        {};  // Hub kernels by repository and pin, and local ones by name

    const LockedKernel* find(std::string_view repo_id, const Pin& pin) const;
    const LockedKernel* find_local(std::string_view name) const;
    // Puts it in its place, instead of the one with the same name and pin.
    void set(LockedKernel kernel);
    // The kernel with all that its builds need, as far as the lock has them; each once, the kernel
    // first. With a variant: only what that one needs, and of the others everything.
    std::vector<const LockedKernel*> tree(const LockedKernel& root,
                                          std::string_view variant = "") const;
};

LockedDependency locked_dependency(const kernel::KernelDependency& dependency);

// The build `name` of a commit: its files out of the list of all files, and what its metadata.json
// says. `tree` has blob ids and LFS hashes; the digest gives the SHA-256 of small files.
// Throws Error(malformed) for metadata that cannot be read.
LockedVariant lock_variant(std::string_view name, std::span<const cache::TreeFile> tree,
                           std::string_view metadata_json, std::string_view origin);

// Locks a kernel in a folder, hashing everything in it. `root` is the folder of the manifest.
LockedKernel lock_local_kernel(const KernelRequest& request, const std::filesystem::path& root);

// Strict: every error has file, line and column. Throws Error(malformed), for conflict markers too;
// Error(out_of_date) for what git merged out of two different states.
Lock parse_lock(std::string_view text, std::string_view origin);
// twinkle.lock or either format of kernels.lock, by what is in it. Missing: Error(not_found).
Lock read_lock(const std::filesystem::path& file);

// Sorted and stable: equal locks give equal bytes.
std::string lock_toml(const Lock& lock);

// Every reason why the lock does not fit the manifest; empty: it fits. One line each.
std::vector<std::string> lock_mismatches(const Manifest& manifest, const Lock& lock);

// The local kernels of which a file is not as it was locked. Reads all of them.
std::vector<std::string> local_mismatches(const Manifest& manifest, const Lock& lock);

}  // namespace twinkle::project
