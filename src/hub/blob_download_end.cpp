// How a download ends: the hash, a second attempt, moving the blob into place.

#include "base/text.h"
#include "cache/blob_store.h"
#include "hub/blob_download.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::hub {
namespace {

// Hashed on the spot, between two packets: a thread would cost more.
constexpr std::uint64_t small = 1u << 20;

}  // namespace

void throw_interrupted() {
    throw Error(ErrorCode::interrupted,
                {.what = "interrupted",
                 .where = "",
                 .why = "",
                 .hint = "what was fetched is kept; the next fetch goes on from there"});
}

bool link_places(const DownloadContext& context, const WantedBlob& blob) {
    return std::all_of(blob.places.begin(), blob.places.end(), [&](const auto& place) {
        return cache::link_into_snapshot(context.cache, blob.repo_id, place.commit, place.file);
    });
}

// Reads once what is there already.
void BlobDownload::begin_hash() {
    if (blob_.size > small) {
        // The hasher's thread must not be the one that destroys this object.
        const auto report = [weak = weak_from_this(), generation = generation_,
                             post = context_.post](const std::string& hex,
                                                   std::exception_ptr error) {
            post([weak, generation, hex, error] {
                if (const auto self = weak.lock()) {
                    self->on_hash(generation, hex, error);
                }
            });
        };
        hash_task_ = context_.hasher.add(*partial_, blob_.hash.kind, report);
        context_.hasher.advance(hash_task_, partial_->front());
        return;
    }
    small_hasher_.emplace(blob_.hash.kind, blob_.size);
    std::string prefix(partial_->front(), '\0');
    partial_->read(0, prefix.data(), prefix.size());
    small_hasher_->update(prefix);
}

void BlobDownload::start_over() {
    ++generation_;
    if (hash_task_) {
        context_.hasher.drop(hash_task_);
        hash_task_.reset();
    }
    small_hasher_.reset();
    resumed_ = 0;
    partial_->restart();
    begin_hash();
    context_.observer.file_progress(name_, 0);
}

void BlobDownload::on_hash(unsigned generation, const std::string& hex, std::exception_ptr error) {
    if (generation != generation_) {
        return;
    }
    hash_task_.reset();
    if (error) {
        std::rethrow_exception(error);
    }
    check_hash(hex);
}

void BlobDownload::check_hash(const std::string& hex) {
    if (hex == blob_.hash.hex) {
        finish();
        return;
    }
    const char* const kind =
        blob_.hash.kind == cache::HashKind::sha256 ? "SHA-256 " : "git blob id ";
    flaw_ = Flaw{kind + blob_.hash.hex, kind + hex};
    begin_again();
}

std::string BlobDownload::where() const {
    return base::printable(name_.repo_id + "@" + name_.commit + "/" + name_.path);
}

// Retries once: the cause may be resumed bytes, or a proxy. A second failure is final.
void BlobDownload::begin_again() {
    const Flaw flaw = *std::exchange(flaw_, std::nullopt);
    stop_streams(nullptr);
    if (again_) {
        partial_->discard();
        throw Error(ErrorCode::verification,
                    {.what = "the Hub sent something else than the file of this commit",
                     .where = where(),
                     .why = "expected " + flaw.expected + ", got " + flaw.got +
                            " (asked twice, the second time from the start)",
                     .hint = "nothing of it was kept; if a proxy or mirror is between here and "
                             "the Hub, look there first"});
    }
    again_ = true;
    probed_ = false;
    direct_url_.clear();
    start_over();
    fetch(0);
}

void BlobDownload::finish() {
    partial_->finish();
    ++context_.result.files_downloaded;
    context_.result.bytes_resumed += resumed_;
    link_places(context_, blob_);
    context_.observer.file_done(name_, false);
    const auto finished = std::move(finished_);
    finished();
}

}  // namespace twinkle::hub
