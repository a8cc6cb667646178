#pragma once
// A blob while it arrives: blobs/<etag>.<8 hex>.incomplete. What a killed process left behind is
// adopted by the next one, so nothing that arrived is asked for again.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "cache/blob_lock.h"
#include "cache/layout.h"

namespace twinkle::cache {

// The partial files of a repository by etag, read once for many blobs.
using PartialFiles = std::map<std::string, std::vector<std::filesystem::path>, std::less<>>;
PartialFiles list_partial_files(const Cache& cache, std::string_view repo_id);

// A large file arrives in segments that are filled at the same time. How far each one is, is kept
// behind the last byte of the file itself: no second file, and a kill at any moment leaves a record
// that never promises more than was written.
class PartialFile {
public:
    // The caller holds the lock of the blob. Takes the left-over with the most bytes, if there is
    // one; `candidates` are those of the etag. `segment` bytes each, 0: one segment.
    PartialFile(const Cache& cache, std::string_view repo_id, std::string_view etag,
                std::uint64_t size, std::uint64_t segment,
                const std::vector<std::filesystem::path>& candidates);
    ~PartialFile();  // keeps the file, unless nothing is in it
    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    struct Segment {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t written = 0;  // bytes from begin that are there

        std::uint64_t next() const { return begin + written; }
        bool complete() const { return next() == end; }
    };
    const std::vector<Segment>& segments() const { return segments_; }
    std::uint64_t resumed() const { return resumed_; }  // bytes that were there at the start
    // From the start of the file to the first byte that is missing.
    std::uint64_t front() const;

    // At the end of what the segment has. More bytes than the segment is long: Error(verification).
    void append(std::size_t segment, std::string_view bytes);
    // Bytes below front(), for the hash.
    std::size_t read(std::uint64_t offset, char* buffer, std::size_t size) const;
    // Forgets everything: the next byte is the first.
    void restart();

    // The caller has checked size and hash: from now on it is the blob. Left-overs of the same etag
    // are removed.
    void finish();
    // Removes it.
    void discard();

private:
    struct Found;
    void adopt(const std::vector<std::filesystem::path>& candidates);
    void create();
    void open_record();
    void record(std::size_t segment);

    const std::filesystem::path blob_;
    const std::uint64_t size_;
    const std::uint64_t segment_size_;
    std::vector<std::filesystem::path> others_;  // left-overs that were not taken
    std::filesystem::path path_;
    base::UniqueFd fd_;
    std::vector<Segment> segments_;
    std::uint64_t resumed_ = 0;
};

}  // namespace twinkle::cache
