#include "hub/download.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "base/file.h"
#include "cache/blob_store.h"
#include "hub/blob_download.h"
#include "hub/download_plan.h"
#include "twinkle/error.h"

namespace twinkle::hub {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Each holds a lock and an open file. There are more than the Hub serves at once, so that it never
// idles; but at the start the speed is unknown, and files held here are not open to other
// processes.
constexpr std::size_t first_active = 24;
constexpr std::size_t most_active = 64;
// More would only slow each of them down.
constexpr std::size_t most_large = 4;
// Intervals for polling blobs that others write: longer while nothing changes, since many processes
// may be waiting. A lock is tried less often than its blob is looked for: it is free without a blob
// only if its holder has failed.
constexpr auto shortest_poll = milliseconds(50);
constexpr auto longest_poll = milliseconds(400);
constexpr auto lock_interval = milliseconds(500);
constexpr std::size_t polled_at_once = 1024;
// From this size on it pays to look for partial files that appeared after the start.
constexpr std::uint64_t worth_resuming = 1u << 20;
constexpr auto worth_mentioning = std::chrono::seconds(1);
constexpr int most_rounds = 3;

// Functions that other threads schedule on the download's thread.
class Mailbox {
public:
    void put(std::function<void()> function) {
        {
            const std::lock_guard lock(mutex_);
            functions_.push_back(std::move(function));
        }
        filled_.notify_one();
    }
    void empty(milliseconds patience) {
        std::vector<std::function<void()>> functions;
        {
            std::unique_lock lock(mutex_);
            filled_.wait_for(lock, patience, [&] { return !functions_.empty(); });
            functions.swap(functions_);
        }
        for (const auto& function : functions) {
            function();
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable filled_;
    std::vector<std::function<void()>> functions_;
};

// Decides which blob is next, who may write it, and who else does.
class Queue {
public:
    Queue(Hub& hub, const cache::Cache& cache, DownloadObserver& observer,
          const std::atomic<bool>& stop, DownloadResult& result)
        : context_{hub, cache, observer, stop, result, hasher_, {}, {}},
          mailbox_(std::make_shared<Mailbox>()) {
        context_.post = [mailbox = mailbox_, &http = hub.http()](std::function<void()> function) {
            mailbox->put(std::move(function));
            http.post([mailbox] { mailbox->empty(milliseconds(0)); });
        };
        context_.tick = [this] { poll(); };
    }

    void run(std::vector<WantedBlob> blobs) {
        prepare(blobs);
        for (WantedBlob& blob : blobs) {
            (blob.size > BlobDownload::large ? large_ : small_).push_back(std::move(blob));
        }
        fill();
        for (;;) {
            context_.hub.http().run();
            if (active_.empty() && waiting_.empty()) {
                return;  // and nothing is left that could have started
            }
            if (context_.stop) {
                throw_interrupted();
            }
            // No transfer is running: hashes are pending, or others hold the locks.
            mailbox_->empty(shortest_poll);
            poll();
        }
    }

private:
    struct Waiting {
        WantedBlob blob;
        SteadyClock::time_point since = SteadyClock::now();
        SteadyClock::time_point tried = since;
        bool mentioned = false;
    };

    void prepare(const std::vector<WantedBlob>& blobs) {
        for (const WantedBlob& blob : blobs) {
            if (!leftovers_.contains(blob.repo_id)) {
                cache::prepare_repository(context_.cache, blob.repo_id);
                leftovers_[blob.repo_id] = cache::list_partial_files(context_.cache, blob.repo_id);
            }
        }
    }

    bool has_room(bool large) const {
        return active_.size() < std::min(most_active, first_active + finished_) &&
               (!large || active_large_ < most_large);
    }

    // A blob that is complete at once ends within start(): the loop continues instead of recursing.
    void fill() {
        if (filling_) {
            return;
        }
        filling_ = true;
        for (auto* queue : {&large_, &small_}) {
            while (!queue->empty() && has_room(queue == &large_)) {
                WantedBlob blob = std::move(queue->front());
                queue->pop_front();
                if (!start(blob)) {
                    waiting_.push_back({std::move(blob)});
                }
            }
        }
        filling_ = false;
    }

    // False: another process writes it.
    bool start(const WantedBlob& blob) {
        auto lock = cache::BlobLock::try_lock(context_.cache, blob.repo_id, blob.etag);
        if (!lock) {
            return false;
        }
        if (take_from_cache(blob)) {
            return true;
        }
        const bool large = blob.size > BlobDownload::large;
        const std::string key = blob.repo_id + "/" + blob.etag;
        const auto download =
            std::make_shared<BlobDownload>(context_, blob, std::move(*lock), [this, key, large] {
                active_.erase(key);
                ++finished_;
                active_large_ -= large ? 1 : 0;
                fill();
            });
        active_.emplace(key, download);
        active_large_ += large ? 1 : 0;
        download->start(leftovers_of(blob));
        return true;
    }

    std::vector<std::filesystem::path> leftovers_of(const WantedBlob& blob) {
        auto& known = leftovers_[blob.repo_id];
        if (blob.size >= worth_resuming) {
            known = cache::list_partial_files(context_.cache, blob.repo_id);
        }
        const auto found = known.find(blob.etag);
        return found == known.end() ? std::vector<std::filesystem::path>() : found->second;
    }

    bool take_from_cache(const WantedBlob& blob) {
        if (!cache::has_blob(context_.cache, blob.repo_id, blob.etag, blob.size) ||
            !link_places(context_, blob)) {
            return false;
        }
        context_.observer.file_done(blob.name(), true);
        return true;
    }

    // Looks for blobs that others have finished, or abandoned.
    void poll() {
        const auto now = SteadyClock::now();
        if (now - polled_ < poll_interval_) {
            return;
        }
        polled_ = now;
        const std::size_t before = waiting_.size();
        for (std::size_t left = std::min(before, polled_at_once); left > 0; --left) {
            Waiting entry = std::move(waiting_.front());
            waiting_.pop_front();
            if (!settle(entry, now)) {
                waiting_.push_back(std::move(entry));
            }
        }
        const bool changed = waiting_.size() != before;
        poll_interval_ = changed ? shortest_poll : std::min(2 * poll_interval_, longest_poll);
        fill();
    }

    // True: nothing to wait for any more.
    bool settle(Waiting& entry, SteadyClock::time_point now) {
        if (take_from_cache(entry.blob)) {
            return true;
        }
        if (now - entry.tried > lock_interval && has_room(entry.blob.size > BlobDownload::large)) {
            entry.tried = now;
            if (start(entry.blob)) {
                return true;
            }
        }
        if (!entry.mentioned && now - entry.since > worth_mentioning) {
            entry.mentioned = true;
            context_.observer.file_waiting(
                entry.blob.name(),
                cache::lock_holder(context_.cache, entry.blob.repo_id, entry.blob.etag));
        }
        return false;
    }

    FileHasher hasher_;
    DownloadContext context_;
    std::shared_ptr<Mailbox> mailbox_;
    std::map<std::string, cache::PartialFiles> leftovers_;
    std::deque<WantedBlob> large_, small_;
    std::deque<Waiting> waiting_;
    std::map<std::string, std::shared_ptr<BlobDownload>> active_;
    std::size_t active_large_ = 0;
    std::size_t finished_ = 0;
    bool filling_ = false;
    SteadyClock::time_point polled_ = SteadyClock::now();
    milliseconds poll_interval_ = shortest_poll;
};

void link_present(const cache::Cache& cache, const std::vector<WantedBlob>& blobs) {
    for (const WantedBlob& blob : blobs) {
        for (const auto& place : blob.places) {
            // If it is gone by now, the next round fetches it.
            cache::link_into_snapshot(cache, blob.repo_id, place.commit, place.file);
        }
    }
}

}  // namespace

DownloadResult download(Hub& hub, const cache::Cache& cache, std::span<const DownloadItem> items,
                        DownloadObserver& observer, const std::atomic<bool>& stop) {
    DownloadResult result;
    // A second round is needed only if someone removes blobs at the same time.
    for (int round = 0; round < most_rounds; ++round) {
        DownloadPlan plan = plan_download(cache, items);
        if (round == 0) {
            result.files_present = plan.present;
            std::uint64_t bytes = 0;
            for (const WantedBlob& blob : plan.blobs) {
                bytes += blob.size;
            }
            observer.planned(plan.blobs.size(), bytes);
        }
        if (plan.blobs.empty() && plan.to_link.empty()) {
            return result;
        }
        link_present(cache, plan.to_link);
        if (!plan.blobs.empty()) {
            hub.require_online(plan.blobs.front().repo_id);
            Queue(hub, cache, observer, stop, result).run(std::move(plan.blobs));
        }
    }
    const DownloadPlan plan = plan_download(cache, items);
    if (!plan.blobs.empty() || !plan.to_link.empty()) {
        throw Error(ErrorCode::failed,
                    {.what = "files disappear from the cache while they are fetched",
                     .where = base::display_path(cache.root()),
                     .why = "another process removes them",
                     .hint = "fetch again when it has ended"});
    }
    return result;
}

}  // namespace twinkle::hub
