// Whether a lock fits a manifest.

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "project/lock.h"
#include "project/requests.h"

namespace twinkle::project {
namespace {

class MismatchFinder {
public:
    MismatchFinder(const Manifest& manifest, const Lock& lock) : manifest_(manifest), lock_(lock) {}

    std::vector<std::string> find() {
        const auto requests = hub_requests(manifest_);
        for (const HubRequest& request : requests) {
            wanted_.emplace(request.repo_id, request.pin.text());
        }
        for (const HubRequest& request : requests) {
            check(request);
        }
        check_locals();
        check_left_over();
        check_one_commit_per_ref();
        return std::move(reasons_);
    }

private:
    void check(const HubRequest& request) {
        const LockedKernel* kernel = lock_.find(request.repo_id, request.pin);
        if (kernel == nullptr) {
            reasons_.push_back(other_requests(request) + " (" + request.where.front() + ")");
            return;
        }
        reach(*kernel);
    }

    // The repository is not locked at all, or as something that nobody asks for any more.
    std::string other_requests(const HubRequest& request) const {
        std::vector<std::string> others;
        for (const LockedKernel& kernel : lock_.kernels) {
            if (kernel.name == request.repo_id && !kernel.is_local() &&
                !wanted_.contains({kernel.name, kernel.pin.text()})) {
                others.push_back(kernel.pin.text());
            }
        }
        return others.empty() ? request.text() + " is not locked"
                              : request.repo_id + " is asked for as " + request.pin.text() +
                                    ", and locked as " + base::join(others, ", ");
    }

    // Marks the kernel and all that it depends on as needed.
    void reach(const LockedKernel& root) {
        std::vector<const LockedKernel*> open{&root};
        while (!open.empty()) {
            const LockedKernel* kernel = open.back();
            open.pop_back();
            if (!needed_.insert(kernel).second) {
                continue;
            }
            for (const LockedDependency& dependency : kernel->dependencies()) {
                const LockedKernel* locked = lock_.find(dependency.repo_id, dependency.pin);
                if (locked == nullptr) {
                    reasons_.push_back(kernel->text() + " depends on " + dependency.text() +
                                       ", which is not locked");
                } else {
                    open.push_back(locked);
                }
            }
        }
    }

    void check_locals() {
        if (lock_.format != LockFormat::twinkle) {
            return;
        }
        const auto home = base::absolute_path(manifest_.file).parent_path();
        for (const KernelRequest& request : local_requests(manifest_)) {
            const LockedKernel* kernel = lock_.find_local(request.key);
            const std::string path = request.path.lexically_relative(home).generic_string();
            if (kernel == nullptr) {
                reasons_.push_back("the local kernel " + base::printable(request.key) +
                                   " is not locked (" + request.where + ")");
            } else if (kernel->path != path) {
                reasons_.push_back("the local kernel " + base::printable(request.key) + " is in " +
                                   base::printable(path) + ", and locked in " +
                                   base::printable(kernel->path));
                needed_.insert(kernel);
            } else {
                reach(*kernel);
            }
        }
    }

    // The locks of Python's `kernels` have no root: what else is in them may be a dependency.
    void check_left_over() {
        if (lock_.format != LockFormat::twinkle) {
            return;
        }
        for (const LockedKernel& kernel : lock_.kernels) {
            if (!needed_.contains(&kernel)) {
                reasons_.push_back(base::printable(kernel.text()) +
                                   " is locked, and nothing asks for it");
            }
        }
    }

    // Two requests that mean the same branch are decided together; a merge may have taken them from
    // two states.
    void check_one_commit_per_ref() {
        std::map<std::pair<std::string, std::string>, const LockedKernel*> first;
        for (const LockedKernel& kernel : lock_.kernels) {
            if (kernel.ref.empty()) {
                continue;
            }
            const auto [found, added] = first.try_emplace({kernel.name, kernel.ref}, &kernel);
            if (!added && found->second->commit != kernel.commit) {
                reasons_.push_back(found->second->text() + " and " + kernel.text() + " both mean " +
                                   kernel.ref + ", but are locked at two commits");
            }
        }
    }

    const Manifest& manifest_;
    const Lock& lock_;
    std::set<std::pair<std::string, std::string>> wanted_;
    std::set<const LockedKernel*> needed_;
    std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> lock_mismatches(const Manifest& manifest, const Lock& lock) {
    return MismatchFinder(manifest, lock).find();
}

}  // namespace twinkle::project
