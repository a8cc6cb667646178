#include "operations/cache_upkeep.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "hub/download.h"
#include "project/lock_files.h"
#include "project/manifest.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

// Damaged files by the commit that shows them: "<commit>/<path>".
std::map<std::pair<std::string, std::string>, std::set<std::string>> by_commit(
    const std::vector<cache::DamagedBlob>& damaged) {
    std::map<std::pair<std::string, std::string>, std::set<std::string>> commits;
    for (const auto& blob : damaged) {
        for (const auto& path : blob.paths) {
            const auto slash = path.find('/');
            commits[{blob.repo_id, path.substr(0, slash)}].insert(path.substr(slash + 1));
        }
    }
    return commits;
}

hub::DownloadItem item_for(Context& context, const std::string& repo_id, const std::string& commit,
                           const std::set<std::string>& paths) {
    hub::DownloadItem item{repo_id, commit, {}};
    for (auto& file : context.hub().tree(repo_id, commit)) {
        if (paths.count(file.path) != 0) {
            item.files.push_back(std::move(file));
        }
    }
    return item;
}

std::vector<cache::DamagedBlob> shown_by(const std::string& repo_id, const std::string& commit,
                                         const std::vector<cache::DamagedBlob>& damaged) {
    std::vector<cache::DamagedBlob> shown;
    std::copy_if(damaged.begin(), damaged.end(), std::back_inserter(shown), [&](const auto& blob) {
        return blob.repo_id == repo_id &&
               std::any_of(blob.paths.begin(), blob.paths.end(),
                           [&](const auto& path) { return path.starts_with(commit + "/"); });
    });
    return shown;
}

cache::Keep keep_of(const project::LockedKernel& kernel) {
    return {kernel.home(), kernel.commit, std::nullopt};
}

}  // namespace

RepairReport verify_cache(Context& context, bool dry_run) {
    RepairReport report;
    report.found = cache::verify(context.cache(), {}, 0, context.stop(), [&](const auto& progress) {
        context.listener().busy("verifying the cache", progress.bytes, progress.total);
    });
    // What cannot be fetched again stays: somebody may still make use of it.
    if (dry_run || context.offline() || report.found.damaged.empty()) {
        return report;
    }
    // What seems to be missing may be behind one of them.
    if (!report.found.links.empty()) {
        return report;
    }
    for (const auto& [home, paths] : by_commit(report.found.damaged)) {
        const std::string& repo_id = home.first;
        const std::string& commit = home.second;
        const auto lose = [&](const Error& error) {
            if (error.code() == ErrorCode::interrupted) {
                throw error;
            }
            const auto& details = error.details();
            report.lost.push_back(repo_id + "@" + commit.substr(0, 12) + ": " + details.what +
                                  (details.why.empty() ? "" : ": " + details.why));
        };
        hub::DownloadItem item;
        try {
            item = item_for(context, repo_id, commit, paths);
        } catch (const Error& error) {
            lose(error);
            continue;
        }
        cache::remove_damaged(context.cache(), shown_by(repo_id, commit, report.found.damaged));
        try {
            const auto result = hub::download(context.hub(), context.cache(), std::vector{item},
                                              context.listener().downloads(), context.stop());
            report.repaired += result.files_downloaded;
            for (const auto& path : paths) {
                if (std::none_of(item.files.begin(), item.files.end(),
                                 [&](const auto& file) { return file.path == path; })) {
                    report.lost.push_back(repo_id + "@" + commit.substr(0, 12) + "/" +
                                          base::printable(path) + ": no file of that commit");
                }
            }
        } catch (const Error& error) {
            lose(error);
        }
    }
    return report;
}

cache::Removal plan_prune(Context& context, const std::vector<fs::path>& projects) {
    std::vector<cache::Keep> keep;
    for (const auto& folder : projects) {
        const auto files = project::find_project(folder, folder);
        const auto manifest = project::load_manifest(files->manifest, context.presets_dir());
        const auto lock = project::read_project_lock(project::lock_files(manifest, std::nullopt));
        if (!lock) {
            throw Error(ErrorCode::not_found,
                        {.what = "a project whose kernels are to be kept has no lock",
                         .where = base::display_path(files->manifest),
                         .why = "without it nobody knows what the project needs",
                         .hint = "twinkle lock --project " + base::display_path(folder)});
        }
        for (const auto& kernel : lock->kernels) {
            if (!kernel.is_local()) {
                keep.push_back(keep_of(kernel));
            }
        }
    }
    return cache::plan_prune(context.cache(), keep);
}

}  // namespace twinkle::operations
