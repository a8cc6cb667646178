#include "hub/blob_download.h"

#include <algorithm>

#include "hub/headers.h"
#include "hub/url.h"

namespace twinkle::hub {
namespace {

constexpr std::uint64_t shortest_segment = 32u << 20;
constexpr std::uint64_t longest_segment = 256u << 20;
constexpr std::uint64_t wanted_segments = 256;
// Several streams pay off where one is slow, because each connection gets its share of a distant
// server's bandwidth. Two fill the line to a near server, so that one is never waited for.
constexpr unsigned few_streams = 2;
constexpr unsigned many_streams = 8;
constexpr double fast = 300e6;  // bytes a second
constexpr auto measured_for = std::chrono::milliseconds(250);
constexpr auto refresh_interval = std::chrono::seconds(60);
constexpr unsigned most_short_answers = 100;
constexpr unsigned most_direct_refusals = 3;

std::uint64_t segment_size(std::uint64_t size) {
    return size <= BlobDownload::large
               ? 0
               : std::clamp(size / wanted_segments, shortest_segment, longest_segment);
}

}  // namespace

BlobDownload::BlobDownload(DownloadContext& context, WantedBlob blob, cache::BlobLock lock,
                           std::function<void()> finished)
    : context_(context),
      blob_(std::move(blob)),
      name_(blob_.name()),
      lock_(std::move(lock)),
      finished_(std::move(finished)) {}

BlobDownload::~BlobDownload() {
    if (hash_task_) {
        context_.hasher.drop(hash_task_);
    }
    stop_streams(nullptr);
}

void BlobDownload::start(const std::vector<std::filesystem::path>& leftovers) {
    partial_ = std::make_unique<cache::PartialFile>(
        context_.cache, blob_.repo_id, blob_.etag, blob_.size, segment_size(blob_.size), leftovers);
    resumed_ = partial_->resumed();
    context_.observer.file_started(name_, resumed_);
    refreshed_ = std::chrono::steady_clock::now();
    begin_hash();
    if (partial_->written() < blob_.size) {
        fetch_more();
    } else if (small_hasher_) {
        check_hash(small_hasher_->finish_hex());
    }
}

unsigned BlobDownload::most_streams() const {
    if (!probed_) {
        return 1;  // the first answer tells whether ranges are to be had, and where
    }
    const auto elapsed = std::chrono::steady_clock::now() - first_byte_;
    if (received_ == 0 || elapsed < measured_for) {
        return few_streams;
    }
    const double rate =
        static_cast<double>(received_) / std::chrono::duration<double>(elapsed).count();
    return rate > fast ? few_streams : many_streams;
}

void BlobDownload::fetch_more() {
    const auto& segments = partial_->segments();
    const unsigned most = most_streams();
    for (std::size_t i = 0; i < segments.size() && streams_.size() < most; ++i) {
        const bool taken = std::any_of(streams_.begin(), streams_.end(),
                                       [&](const StreamPtr& s) { return s->segment == i; });
        if (!segments[i].complete() && !taken) {
            fetch(i);
        }
    }
}

Request BlobDownload::hub_request() const {
    return context_.hub.file_request(name_.repo_id, name_.commit, name_.path);
}

void BlobDownload::set_range(const Stream& stream, Request& request) const {
    const cache::Segment& segment = partial_->segments()[stream.segment];
    request.range.reset();
    if (segment.end != blob_.size) {
        request.range = ByteRange{segment.next(), segment.end - 1};
    } else if (segment.next() != 0) {
        request.range = ByteRange{segment.next(), std::nullopt};
    }
}

void BlobDownload::fetch(std::size_t segment) {
    auto stream = std::make_shared<Stream>();
    stream->segment = segment;
    stream->generation = generation_;
    Transfer transfer;
    transfer.request = hub_request();
    if (!direct_url_.empty()) {
        transfer.request.url = direct_url_;
        stream->direct = true;
    }
    set_range(*stream, transfer.request);
    stream->ranged = transfer.request.range.has_value();
    // A transfer may outlive this object if an error ends everything.
    const std::weak_ptr<BlobDownload> weak = weak_from_this();
    transfer.on_head = [weak, stream](const Head& head) {
        const auto self = weak.lock();
        return self ? self->on_head(*stream, head) : Flow::stop;
    };
    transfer.on_data = [weak, stream](std::string_view bytes) {
        const auto self = weak.lock();
        return self ? self->on_data(*stream, bytes) : Flow::stop;
    };
    transfer.on_retry = [weak, stream](Request& request) {
        const auto self = weak.lock();
        return self && self->on_retry(*stream, request);
    };
    transfer.on_done = [weak, stream](const Outcome& outcome) {
        if (const auto self = weak.lock()) {
            self->on_done(stream, outcome);
        }
    };
    stream->id = context_.hub.http().start(std::move(transfer));
    streams_.push_back(std::move(stream));
}

Flow BlobDownload::on_head(Stream& stream, const Head& head) {
    if (stream.generation != generation_ || flaw_) {
        return Flow::stop;
    }
    flaw_ = identity_flaw(head, name_.commit, blob_.etag);
    if (!flaw_) {
        flaw_ = size_flaw(head, stream.ranged, partial_->segments()[stream.segment], blob_.size);
    }
    if (flaw_) {
        return Flow::stop;
    }
    if (head.status == 200 && stream.ranged) {
        take_whole(stream);
    } else if (stream.ranged && !probed_) {
        probed_ = true;
        const Request request = hub_request();
        if (origin_of(head.url) != origin_of(request.url) &&
            direct_refused_ < most_direct_refusals) {
            direct_url_ = head.url;
        }
        fetch_more();
    }
    return Flow::more;
}

// The server does not support ranges: its answer is the whole file, and the only one needed.
void BlobDownload::take_whole(Stream& stream) {
    stop_streams(&stream);
    start_over();
    stream.segment = 0;
    stream.generation = generation_;
    stream.ranged = false;
}

void BlobDownload::stop_streams(const Stream* but) {
    std::erase_if(streams_, [&](const StreamPtr& stream) {
        if (stream.get() == but) {
            return false;
        }
        context_.hub.http().cancel(stream->id);
        return true;
    });
}

Flow BlobDownload::on_data(const Stream& stream, std::string_view bytes) {
    if (context_.stop) {
        throw_interrupted();
    }
    if (stream.generation != generation_ || flaw_) {
        return Flow::stop;
    }
    const cache::Segment& segment = partial_->segments()[stream.segment];
    if (bytes.size() > segment.end - segment.next()) {
        flaw_ = Flaw{bytes_text(segment.end - segment.begin), "more"};
        return Flow::stop;
    }
    const auto now = std::chrono::steady_clock::now();
    if (received_ == 0) {
        first_byte_ = now;
    }
    if (now - refreshed_ > refresh_interval) {
        refreshed_ = now;
        lock_.refresh();
    }
    partial_->append(stream.segment, bytes);
    received_ += bytes.size();
    context_.result.bytes_downloaded += bytes.size();
    if (small_hasher_) {
        small_hasher_->update(bytes);
    } else {
        context_.hasher.advance(hash_task_, partial_->front());
    }
    // Adds streams as soon as one proves slow, not when its segment ends.
    if (probed_ && now - widened_ > measured_for) {
        widened_ = now;
        fetch_more();
    }
    context_.observer.file_progress(name_, partial_->written());
    context_.tick();
    return Flow::more;
}

bool BlobDownload::on_retry(Stream& stream, Request& request) {
    if (stream.generation != generation_ || flaw_ ||
        partial_->segments()[stream.segment].complete()) {
        return false;
    }
    request = hub_request();
    stream.direct = false;
    set_range(stream, request);
    stream.ranged = request.range.has_value();
    return true;
}

void BlobDownload::on_done(const StreamPtr& stream, const Outcome& outcome) {
    if (stream->generation != generation_) {
        return;
    }
    std::erase(streams_, stream);
    if (outcome.kind == Outcome::Kind::interrupted) {
        throw_interrupted();
    }
    if (flaw_) {
        begin_again();
    } else if (!partial_->segments()[stream->segment].complete()) {
        on_incomplete(stream, outcome);
    } else if (partial_->written() < blob_.size) {
        fetch_more();
    } else if (small_hasher_) {
        check_hash(small_hasher_->finish_hex());
    }
}

void BlobDownload::on_incomplete(const StreamPtr& stream, const Outcome& outcome) {
    const cache::Segment& segment = partial_->segments()[stream->segment];
    const bool refused = outcome.kind == Outcome::Kind::refused;
    if (refused && stream->direct) {
        // The direct URL has expired; the Hub gives the next.
        direct_url_.clear();
        probed_ = false;
        ++direct_refused_;
        fetch(stream->segment);
    } else if (refused && outcome.head.status == 416) {
        flaw_ = Flaw{bytes_text(blob_.size), "no bytes from " + std::to_string(segment.next())};
        begin_again();
    } else if (outcome.kind == Outcome::Kind::done) {
        if (outcome.head.status == 206 && outcome.received > 0 &&
            ++short_answers_ < most_short_answers) {
            fetch(stream->segment);  // less than was asked for is allowed
        } else {
            flaw_ = Flaw{bytes_text(blob_.size), bytes_text(partial_->written())};
            begin_again();
        }
    } else {
        throw context_.hub.file_error(name_.repo_id, name_.commit, name_.path, outcome);
    }
}

}  // namespace twinkle::hub
