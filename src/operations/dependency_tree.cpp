#include "operations/dependency_tree.h"

#include <algorithm>
#include <set>

#include "operations/lock_kernels.h"
#include "operations/lock_project.h"
#include "project/lock_files.h"
#include "project/requests.h"

namespace twinkle::operations {
namespace {

using project::Lock;
using project::LockedDependency;
using project::LockedKernel;

// The builds that need a dependency, where not all do.
std::vector<std::string> needing(const LockedKernel& kernel, const LockedDependency& dependency) {
    std::vector<std::string> names;
    for (const auto& variant : kernel.variants) {
        const auto& needs = variant.dependencies;
        if (std::find(needs.begin(), needs.end(), dependency) != needs.end()) {
            names.push_back(variant.name);
        }
    }
    return names.size() == kernel.variants.size() ? std::vector<std::string>{} : names;
}

// `above` stops at a circle, which only a lock written by hand can have.
TreeNode node_of(const Lock& lock, const LockedKernel& kernel, std::set<std::string> above) {
    TreeNode node{kernel.text(), kernel.ref, kernel.commit, kernel.path, {}, false, {}};
    if (!above.insert(node.kernel).second) {
        return node;
    }
    for (const auto& dependency : kernel.dependencies()) {
        const auto* next = lock.find(dependency.repo_id, dependency.pin);
        auto child = next != nullptr ? node_of(lock, *next, above)
                                     : TreeNode{dependency.text(), "", "", "", {}, true, {}};
        child.variants = needing(kernel, dependency);
        node.dependencies.push_back(std::move(child));
    }
    return node;
}

}  // namespace

DependencyTree dependency_tree(Context& context) {
    const auto project = context.need_project("the tree is that of a project's kernels");
    const auto files = project::lock_files(project.manifest, context.options().lockfile);
    const auto earlier = project::read_project_lock(files);
    const auto requests = requests_of(context, project);
    DependencyTree tree;
    tree.locked = earlier.has_value();
    if (!tree.locked) {
        context.listener().warn("nothing is locked: this is what the manifest means now");
    }
    // What the lock has costs no request.
    const Lock lock = lock_kernels(context, requests, {earlier ? &*earlier : nullptr, false, {}},
                                   project.manifest.trust, WhenOffline::cached_will_do);
    for (const auto& request : requests) {
        if (const auto* kernel = lock.find(request.repo_id, request.pin)) {
            tree.kernels.push_back(node_of(lock, *kernel, {}));
        }
    }
    for (const auto& request : project::local_requests(project.manifest)) {
        tree.kernels.push_back(
            {request.key,
             "",
             "",
             request.path.lexically_relative(project.files.folder).generic_string(),
             {},
             false,
             {}});
    }
    return tree;
}

}  // namespace twinkle::operations
