#pragma once
// A blob while it arrives: blobs/<etag>.<8 hex>.incomplete. The next process adopts what a killed
// one has left, so that nothing is downloaded twice.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "cache/layout.h"

namespace twinkle::cache {

// The partial files of a repository by etag, read once for many blobs. Includes those of
// huggingface_hub.
using PartialFiles = std::map<std::string, std::vector<std::filesystem::path>, std::less<>>;
PartialFiles list_partial_files(const Cache& cache, std::string_view repo_id);

// A part of a file that one request fetches, front to back.
struct Segment {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t written = 0;  // bytes from begin on that are there

    std::uint64_t next() const { return begin + written; }
    bool complete() const { return next() == end; }
};

// Segments are filled at the same time. Their progress is recorded behind the last byte of the file
// itself: no second file, and a kill at any moment leaves a record that never claims more than was
// written. A file of one segment needs no record: its length tells.
class PartialFile {
public:
    // The caller holds the lock of the blob. Adopts the leftover of `candidates` that has most.
    // `segment` is the bytes per segment; 0: one segment. An adopted file may be divided
    // differently.
    PartialFile(const Cache& cache, std::string_view repo_id, std::string_view etag,
                std::uint64_t size, std::uint64_t segment,
                const std::vector<std::filesystem::path>& candidates = {});
    ~PartialFile();  // keeps the file, unless nothing is in it
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    const std::vector<Segment>& segments() const { return segments_; }
    std::uint64_t size() const { return size_; }
    std::uint64_t resumed() const { return resumed_; }  // bytes that were there already
    std::uint64_t written() const;                      // bytes that are there now
    // The length of the contiguous part from the first byte.
    std::uint64_t front() const;

    // Appends at the current end of the segment. Writing beyond the segment is the caller's error.
    void append(std::size_t segment, std::string_view bytes);
    // Fills the buffer from bytes below front(); may be called while another thread appends.
    void read(std::uint64_t offset, char* buffer, std::size_t size) const;
    // Starts a new file of one segment.
    void restart();

    // The caller has checked size and hash: makes the file the blob, and removes leftovers of the
    // same etag.
    void finish();
    void discard();

private:
    struct Found;
    Found examine(const std::filesystem::path& path) const;
    bool adopt(const std::vector<std::filesystem::path>& candidates);
    void create();
    void divide(std::uint64_t segment_size);
    void write_at(std::uint64_t offset, std::string_view bytes);
    bool has_record() const { return segments_.size() > 1; }
    void write_record();
    void record(std::size_t segment);

    const Cache cache_;
    const std::filesystem::path blob_;
    const std::uint64_t size_;
    std::uint64_t segment_size_ = 0;
    std::vector<std::filesystem::path> others_;  // left-overs that were not taken
    std::filesystem::path path_;
    base::UniqueFd fd_;
    std::vector<Segment> segments_;
    std::vector<std::uint64_t> recorded_;
    std::uint64_t resumed_ = 0;
};

}  // namespace twinkle::cache
