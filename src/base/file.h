#pragma once
// Reading and writing files: whole reads with a limit, writes that are all or nothing.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace twinkle::base {

// Reads a whole regular file. Missing: not_found; larger than `limit` bytes: malformed;
// not readable: failed. `what` names the file's role in messages ("manifest", "mapping", …).
std::string read_file(const std::filesystem::path& path, std::string_view what,
                      std::uint64_t limit = 64u << 20);
// The same for an open file; `path` is for messages. A file that is not open: errno says why.
std::string read_file(UniqueFd file, const std::filesystem::path& path, std::string_view what,
                      std::uint64_t limit);

// Streams a regular file through `sink`, one buffer at a time; returns its size. Errors as
// read_file.
std::uint64_t stream_file(const std::filesystem::path& path, std::string_view what,
                          const std::function<void(std::string_view)>& sink);
std::uint64_t stream_file(UniqueFd file, const std::filesystem::path& path, std::string_view what,
                          const std::function<void(std::string_view)>& sink);

// Writes through a temporary file in the same folder, fsync and rename: after a crash, a full disk
// or a refused write, the old file is still there, complete, and no temporary file is left.
// Permissions are those of the file that is replaced, else those of the umask; a symbolic link
// stays and its target is replaced; a device or pipe is written to.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// The same for writers that take a path or a stream: write to temporary(), then commit(). Without
// commit() the destructor removes the temporary file.
class AtomicFile {
public:
    explicit AtomicFile(const std::filesystem::path& destination);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    const std::filesystem::path& temporary() const { return temporary_; }
    void write(std::string_view contents);
    void commit();

private:
    std::filesystem::path destination_;
    std::filesystem::path temporary_;
};

// An absolute path without "." and ".."; symbolic links stay as they are.
std::filesystem::path absolute_path(const std::filesystem::path& path);

// A path for messages: relative to the current folder if that is shorter.
std::string display_path(const std::filesystem::path& path);

// Every regular file below `root` as a sorted POSIX path relative to it. Follows symbolic links to
// files if they stay below root or in the blob folder of the Hub cache that root lies in, else
// throws Error(refused); does not follow links to folders.
std::vector<std::string> list_files(const std::filesystem::path& root);

}  // namespace twinkle::base
