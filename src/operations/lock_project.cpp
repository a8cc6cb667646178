#include "operations/lock_project.h"

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "operations/lock_kernels.h"
#include "operations/trust.h"
#include "project/lock_files.h"
#include "project/requests.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

constexpr const char* why_project = "a lock belongs to a manifest";

// The state of each kernel, for comparing: the commit, or the hash over a local kernel's files.
std::map<std::string, const project::LockedKernel*> by_name(const project::Lock& lock) {
    std::map<std::string, const project::LockedKernel*> kernels;
    for (const auto& kernel : lock.kernels) {
        kernels[kernel.text()] = &kernel;
    }
    return kernels;
}

std::vector<LockChange> changes_between(const project::Lock& before, const project::Lock& after) {
    const auto old_kernels = by_name(before);
    const auto new_kernels = by_name(after);
    std::vector<LockChange> changes;
    for (const auto& [name, kernel] : new_kernels) {
        const auto old = old_kernels.find(name);
        if (old == old_kernels.end()) {
            changes.push_back({LockChange::Kind::added, name, "", kernel->commit, kernel->ref});
        } else if (!(*old->second == *kernel)) {
            changes.push_back({LockChange::Kind::changed, name, old->second->commit, kernel->commit,
                               kernel->ref});
        }
    }
    for (const auto& [name, kernel] : old_kernels) {
        if (new_kernels.count(name) == 0) {
            changes.push_back({LockChange::Kind::removed, name, kernel->commit, "", kernel->ref});
        }
    }
    return changes;
}

// The lock that is there. Out of one that cannot be read, as after a merge with conflicts, nothing
// can be kept.
std::optional<project::Lock> earlier_lock(const Context& context, const project::LockFiles& files) {
    std::error_code error;
    const bool own = std::filesystem::exists(files.lock, error);
    const bool python = files.kernels_lock && std::filesystem::exists(*files.kernels_lock, error);
    if (!own && !python) {
        return std::nullopt;
    }
    try {
        return project::read_project_lock(files);
    } catch (const Error& failure) {
        const bool mixed_up = failure.code() == ErrorCode::out_of_date;  // by a merge
        if (!mixed_up && failure.code() != ErrorCode::malformed) {
            throw;
        }
        const auto& details = failure.details();
        context.listener().warn(details.where + ": " + details.what +
                                (details.why.empty() ? "" : ": " + details.why) +
                                "; everything is decided anew");
        return std::nullopt;
    }
}

void check_upgrade_names(const LockOptions& options, const project::Lock& lock,
                         const std::vector<project::HubRequest>& requests) {
    std::vector<std::string> known;
    for (const auto& request : requests) {
        known.push_back(request.repo_id);
    }
    for (const auto& kernel : lock.kernels) {
        known.push_back(kernel.name);
    }
    for (const auto& name : options.upgrade) {
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const auto nearest = base::nearest(name, known);
            throw Error(ErrorCode::not_found,
                        {.what = "the project has no kernel " + base::printable(name),
                         .where = {},
                         .why = {},
                         .hint = nearest ? "did you mean \"" + *nearest + "\"?"
                                         : "twinkle tree lists its kernels"});
        }
    }
}

}  // namespace

std::vector<project::HubRequest> requests_of(Context& context, const Project& project) {
    auto requests = project::hub_requests(project.manifest);
    for (const auto& warning : project::unpinned_warnings(requests)) {
        context.listener().warn(warning);
    }
    return requests;
}

project::Lock need_lock(const Context& context, const Project& project, std::string_view why) {
    const auto files = project::lock_files(project.manifest, context.options().lockfile);
    auto lock = project::read_project_lock(files);
    if (!lock) {
        throw Error(ErrorCode::not_found, {.what = "the project has no lock",
                                           .where = base::display_path(files.lock),
                                           .why = std::string(why),
                                           .hint = "twinkle lock writes one"});
    }
    return std::move(*lock);
}

LockReport lock_project(Context& context, const LockOptions& options) {
    const auto project = context.need_project(why_project);
    const auto files = project::lock_files(project.manifest, context.options().lockfile);
    if (files.named && files.lock.filename() == "kernels.lock") {
        throw Error(ErrorCode::malformed,
                    {.what = "a lock of twinkle cannot be called kernels.lock",
                     .where = base::display_path(files.lock),
                     .why = "the Python tools expect a file of their own there",
                     .hint = "without --lockfile, the project's kernels.lock is kept up to date"});
    }
    const auto before = earlier_lock(context, files);
    const auto requests = requests_of(context, project);
    check_upgrade_names(options, before.value_or(project::Lock{}), requests);

    const auto trusted = trusted_by(&project, options.trust);
    const EarlierLock earlier{before ? &*before : nullptr,
                              options.upgrade_all,
                              {options.upgrade.begin(), options.upgrade.end()}};
    LockReport report;
    report.lock = lock_kernels(context, requests, earlier, trusted);
    for (const auto& request : project::local_requests(project.manifest)) {
        report.lock.set(project::lock_local_kernel(request, project.files.folder));
    }
    report.changes = changes_between(before.value_or(project::Lock{}), report.lock);
    report.file = files.lock;
    report.written = project::write_lock_files(report.lock, files);
    return report;
}

void check_project_lock(Context& context) {
    const auto project = context.need_project(why_project);
    const auto files = project::lock_files(project.manifest, context.options().lockfile);
    const auto reasons = project::lock_file_mismatches(project.manifest, files);
    if (!reasons.empty()) {
        project::fail_out_of_date(files, reasons);
    }
}

}  // namespace twinkle::operations
