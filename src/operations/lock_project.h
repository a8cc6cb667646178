#pragma once
// `twinkle lock`: the manifest's requests become twinkle.lock, and kernels.lock where the project
// uses it.

#include <filesystem>
#include <string>
#include <vector>

#include "operations/context.h"
#include "project/lock.h"
#include "project/requests.h"

namespace twinkle::operations {

struct LockOptions {
    bool upgrade_all = false;
    // Repositories; every one must be in the manifest or lock.
    std::vector<std::string> upgrade{};
    std::vector<std::string> trust{};  // besides the manifest's
};

struct LockChange {
    enum class Kind { added, changed, removed };
    Kind kind = Kind::added;
    std::string kernel;  // "org/name@1"
    std::string before;  // the commit; of a kernel in a folder there is none
    std::string after;
    std::string ref;
};

struct LockReport {
    project::Lock lock;
    std::vector<LockChange> changes;
    std::vector<std::filesystem::path> written;  // empty: all was up to date
    std::filesystem::path file;                  // twinkle.lock
};

LockReport lock_project(Context& context, const LockOptions& options);

// `--check`: throws Error(out_of_date) with every reason. Asks nobody, changes nothing.
void check_project_lock(Context& context);

// The project's lock, or what --lockfile names. Throws Error(not_found) where there is none; `why`
// says what it is needed for.
project::Lock need_lock(const Context& context, const Project& project, std::string_view why);

// The manifest's requests with what is said about them (kernels nobody gave a version).
std::vector<project::HubRequest> requests_of(Context& context, const Project& project);

}  // namespace twinkle::operations
