#pragma once
// A Hub that has files and supports ranges, with faults that a test injects.

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../base/temp_folder.h"
#include "cache/layout.h"
#include "cache/tree_file.h"
#include "fake_clock.h"
#include "hub/api.h"
#include "hub/download.h"
#include "loopback_server.h"

namespace twinkle::test {

inline const std::string file_repo = "org/name";
inline const std::string file_commit(40, 'a');

inline std::string bytes_of(std::size_t size, unsigned seed = 1) {
    std::string bytes(size, '\0');
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ull + 1;
    for (char& byte : bytes) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        byte = static_cast<char>(state >> 56);
    }
    return bytes;
}

inline cache::TreeFile listed(const std::string& path, const std::string& bytes, bool lfs) {
    cache::TreeFile file;
    file.path = path;
    file.size = bytes.size();
    file.blob_id = cache::hash_bytes(bytes, cache::HashKind::git_sha1);
    if (lfs) {
        file.lfs_sha256 = cache::hash_bytes(bytes, cache::HashKind::sha256);
    }
    return file;
}

// An answer that a fault can change: its parts before they are put together.
struct FileAnswer {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    std::optional<std::size_t> cut;  // the connection ends after so many bytes of the body
};

class FileHub {
public:
    // Called with every request for a file; may change the answer.
    using Fault = std::function<void(const Received&, FileAnswer&)>;

    explicit FileHub(Fault fault = {})
        : fault_(std::move(fault)),
          server([this](const Received& received) { return serve(received); }) {}

    const cache::TreeFile& add(const std::string& path, std::string bytes, bool lfs = false) {
        item.files.push_back(listed(path, bytes, lfs));
        contents_["/kernels/" + file_repo + "/resolve/" + file_commit + "/" + path] = {
            std::move(bytes), item.files.back().etag()};
        return item.files.back();
    }

    std::uint64_t bytes_served() const { return served_; }
    std::size_t requests() const { return server.requests().size(); }

    hub::DownloadItem item{file_repo, file_commit, {}};

private:
    struct Content {
        std::string bytes, etag;
    };

    Answer serve(const Received& received) {
        const auto found = contents_.find(received.target);
        if (found == contents_.end()) {
            return answer(404, "", {{"X-Error-Code", "EntryNotFound"}});
        }
        const std::string& bytes = found->second.bytes;
        FileAnswer reply;
        reply.headers = {{"ETag", "\"" + found->second.etag + "\""},
                         {"X-Repo-Commit", file_commit}};
        const auto range = received.headers.find("range");
        if (range == received.headers.end()) {
            reply.body = bytes;
        } else {
            const auto dash = range->second.find('-');
            const std::size_t first = std::stoull(range->second.substr(6, dash - 6));
            const std::string end = range->second.substr(dash + 1);
            const std::size_t last =
                end.empty() ? bytes.size() - 1
                            : std::min<std::size_t>(std::stoull(end), bytes.size() - 1);
            reply.status = 206;
            reply.body = bytes.substr(first, last - first + 1);
            reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                            std::to_string(last) + "/" +
                                                            std::to_string(bytes.size()));
        }
        if (fault_) {
            fault_(received, reply);
        }
        Answer whole = answer(reply.status, reply.body, reply.headers);
        if (reply.cut) {
            whole.bytes.resize(whole.bytes.size() - reply.body.size() + *reply.cut);
            whole.close = true;
        }
        served_ += reply.cut.value_or(reply.body.size());
        return whole;
    }

    Fault fault_;
    std::map<std::string, Content> contents_;
    std::atomic<std::uint64_t> served_{0};

public:
    LoopbackServer server;
};

// A cache and a program that downloads into it.
struct Downloader : hub::DownloadObserver {
    explicit Downloader(const FileHub& from, const std::filesystem::path& cache_folder,
                        cache::CacheOptions options = {}, bool offline = false)
        : cache(cache_folder, options),
          hub(settings(from, offline), {.clock = &clock, .stop = &stop}) {}

    static hub::Settings settings(const FileHub& from, bool offline) {
        hub::Settings settings;
        settings.endpoint = from.server.origin();
        settings.token = hub::Secret("hf_the_token_of_a_test");
        settings.offline = offline;
        settings.etag_timeout = settings.download_timeout = std::chrono::seconds(5);
        return settings;
    }

    hub::DownloadResult get(const hub::DownloadItem& item) { return get(std::vector{item}); }
    hub::DownloadResult get(const std::vector<hub::DownloadItem>& items) {
        return hub::download(hub, cache, items, *this, stop);
    }
    std::string shown(const std::string& path, const std::string& commit = file_commit) const {
        std::ifstream in(cache.file(file_repo, commit, path), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    bool shows(const std::string& path) const {
        return std::filesystem::exists(
            std::filesystem::symlink_status(cache.file(file_repo, file_commit, path)));
    }
    std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(cache.blobs(file_repo)),
                          std::filesystem::directory_iterator()));
    }

    void file_progress(const hub::DownloadFile&, std::uint64_t done) override {
        if (done >= give_up_at) {
            throw Error(ErrorCode::failed, {.what = "enough", .where = "", .why = "", .hint = ""});
        }
        if (done >= stop_at) {
            stop = true;
        }
    }

    std::uint64_t give_up_at = ~0ull;
    std::uint64_t stop_at = ~0ull;
    FakeClock clock;
    std::atomic<bool> stop{false};
    cache::Cache cache;
    hub::Hub hub;
};

}  // namespace twinkle::test
