#pragma once
// The hashes of files that have not changed since they were last read, as far as the file system
// tells: device, inode, size, times of the last change of bytes and of the inode. Whoever can write
// to the disk directly, or set the clock, can deceive it; so nothing uses it unless the user says
// so.

#include <filesystem>
#include <map>
#include <string>

#include "operations/file_hashes.h"
#include "target/machine.h"

namespace twinkle::operations {

class HashMemory {
public:
    // Reads the file; one that is missing or cannot be read is empty.
    explicit HashMemory(std::filesystem::path file);

    // $XDG_CACHE_HOME/twinkle/verified.json, else below ~/.cache.
    static std::filesystem::path usual_place(const target::Machine& machine);

    // Fills in the hashes that the job wants. False: not all of them are known.
    bool recall(HashJob& job) const;
    // `before`: identity_of the file from before it was read; of one that has changed since nothing
    // is remembered.
    void remember(const HashJob& job, const std::string& before);
    // Identifies a file as it is now; empty: there is none.
    static std::string identity_of(const std::filesystem::path& file);
    // False: it could not be written, and the next run reads the files again.
    bool save() const;

private:
    struct Known {
        std::string sha256, sha512, git_sha1;  // hex; empty: not known
    };
    std::filesystem::path file_;
    std::map<std::string, Known> known_;  // by identity
};

}  // namespace twinkle::operations
