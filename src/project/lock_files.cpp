#include "project/lock_files.h"

#include <algorithm>

#include "base/document.h"
#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "project/kernels_lock.h"
#include "project/lock_text.h"
#include "project/manifest_sections.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

constexpr std::uint64_t largest_manifest = 4u << 20;

bool is_there(const fs::path& file) {
    std::error_code error;
    return fs::exists(file, error);
}

// What [tool.kernels.dependencies] asks for; none: there is no such table.
std::optional<std::vector<HubRequest>> read_python_requests(const fs::path& pyproject) {
    if (!is_there(pyproject)) {
        return std::nullopt;
    }
    const std::string origin = base::display_path(pyproject);
    const base::Node root =
        base::parse_toml_document(base::read_file(pyproject, "manifest", largest_manifest), origin);
    const base::Node* table = &root;
    for (const char* key : {"tool", "kernels", "dependencies"}) {
        table = table->find(key);
        if (table == nullptr) {
            return std::nullopt;
        }
    }
    Manifest manifest;
    manifest.kernels = read_kernels(*table, {origin, pyproject.parent_path()});
    return hub_requests(manifest);
}

std::string kernels_lock_text(const Lock& lock, const LockFiles& files) {
    return kernels_lock_json(lock, files.python_requests);
}

void add_kernels_lock_mismatches(const Lock& lock, const LockFiles& files,
                                 std::vector<std::string>& reasons) {
    if (!files.kernels_lock) {
        return;
    }
    const std::string name = base::display_path(*files.kernels_lock);
    for (const HubRequest& request : files.python_requests.value_or(std::vector<HubRequest>())) {
        if (lock.find(request.repo_id, request.pin) == nullptr) {
            reasons.push_back(request.text() + " is in [tool.kernels.dependencies] (" +
                              request.where.front() + "), and not locked");
        }
    }
    if (!is_there(*files.kernels_lock)) {
        reasons.push_back("there is no " + name);
    } else if (base::read_file(*files.kernels_lock, "lock", largest_lock) !=
               kernels_lock_text(lock, files)) {
        reasons.push_back(name + " does not say the same as " + base::display_path(files.lock));
    }
}

}  // namespace

LockFiles lock_files(const Manifest& manifest, const std::optional<fs::path>& lockfile) {
    const fs::path folder = base::absolute_path(manifest.file).parent_path();
    LockFiles files;
    files.lock = lockfile ? base::absolute_path(*lockfile) : folder / "twinkle.lock";
    files.named = lockfile.has_value();
    if (files.named) {
        return files;
    }
    files.python_requests = read_python_requests(folder / "pyproject.toml");
    const fs::path kernels_lock = folder / "kernels.lock";
    if (files.python_requests || is_there(kernels_lock)) {
        files.kernels_lock = kernels_lock;
    }
    return files;
}

std::optional<Lock> read_project_lock(const LockFiles& files) {
    if (files.named || is_there(files.lock)) {
        return read_lock(files.lock);
    }
    if (files.kernels_lock && is_there(*files.kernels_lock)) {
        return read_lock(*files.kernels_lock);
    }
    return std::nullopt;
}

std::vector<fs::path> write_lock_files(const Lock& lock, const LockFiles& files) {
    std::vector<fs::path> written;
    const auto write = [&](const fs::path& file, const std::string& text) {
        if (text.size() > largest_lock) {
            throw Error(ErrorCode::failed,
                        {.what = "the lock would be too large to be read again",
                         .where = base::display_path(file),
                         .why = "it has " + std::to_string(text.size()) + " bytes, the limit is " +
                                std::to_string(largest_lock),
                         .hint = "lock fewer kernels in one project"});
        }
        if (!is_there(file) || base::read_file(file, "lock", UINT64_MAX) != text) {
            base::write_file_atomically(file, text);
            written.push_back(file);
        }
    };
    write(files.lock, lock_toml(lock));
    if (files.kernels_lock) {
        write(*files.kernels_lock, kernels_lock_text(lock, files));
    }
    return written;
}

std::vector<std::string> lock_file_mismatches(const Manifest& manifest, const LockFiles& files) {
    const bool any = is_there(files.lock) || !files.named;
    return lock_file_mismatches(manifest, files, any ? read_project_lock(files) : std::nullopt);
}

std::vector<std::string> lock_file_mismatches(const Manifest& manifest, const LockFiles& files,
                                              const std::optional<Lock>& lock) {
    if (!lock) {
        return {"there is no " + base::display_path(files.lock)};
    }
    std::vector<std::string> reasons = lock_mismatches(manifest, *lock);
    if (is_there(files.lock)) {  // else a project that the Python tool alone has locked
        const auto local = local_mismatches(manifest, *lock);
        reasons.insert(reasons.end(), local.begin(), local.end());
        add_kernels_lock_mismatches(*lock, files, reasons);
    }
    return reasons;
}

CheckedLock checked_lock(const Manifest& manifest, const LockFiles& files, LockDemand demand) {
    CheckedLock checked{read_project_lock(files), {}};
    if (!checked.lock && demand != LockDemand::there) {
        return checked;
    }
    const auto reasons = lock_file_mismatches(manifest, files, checked.lock);
    if (!reasons.empty() && demand == LockDemand::there) {
        fail_out_of_date(files, reasons);
    }
    if (!reasons.empty() && demand == LockDemand::fits) {
        fail_out_of_date(files, reasons,
                         "run twinkle lock; twinkle resolve only warns, and --map takes what it "
                         "writes");
    }
    if (!reasons.empty()) {
        checked.misfit = "the lock does not fit the manifest: " + base::join(reasons, "; ") +
                         "; run twinkle lock";
    }
    return checked;
}

void fail_out_of_date(const LockFiles& files, const std::vector<std::string>& reasons,
                      const std::string& hint) {
    throw Error(ErrorCode::out_of_date, {.what = "the lock does not fit the manifest",
                                         .where = base::display_path(files.lock),
                                         .why = base::join(reasons, "\n         "),
                                         .hint = hint});
}

}  // namespace twinkle::project
