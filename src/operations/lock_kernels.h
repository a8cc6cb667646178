#pragma once
// From requests to locked kernels: which commit each means, with the files of all its builds and
// everything they depend on.

#include <set>
#include <span>
#include <string>

#include "operations/context.h"
#include "project/lock.h"
#include "project/requests.h"

namespace twinkle::operations {

// What was decided before and stays.
struct EarlierLock {
    const project::Lock* lock = nullptr;  // none: everything is decided anew
    bool upgrade_all = false;
    std::set<std::string> upgrade;  // repositories that are decided anew

    const project::LockedKernel* find(const std::string& repo_id, const project::Pin& pin) const;
};

// A lock has every build of a kernel. Offline only those in the cache may be known: enough to use
// them, not to write a lock.
enum class WhenOffline { need_all, cached_will_do };

// What the earlier lock decides costs no request. Throws Error(refused) for publishers that are not
// trusted, for cycles with the chain, Error(not_found), Error(verification) where an older lock's
// hash of a build differs, …
project::Lock lock_kernels(Context& context, std::span<const project::HubRequest> requests,
                           const EarlierLock& earlier, std::span<const std::string> trusted,
                           WhenOffline offline = WhenOffline::need_all);

}  // namespace twinkle::operations
