#pragma once
// Where measurements are kept: a file for each, written aside and renamed, in a folder for each
// environment and invocation. No database and no locks: any number of processes may write at once,
// and be killed at any moment. Nothing that cannot be read makes a call fail: it is a miss with its
// reason. No symbolic link below the root is followed.
//
//     tuning/v1/<environment>/<invocation>/<candidate>.json     names are hashes
//                                         /lease

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/folder.h"
#include "target/machine.h"
#include "tuning/entry.h"
#include "tuning/lease.h"

namespace twinkle::tuning {

class Store {
public:
    explicit Store(const std::filesystem::path& root, Clock clock = system_clock());

    // $XDG_CACHE_HOME/twinkle/tuning, else below ~/.cache.
    static std::filesystem::path usual_place(const target::Machine& machine);

    const std::filesystem::path& root() const { return folder_.root(); }

    struct RejectedFile {
        std::filesystem::path file;
        Rejected rejected;
    };
    struct Found {
        std::vector<Entry> entries;  // in the order of their identities
        std::vector<RejectedFile> rejected;
    };
    // What was measured for an invocation; of a store that is not there, nothing.
    Found find(const Environment& environment, const Invocation& invocation) const;
    // Everything, whatever device it is of.
    Found all() const;

    // Joins the entry with what is there. Empty, or why it could not be written (a full disk, a
    // read-only folder, a link): the caller says so and goes on.
    std::string put(const Entry& entry) const;

    LeaseAttempt lease(const Environment& environment, const Invocation& invocation,
                       std::chrono::seconds duration) const;

    // Removes everything below the root that a store writes. What else lies there stays.
    struct Cleared {
        std::size_t entries = 0;
        std::string problem{};  // why something is left
    };
    Cleared clear() const;

private:
    std::filesystem::path folder_of(const std::string& environment,
                                    const Invocation& invocation) const;
    void read_into(const std::filesystem::path& folder, Found& found) const;
    std::optional<Entry> read(const std::filesystem::path& file, Rejected& rejected) const;

    base::Folder folder_;
    std::filesystem::path versioned_;  // root/v1
    Clock clock_;
};

}  // namespace twinkle::tuning
