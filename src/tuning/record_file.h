#pragma once
// A record of a server: which calls it got, without their data. One JSON object on each line, which
// any number of processes append:
//
//     {"inputs":"int64[1,128];float32[1,128,64]","model":"Llama","record":1}
//     {"invocation":{…},"record":1}
//
// A line that cannot be read (its writer was killed, the disk was full) is skipped and counted.

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "twinkle/invocation.h"

namespace twinkle::tuning {

// A run of a model. Inputs are as --inputs has them.
struct RecordedRun {
    std::string model;   // the name of its class
    std::string inputs;  // "" where they are not tensors, tuples and lists of tensors alone
    std::string unfit;   // why then

    auto operator<=>(const RecordedRun&) const = default;
};

struct Record {
    std::vector<RecordedRun> runs;        // each once, sorted
    std::vector<Invocation> invocations;  // of executors, likewise
    std::size_t unreadable = 0;           // lines

    std::set<std::string> models() const;
};

// Throws Error: not_found, malformed (too large, or not one line that can be read).
Record read_record(const std::filesystem::path& file);

std::string record_line(const RecordedRun& run);
std::string record_line(const Invocation& invocation);

// Which of `of` shards something with this hash (hex digits) is for: 1 to `of`. Shards of one
// record need nothing of each other.
struct Shard {
    std::size_t number = 1;
    std::size_t of = 1;

    bool has(const std::string& hash) const;
};

// One process's end of it.
class RecordFile {
public:
    // Throws Error(failed) if it can neither be made nor written.
    explicit RecordFile(std::filesystem::path file);

    const std::filesystem::path& file() const { return file_; }
    // Empty, or why no more can be written: the file is full, or the disk.
    std::string append(const std::string& line) const;

private:
    std::filesystem::path file_;
    base::UniqueFd fd_;
};

}  // namespace twinkle::tuning
