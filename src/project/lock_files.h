#pragma once
// Which locks a project has, and whether they fit.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "project/lock.h"
#include "project/requests.h"

namespace twinkle::project {

struct LockFiles {
    std::filesystem::path lock;  // twinkle.lock beside the manifest, or what --lockfile names
    bool named = false;          // by --lockfile: then it must be there to be read, and is alone
    // kernels.lock beside it: where there is one, or pyproject.toml has
    // [tool.kernels.dependencies]. None: it is neither written nor looked at.
    std::optional<std::filesystem::path> kernels_lock;
    // What that table asks for; kernels.lock holds this and what it depends on.
    std::optional<std::vector<HubRequest>> python_requests;
};

LockFiles lock_files(const Manifest& manifest,
                     const std::optional<std::filesystem::path>& lockfile);

// The lock of the project: its own, else kernels.lock, which pins commits only. None: there is
// neither. A file that --lockfile names must be there (Error(not_found)).
std::optional<Lock> read_project_lock(const LockFiles& files);

// Writes what differs from what is there, each file whole or not at all. Returns the files that
// were written.
std::vector<std::filesystem::path> write_lock_files(const Lock& lock, const LockFiles& files);

// Every reason for exit 7: no lock, a lock that does not fit the manifest, a kernels.lock that does
// not fit the lock. Empty: all is well.
std::vector<std::string> lock_file_mismatches(const Manifest& manifest, const LockFiles& files);
// The same, with what read_project_lock() has read of them.
std::vector<std::string> lock_file_mismatches(const Manifest& manifest, const LockFiles& files,
                                              const std::optional<Lock>& lock);

// What a command wants of the lock.
enum class LockDemand {
    none,   // what does not fit is a warning
    fits,   // where there is one, it fits
    there,  // there is one, and it fits
};

struct CheckedLock {
    std::optional<Lock> lock;
    std::string misfit;  // why it does not fit, as a warning; empty: it does, or there is none
};

// Reads the project's lock and holds it against the manifest. Throws Error(out_of_date).
CheckedLock checked_lock(const Manifest& manifest, const LockFiles& files, LockDemand demand);

// The Error(out_of_date) of --check and --locked.
[[noreturn]] void fail_out_of_date(const LockFiles& files, const std::vector<std::string>& reasons,
                                   const std::string& hint = "run twinkle lock");

}  // namespace twinkle::project
