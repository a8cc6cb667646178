#include "operations/fetch.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "cache/blob_store.h"
#include "cache/snapshot.h"
#include "operations/kernel_states.h"
#include "operations/lock_kernels.h"
#include "operations/lock_project.h"
#include "operations/targets.h"
#include "operations/trust.h"
#include "project/lock_files.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

using project::Lock;
using project::LockedKernel;

// What is to be fetched, and for whom.
struct Plan {
    Lock lock;
    std::vector<std::string> roots;  // texts of kernels that were asked for
    std::vector<std::string> trusted;
    bool locked = false;
};

// What was named: the lock's answer where the project has locked just that, else the Hub's.
Plan plan_specs(Context& context, const Project* project, const FetchOptions& options) {
    Plan plan{{}, {}, trusted_by(project, options.trust), false};
    std::optional<Lock> earlier;
    if (project != nullptr) {
        earlier = project::read_project_lock(
            project::lock_files(project->manifest, context.options().lockfile));
    }
    std::vector<project::HubRequest> requests;
    for (auto spec : options.specs) {
        if (spec.pin.empty()) {
            spec.pin = find_state(context, spec).pin();
            context.listener().note("the newest of " + spec.repo_id + " is " + spec.text());
        }
        requests.push_back({spec.repo_id, spec.pin, false, {spec.text()}});
        plan.roots.push_back(requests.back().text());
    }
    const EarlierLock known{earlier ? &*earlier : nullptr, false, {}};
    plan.lock = lock_kernels(context, requests, known, plan.trusted, WhenOffline::cached_will_do);
    return plan;
}

Plan plan_project(Context& context, const Project& project, const FetchOptions& options) {
    Plan plan{{}, {}, trusted_by(&project, options.trust), true};
    const auto files = project::lock_files(project.manifest, context.options().lockfile);
    const auto [earlier, misfit] = project::checked_lock(
        project.manifest, files,
        options.locked ? project::LockDemand::there : project::LockDemand::none);
    const auto requests = requests_of(context, project);
    if (!earlier) {
        plan.locked = false;
        context.listener().warn(
            "nothing is locked: the newest state of every branch is fetched (twinkle lock pins "
            "it)");
    } else if (!misfit.empty()) {
        context.listener().warn(misfit);
    }
    const EarlierLock known{earlier ? &*earlier : nullptr, false, {}};
    plan.lock = lock_kernels(context, requests, known, plan.trusted, WhenOffline::cached_will_do);
    for (const auto& request : requests) {
        plan.roots.push_back(request.text());
    }
    return plan;
}

// Names of builds per kernel: of the roots and of what the chosen builds need.
class BuildSelection {
public:
    BuildSelection(Context& context, const Lock& lock, std::span<const target::Target> targets,
                   bool all)
        : context_(context), lock_(lock), targets_(targets), all_(all) {}

    void add(const LockedKernel& kernel) {
        if (!chosen_.try_emplace(kernel.text()).second) {
            return;
        }
        for (const auto& name : names(kernel)) {
            chosen_[kernel.text()].insert(name);
            const auto* variant = kernel.find(name);
            for (const auto& dependency : variant != nullptr
                                              ? variant->dependencies
                                              : std::vector<project::LockedDependency>{}) {
                if (const auto* next = lock_.find(dependency.repo_id, dependency.pin)) {
                    add(*next);
                }
            }
        }
    }

    const std::map<std::string, std::set<std::string>>& chosen() const { return chosen_; }

private:
    std::vector<std::string> names(const LockedKernel& kernel) const {
        if (!all_) {
            return builds_for(context_, kernel, targets_);
        }
        std::vector<std::string> names;
        for (const auto& variant : kernel.variants) {
            names.push_back(variant.name);
        }
        return names;
    }

    Context& context_;
    const Lock& lock_;
    std::span<const target::Target> targets_;
    bool all_;
    std::map<std::string, std::set<std::string>> chosen_;
};

cache::TreeFile tree_file(const std::string& variant, const project::LockedFile& file) {
    cache::TreeFile tree;
    tree.path = "build/" + variant + "/" + file.path;
    tree.size = file.size;
    tree.blob_id = file.git_sha1;
    if (file.git_sha1.empty()) {
        tree.lfs_sha256 = file.sha256;
    }
    return tree;
}

bool is_cached(const Context& context, const hub::DownloadItem& item) {
    return std::all_of(item.files.begin(), item.files.end(), [&](const auto& file) {
        return cache::has_file(context.cache(), item.repo_id, item.commit, file.path, file.size);
    });
}

// Nothing that has to come from the network comes from somebody nobody trusts, whatever a lock
// says that was handed on.
void require_trust_for(Context& context, const std::vector<hub::DownloadItem>& items,
                       const std::vector<std::string>& trusted) {
    std::vector<std::string> missing;
    for (const auto& item : items) {
        if (!is_cached(context, item)) {
            missing.push_back(item.repo_id);
        }
    }
    if (!missing.empty() && context.offline()) {
        throw Error(ErrorCode::unreachable,
                    {.what = "not everything is in the cache, and twinkle is offline",
                     .where = base::join(missing, ", "),
                     .why = {},
                     .hint = "run the same command with a network"});
    }
    if (!missing.empty()) {
        require_trust(context, missing, trusted);
    }
}

// refs/<ref>: so that the Python tools find the version offline, too.
void write_refs(Context& context, const Plan& plan) {
    for (const auto& kernel : plan.lock.kernels) {
        if (!kernel.ref.empty() && !cache::is_commit(kernel.ref) &&
            cache::has_snapshot(context.cache(), kernel.home(), kernel.commit)) {
            cache::write_ref(context.cache(), kernel.home(), kernel.ref, kernel.commit);
        }
    }
}

// Unless the manifest or the caller wants it otherwise, what has just arrived is looked at, and
// what is missing is said.
void check_signatures(Context& context, const FetchOptions& options,
                      const project::Manifest* manifest, const FetchReport& report) {
    const project::SignatureRules rules(options.signature, manifest, kernel::SignaturePolicy::warn);
    const bool always = rules.policy() == kernel::SignaturePolicy::require;
    if (!rules.wanted() || (!always && report.download.files_downloaded == 0)) {
        return;
    }
    std::vector<std::string> warnings;
    for (const auto& build : report.builds) {
        rules.check(build.folder, build.kernel + " " + build.variant, build.repo_id, warnings);
    }
    for (const auto& warning : warnings) {
        context.listener().warn(warning);
    }
}

// The chosen builds of a kernel: their files to download, and their entries in the report.
hub::DownloadItem item_of(const Context& context, const LockedKernel& kernel,
                          const std::set<std::string>& chosen, std::vector<FetchedBuild>& builds) {
    const auto snapshot = context.cache().snapshot(kernel.home(), kernel.commit);
    hub::DownloadItem item{kernel.home(), kernel.commit, {}};
    for (const auto& name : chosen) {
        const auto& variant = *kernel.find(name);
        for (const auto& file : variant.files) {
            item.files.push_back(tree_file(name, file));
        }
        builds.push_back({kernel.text(), kernel.home(), kernel.commit, name,
                          snapshot / "build" / name, variant.files.size(), variant.size()});
    }
    return item;
}

std::vector<hub::DownloadItem> choose_items(Context& context, const Plan& plan,
                                            std::span<const target::Target> targets, bool all,
                                            std::vector<FetchedBuild>& builds) {
    BuildSelection selection(context, plan.lock, targets, all);
    for (const auto& kernel : plan.lock.kernels) {
        if (std::find(plan.roots.begin(), plan.roots.end(), kernel.text()) != plan.roots.end()) {
            selection.add(kernel);
        }
    }
    std::vector<hub::DownloadItem> items;
    for (const auto& kernel : plan.lock.kernels) {
        const auto chosen = selection.chosen().find(kernel.text());
        if (chosen != selection.chosen().end()) {
            items.push_back(item_of(context, kernel, chosen->second, builds));
        }
    }
    return items;
}

}  // namespace

FetchReport fetch(Context& context, const FetchOptions& options) {
    const bool named = !options.specs.empty();
    std::optional<Project> project;
    if (!named) {
        project = context.need_project("without a kernel's name, the project's are fetched");
    } else if (!options.alone) {
        project = context.find_project();
    }
    const auto targets = choose_targets(context, project ? &*project : nullptr, options.targets);
    const Plan plan = named ? plan_specs(context, project ? &*project : nullptr, options)
                            : plan_project(context, *project, options);
    FetchReport report;
    report.locked = plan.locked;
    const auto items = choose_items(context, plan, targets, options.all_variants, report.builds);
    require_trust_for(context, items, plan.trusted);
    report.download = hub::download(context.hub(), context.cache(), items,
                                    context.listener().downloads(), context.stop());
    write_refs(context, plan);
    check_signatures(context, options, project ? &project->manifest : nullptr, report);
    return report;
}

}  // namespace twinkle::operations
