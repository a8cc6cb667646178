#pragma once
// One blob on its way from the Hub into the cache: its requests, its partial file, its hash.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/blob_lock.h"
#include "cache/partial_file.h"
#include "hub/download_answer.h"
#include "hub/download_plan.h"
#include "hub/file_hasher.h"

namespace twinkle::hub {

// State that all blobs of a download share.
struct DownloadContext {
    Hub& hub;
    const cache::Cache& cache;
    DownloadObserver& observer;
    const std::atomic<bool>& stop;
    DownloadResult& result;
    FileHasher& hasher;
    // Schedules the function on the download's thread.
    std::function<void(std::function<void()>)> post;
    std::function<void()> tick;  // called often while bytes arrive
};

// Throws Error(interrupted), worded for the user.
[[noreturn]] void throw_interrupted();
// The blob exists: links all its files to it. False: it is gone again.
bool link_places(const DownloadContext& context, const WantedBlob& blob);

class BlobDownload : public std::enable_shared_from_this<BlobDownload> {
public:
    // Files above this size are fetched in ranges and hashed in a thread.
    static constexpr std::uint64_t large = 64u << 20;

    BlobDownload(DownloadContext& context, WantedBlob blob, cache::BlobLock lock,
                 std::function<void()> finished);
    ~BlobDownload();
    BlobDownload(const BlobDownload&) = delete;
    BlobDownload& operator=(const BlobDownload&) = delete;

    // Adopts an earlier attempt's partial file and requests the rest.
    void start(const std::vector<std::filesystem::path>& leftovers);

private:
    using Time = std::chrono::steady_clock::time_point;

    // One request and its retries.
    struct Stream {
        std::size_t segment = 0;
        unsigned generation = 0;  // another than that of the blob: its bytes are not wanted
        bool ranged = false;      // the request says a range
        bool direct = false;      // asks where the Hub had sent us before
        TransferId id = 0;
    };
    using StreamPtr = std::shared_ptr<Stream>;

    void begin_hash();
    void fetch_more();
    void fetch(std::size_t segment);
    void set_range(const Stream& stream, Request& request) const;
    unsigned most_streams() const;

    Flow on_head(Stream& stream, const Head& head);
    Flow on_data(const Stream& stream, std::string_view bytes);
    bool on_retry(Stream& stream, Request& request);
    void on_done(const StreamPtr& stream, const Outcome& outcome);
    void on_incomplete(const StreamPtr& stream, const Outcome& outcome);
    void on_hash(unsigned generation, const std::string& hex, std::exception_ptr error);

    void take_whole(Stream& stream);
    void start_over();
    void begin_again();
    void check_hash(const std::string& hex);
    void finish();
    void stop_streams(const Stream* but);
    Request hub_request() const;
    std::string where() const;

    DownloadContext& context_;
    const WantedBlob blob_;
    const DownloadFile name_;
    cache::BlobLock lock_;
    std::function<void()> finished_;
    std::unique_ptr<cache::PartialFile> partial_;
    std::optional<cache::ContentHasher> small_hasher_;
    FileHasher::Handle hash_task_;
    std::vector<StreamPtr> streams_;
    std::optional<Flaw> flaw_;
    std::string direct_url_;
    unsigned direct_refused_ = 0;
    unsigned short_answers_ = 0;
    unsigned generation_ = 0;
    bool again_ = false;   // the second and last attempt at right bytes
    bool probed_ = false;  // the Hub has answered with a range
    std::uint64_t resumed_ = 0;
    std::uint64_t received_ = 0;
    Time first_byte_{};
    Time refreshed_{};
    Time widened_{};  // when it was last asked whether more streams are worth it
};

}  // namespace twinkle::hub
