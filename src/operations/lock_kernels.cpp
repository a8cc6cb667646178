#include "operations/lock_kernels.h"

#include <algorithm>

#include "base/text.h"
#include "operations/kernel_states.h"
#include "operations/offered_kernel.h"
#include "operations/trust.h"
#include "project/kernels_lock.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

using project::Lock;
using project::LockedKernel;
using project::LockedVariant;

// Reads every build of a commit into its entry of the lock.
std::vector<LockedVariant> lock_builds(const OfferedKernel& offer) {
    std::vector<LockedVariant> variants;
    for (const auto& build : offer.builds) {
        variants.push_back(project::lock_variant(build.variant, build.files, build.metadata_text,
                                                 metadata_origin(offer, build)));
    }
    return variants;
}

// The older lock of Python's `kernels` has one hash over each build: it must be the one that is
// there now.
void check_concat_hashes(const LockedKernel& earlier, const OfferedKernel& offer) {
    for (const auto& variant : earlier.variants) {
        const auto* build = offer.find(variant.name);
        if (variant.concat_hash.empty() || build == nullptr) {
            continue;
        }
        const auto found = project::concat_hash(variant.name, build->files);
        if (found != variant.concat_hash) {
            throw Error(
                ErrorCode::verification,
                {.what = "a build is not the one that was locked",
                 .where = offer.repo_id + ": build/" + variant.name,
                 .why = "kernels.lock says " + variant.concat_hash + ", the Hub has " + found,
                 .hint = "ask the publisher; twinkle lock --upgrade " + offer.repo_id +
                         " takes what is there now"});
        }
    }
}

class LockBuilder {
public:
    LockBuilder(Context& context, const EarlierLock& earlier, std::span<const std::string> trusted,
                WhenOffline offline)
        : context_(context), earlier_(earlier), trusted_(trusted), offline_(offline) {}

    Lock lock(std::vector<KernelQuestion> requests) {
        while (!requests.empty()) {
            lock_level(requests);
            requests = missing_dependencies();
        }
        return std::move(lock_);
    }

private:
    // All requests of one depth at once: the round trips are those of the deepest chain.
    void lock_level(const std::vector<KernelQuestion>& requests) {
        std::vector<KernelQuestion> open;
        for (const auto& request : requests) {
            const auto* before = earlier_.find(request.repo_id, request.pin);
            if (before != nullptr && !before->variants.empty() &&
                earlier_.lock->format == project::LockFormat::twinkle) {
                lock_.set(*before);
            } else {
                open.push_back(request);
            }
        }
        if (open.empty()) {
            return;
        }
        require_trust(context_, repositories(open), trusted_);
        add(open, states_of(open));
    }

    static std::vector<std::string> repositories(const std::vector<KernelQuestion>& requests) {
        std::vector<std::string> names;
        for (const auto& request : requests) {
            names.push_back(request.repo_id);
        }
        return names;
    }

    // A lock of Python's `kernels` pins the commit, and that stays.
    std::vector<KernelState> states_of(const std::vector<KernelQuestion>& requests) {
        std::vector<KernelState> states(requests.size());
        std::vector<KernelQuestion> questions;
        std::vector<std::size_t> asked;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const auto& [repo_id, pin, where] = requests[i];
            if (const auto* before = earlier_.find(repo_id, pin)) {
                states[i] = {repo_id, before->moved_to, before->ref, before->commit, {}};
                if (states[i].ref.empty() && pin.version) {
                    states[i].ref = "v" + pin.text();
                }
            } else {
                asked.push_back(i);
                questions.push_back(requests[i]);
            }
        }
        auto answers = find_states(context_, questions);
        for (std::size_t i = 0; i < asked.size(); ++i) {
            states[asked[i]] = std::move(answers[i]);
        }
        return states;
    }

    void add(const std::vector<KernelQuestion>& requests, const std::vector<KernelState>& states) {
        std::vector<KernelHome> homes;
        for (const auto& state : states) {
            homes.push_back({state.home(), state.commit});
        }
        const auto offers = read_offers(context_, homes);
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const auto& request = requests[i];
            check_offer(request, offers[i]);
            if (const auto* before = earlier_.find(request.repo_id, request.pin)) {
                check_concat_hashes(*before, offers[i]);
            }
            LockedKernel kernel;
            kernel.name = request.repo_id;
            kernel.pin = request.pin;
            // A commit stands for itself.
            kernel.ref = states[i].ref.empty() ? request.pin.revision : states[i].ref;
            kernel.commit = states[i].commit;
            kernel.moved_to = states[i].moved_to;
            kernel.variants = lock_builds(offers[i]);
            lock_.set(std::move(kernel));
            hint_at_newer(request, states[i]);
        }
    }

    void check_offer(const KernelQuestion& request, const OfferedKernel& offer) {
        for (const auto& warning : offer.warnings) {
            context_.listener().warn(warning);
        }
        if (offer.builds.empty()) {
            throw Error(ErrorCode::not_found,
                        {.what = request.text() + " has no builds",
                         .where = request.where,
                         .why = "there is no build/<variant>/ at " + offer.commit,
                         .hint = "name another version or revision"});
        }
        if (!offer.complete && offline_ == WhenOffline::need_all) {
            throw Error(ErrorCode::unreachable,
                        {.what = "the cache does not know all builds of " + request.text(),
                         .where = request.where,
                         .why = "a lock holds every build, and twinkle is offline",
                         .hint = "lock once with a network"});
        }
    }

    void hint_at_newer(const KernelQuestion& request, const KernelState& state) {
        const auto version = state.version();
        if (version && !state.versions.empty() && *version < state.versions.back().number) {
            context_.listener().note(request.text() + ": there is a version " +
                                     std::to_string(state.versions.back().number));
        }
    }

    std::vector<KernelQuestion> missing_dependencies() const {
        std::vector<KernelQuestion> missing;
        for (const auto& kernel : lock_.kernels) {
            for (const auto& dependency : kernel.dependencies()) {
                const bool known = std::any_of(
                    missing.begin(), missing.end(),
                    [&](const auto& other) { return other.text() == dependency.text(); });
                if (!known && lock_.find(dependency.repo_id, dependency.pin) == nullptr) {
                    missing.push_back(
                        {dependency.repo_id, dependency.pin, "needed by " + kernel.text()});
                }
            }
        }
        return missing;
    }

    Context& context_;
    const EarlierLock& earlier_;
    std::span<const std::string> trusted_;
    WhenOffline offline_;
    Lock lock_;
};

void refuse_cycles(const Lock& lock, const LockedKernel& kernel, std::vector<std::string>& chain,
                   std::set<std::string>& done) {
    const auto name = kernel.text();
    if (done.count(name) != 0) {
        return;
    }
    if (const auto start = std::find(chain.begin(), chain.end(), name); start != chain.end()) {
        std::vector<std::string> cycle(start, chain.end());
        cycle.push_back(name);
        throw Error(ErrorCode::refused, {.what = "kernels depend on each other in a circle",
                                         .where = chain.front(),
                                         .why = base::join(cycle, " → "),
                                         .hint = "tell the publisher; use another version"});
    }
    chain.push_back(name);
    for (const auto& dependency : kernel.dependencies()) {
        if (const auto* next = lock.find(dependency.repo_id, dependency.pin)) {
            refuse_cycles(lock, *next, chain, done);
        }
    }
    chain.pop_back();
    done.insert(name);
}

}  // namespace

const LockedKernel* EarlierLock::find(const std::string& repo_id, const project::Pin& pin) const {
    const bool anew = lock == nullptr || upgrade_all || upgrade.count(repo_id) != 0;
    return anew ? nullptr : lock->find(repo_id, pin);
}

Lock lock_kernels(Context& context, std::span<const project::HubRequest> requests,
                  const EarlierLock& earlier, std::span<const std::string> trusted,
                  WhenOffline offline) {
    std::vector<KernelQuestion> wanted;
    for (const auto& request : requests) {
        wanted.push_back({request.repo_id, request.pin,
                          request.where.empty() ? request.text() : request.where.front()});
    }
    Lock lock = LockBuilder(context, earlier, trusted, offline).lock(std::move(wanted));
    std::set<std::string> done;
    for (const auto& kernel : lock.kernels) {
        std::vector<std::string> chain;
        refuse_cycles(lock, kernel, chain, done);
    }
    return lock;
}

}  // namespace twinkle::operations
