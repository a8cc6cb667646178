#include "cache/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/io_error.h"
#include "cache/cache_error.h"
#include "cache/partial_record.h"
#include "cache/random_name.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::string_view suffix = ".incomplete";
// A kill loses at most this much of each segment; recording more often would cost a call each time.
constexpr std::uint64_t record_every = 1u << 20;

// The etag in "<etag>.incomplete" and "<etag>.<8 hex>.incomplete"; empty for other names.
std::string_view etag_of_partial(std::string_view name) {
    if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) {
        return {};
    }
    name.remove_suffix(suffix.size());
    const auto dot = name.find('.');
    if (dot != std::string_view::npos && name.size() - dot != 9) {
        return {};
    }
    name = name.substr(0, dot);
    return is_etag(name) ? name : std::string_view();
}

}  // namespace

PartialFiles list_partial_files(const Cache& cache, std::string_view repo_id) {
    PartialFiles files;
    for (const auto& entry : cache.folder().entries(cache.blobs(repo_id))) {
        const std::string name = entry.path.filename().string();
        if (const auto etag = etag_of_partial(name); !etag.empty()) {
            files[std::string(etag)].push_back(entry.path);
        }
    }
    return files;
}

// The contents of a leftover.
struct PartialFile::Found {
    base::UniqueFd fd;
    std::uint64_t bytes = 0;
    std::optional<PartialRecord> record;  // none: a prefix of `bytes`
};

PartialFile::PartialFile(const Cache& cache, std::string_view repo_id, std::string_view etag,
                         std::uint64_t size, std::uint64_t segment,
                         const std::vector<fs::path>& candidates)
    : cache_(cache), blob_(cache.blob(repo_id, etag)), size_(size) {
    divide(segment);
    if (!adopt(candidates)) {
        create();
    }
    resumed_ = written();
}

PartialFile::~PartialFile() {
    if (path_.empty()) {
        return;
    }
    if (written() == 0) {
        cache_.folder().unlink(path_);
        return;
    }
    for (std::size_t i = 0; i < segments_.size() && has_record(); ++i) {
        if (recorded_[i] != segments_[i].written) {
            const std::string bytes = record_entry(segments_[i].written);
            // A failure to record only means that this part is fetched again.
            [[maybe_unused]] const ssize_t done = ::pwrite(
                fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(record_offset(size_, i)));
        }
    }
}

void PartialFile::divide(std::uint64_t segment_size) {
    const bool single = segment_size == 0 || segment_size >= size_;
    segment_size_ = single ? size_ : segment_size;
    segments_.clear();
    std::uint64_t begin = 0;
    do {
        const std::uint64_t end = begin + std::min(segment_size_, size_ - begin);
        segments_.push_back({begin, end, 0});
        begin = end;
    } while (begin < size_);
    recorded_.assign(segments_.size(), 0);
}

PartialFile::Found PartialFile::examine(const fs::path& path) const {
    Found found;
    found.fd = cache_.folder().open(path, O_RDWR | O_NONBLOCK);
    struct stat info{};
    if (!found.fd || ::fstat(found.fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return {};
    }
    const auto length = static_cast<std::uint64_t>(info.st_size);
    if (length > size_) {
        if (!has_record()) {
            return {};
        }
        found.record = read_record(found.fd.get(), size_, length);
        for (std::size_t i = 0; found.record && i < found.record->written.size(); ++i) {
            found.bytes += found.record->written[i];
        }
        return found;
    }
    // Tools that write in any order leave holes; only the part before the first hole counts.
    const off_t hole = ::lseek(found.fd.get(), 0, SEEK_HOLE);
    found.bytes = hole < 0 ? length : std::min(length, static_cast<std::uint64_t>(hole));
    return found;
}

bool PartialFile::adopt(const std::vector<fs::path>& candidates) {
    Found best;
    fs::path best_path;
    for (const fs::path& path : candidates) {
        others_.push_back(path);
        Found found = examine(path);
        if (found.bytes > best.bytes) {
            best = std::move(found);
            best_path = path;
        }
    }
    if (best.bytes == 0) {
        return false;
    }
    // The new name claims the file: where locks do not work, two processes cannot both take it.
    fs::path claimed = blob_.string() + "." + random_hex8() + std::string(suffix);
    if (cache_.folder().rename(best_path, claimed) != 0) {
        return false;
    }
    std::erase(others_, best_path);
    path_ = std::move(claimed);
    fd_ = std::move(best.fd);
    if (best.record) {
        divide(best.record->segment_size);
        for (std::size_t i = 0; i < segments_.size(); ++i) {
            segments_[i].written = best.record->written[i];
        }
        recorded_ = best.record->written;
        return true;
    }
    for (Segment& segment : segments_) {
        segment.written = std::clamp(best.bytes, segment.begin, segment.end) - segment.begin;
    }
    if (has_record()) {
        write_record();
    } else if (::ftruncate(fd_.get(), static_cast<off_t>(best.bytes)) != 0) {
        throw_cache_error(cache_, path_, errno);
    }
    return true;
}

void PartialFile::create() {
    for (int attempt = 0;; ++attempt) {
        path_ = blob_.string() + "." + random_hex8() + std::string(suffix);
        fd_ = cache_.folder().open(path_, O_RDWR | O_CREAT | O_EXCL, 0666);
        if (fd_) {
            break;
        }
        if (errno != EEXIST || attempt == 100) {
            const int reason = errno;
            path_.clear();
            throw_cache_error(cache_, blob_, reason);
        }
    }
    if (has_record()) {
        write_record();
    }
}

void PartialFile::write_at(std::uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done =
            ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw_cache_error(cache_, blob_, errno);
        }
        offset += static_cast<std::uint64_t>(done);
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
}

void PartialFile::write_record() {
    PartialRecord record{segment_size_, {}};
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        record.written.push_back(segments_[i].written);
        recorded_[i] = segments_[i].written;
    }
    write_at(size_, record_bytes(record));
}

void PartialFile::record(std::size_t segment) {
    recorded_[segment] = segments_[segment].written;
    write_at(record_offset(size_, segment), record_entry(recorded_[segment]));
}

void PartialFile::append(std::size_t segment, std::string_view bytes) {
    Segment& part = segments_.at(segment);
    if (bytes.size() > part.end - part.next()) {
        throw Error(ErrorCode::failed, {.what = "more bytes than a segment of a file holds",
                                        .where = blob_.filename().string(),
                                        .why = "this is an error of twinkle",
                                        .hint = ""});
    }
    write_at(part.next(), bytes);
    part.written += bytes.size();
    if (has_record() && (part.complete() || part.written - recorded_[segment] >= record_every)) {
        record(segment);
    }
}

void PartialFile::read(std::uint64_t offset, char* buffer, std::size_t size) const {
    while (size > 0) {
        const ssize_t done = ::pread(fd_.get(), buffer, size, static_cast<off_t>(offset));
        if (done <= 0) {
            if (done < 0 && errno == EINTR) {
                continue;
            }
            base::throw_read_error("partial file", blob_, done < 0 ? errno : EIO);
        }
        buffer += done;
        offset += static_cast<std::uint64_t>(done);
        size -= static_cast<std::size_t>(done);
    }
}

std::uint64_t PartialFile::written() const {
    std::uint64_t sum = 0;
    for (const Segment& segment : segments_) {
        sum += segment.written;
    }
    return sum;
}

std::uint64_t PartialFile::front() const {
    for (const Segment& segment : segments_) {
        if (!segment.complete()) {
            return segment.next();
        }
    }
    return size_;
}

// Starts a new file instead of truncating: where locks do not work, another process may have the
// old one open or may have made it the blob.
void PartialFile::restart() {
    discard();
    divide(0);
    create();
}

void PartialFile::finish() {
    if (has_record() && ::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) {
        throw_cache_error(cache_, blob_, errno);
    }
    if (cache_.folder().rename(path_, blob_) != 0) {
        // Where locks do not work, another process may have claimed the name; the bytes in the open
        // file are still ours.
        if (errno != ENOENT ||
            (cache_.folder().link_open(fd_.get(), blob_) != 0 && errno != EEXIST)) {
            throw_cache_error(cache_, blob_, errno);
        }
    }
    cache_.folder().unlink(path_);  // both names of one file: rename leaves them
    path_.clear();
    for (const fs::path& other : others_) {
        cache_.folder().unlink(other);
    }
}

void PartialFile::discard() {
    if (!path_.empty()) {
        cache_.folder().unlink(path_);
        path_.clear();
    }
    fd_.reset();
}

}  // namespace twinkle::cache
