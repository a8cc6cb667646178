#pragma once
// The Hub's API for kernel repositories. All answers are checked before use: sizes, names, hashes,
// paths, pages.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/tree_file.h"
#include "hub/http.h"
#include "hub/kernel_status.h"
#include "hub/settings.h"

namespace twinkle::hub {

struct Ref {
    std::string name;    // "v1"
    std::string ref;     // "refs/heads/v1"
    std::string commit;  // 40 or 64 hex digits
};

struct Refs {
    std::vector<Ref> branches, tags;
};

// One repository at one revision, and a folder in it ("" is its root).
struct TreeRequest {
    std::string repo_id;
    std::string revision;
    std::string folder;
    bool recursive = true;
};

struct Tree {
    std::vector<cache::TreeFile> files;  // sorted by path
    std::vector<std::string> folders;    // paths from the root of the repository, sorted
};

struct Revision {
    std::string repo_id, revision;
};

struct FileRequest {
    std::string repo_id, commit;
    cache::TreeFile file;
};

// Errors of all calls: not_found (repository, revision, folder or file; private ones look the same
// without a token), unreachable (network, token, gated, disabled, offline), malformed (an
// impossible name), verification (a file with another hash), interrupted. The plural forms send all
// queries at once and answer in their order; the first error counts.
class Hub {
public:
    explicit Hub(Settings settings, HttpOptions options = {});

    const Settings& settings() const { return settings_; }
    Http& http() { return http_; }
    std::uint64_t requests() const { return http_.requests(); }  // sent so far

    Refs refs(const std::string& repo_id);
    std::vector<Refs> refs(std::span<const std::string> repo_ids);

    // The commit to which a branch, tag or commit resolves.
    std::string commit(const std::string& repo_id, const std::string& revision = "main");
    std::vector<std::string> commits(std::span<const Revision> revisions);

    std::vector<cache::TreeFile> tree(const std::string& repo_id, const std::string& commit,
                                      const std::string& folder = "", bool recursive = true);
    std::vector<Tree> trees(std::span<const TreeRequest> requests);

    // A small file, whole, with size and hash checked.
    std::string read_file(const std::string& repo_id, const std::string& commit,
                          const cache::TreeFile& file, std::size_t limit = 1u << 20);
    std::vector<std::string> read_files(const std::string& repo_id, const std::string& commit,
                                        std::span<const cache::TreeFile> files,
                                        std::size_t limit = 1u << 20);
    std::vector<std::string> read_files(std::span<const FileRequest> files,
                                        std::size_t limit = 1u << 20);

    std::string file_url(const std::string& repo_id, const std::string& revision,
                         const std::string& path) const;
    // The request that downloads a file: uncompressed, counted as a download.
    Request file_request(const std::string& repo_id, const std::string& revision,
                         const std::string& path) const;
    // The error for the user, for an outcome of such a request that is not `done`.
    Error file_error(const std::string& repo_id, const std::string& revision,
                     const std::string& path, const Outcome& outcome) const;

    // Whether the Hub vouches for each publisher. Users and unknown names: no.
    std::vector<bool> are_trusted_publishers(std::span<const std::string> orgs);

    // Where kernel-status.toml at `revision` redirects this repository. One hop: the destination is
    // not queried in turn.
    std::optional<Redirect> redirect(const std::string& repo_id,
                                     const std::string& revision = "main");

    std::vector<std::optional<Redirect>> redirects(std::span<const Revision> revisions);

    // Throws Error(unreachable) when offline. Every call above starts with it.
    void require_online(const std::string& repo_id) const;

private:
    std::string api_url(const std::string& repo_id) const;

    Settings settings_;
    Http http_;
};

}  // namespace twinkle::hub
