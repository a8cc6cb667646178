#include "operations/outdated.h"

#include "base/file.h"
#include "kernel/versions.h"
#include "operations/kernel_states.h"
#include "operations/lock_project.h"
#include "operations/offered_kernel.h"
#include "operations/targets.h"
#include "twinkle/error.h"

namespace twinkle::operations {
namespace {

// Whether every target could use this state of the kernel.
void judge_newest(Context& context, const OfferedKernel& offer,
                  const std::vector<target::Target>& targets, OutdatedKernel& kernel) {
    kernel.newest_fits = true;
    for (const auto& target : targets) {
        const auto choices = kernel::rank_variants(as_offered_variants(context, offer), target);
        if (choices.empty() || !(choices.front().accepted || choices.front().for_cpu)) {
            kernel.newest_fits = false;
            kernel.why_not = "no build for " + target.text();
            return;
        }
        if (kernel.newest_variant.empty()) {
            kernel.newest_variant = choices.front().name;
        }
    }
}

}  // namespace

std::vector<OutdatedKernel> outdated(Context& context, const std::vector<std::string>& targets) {
    const auto project = context.need_project("what is out of date is a project's lock");
    const auto lock = need_lock(context, project, "only what is locked can be out of date");
    if (context.offline()) {
        throw Error(ErrorCode::unreachable,
                    {.what = "only the Hub knows what is out of date, and twinkle is offline",
                     .where = base::display_path(project.files.manifest),
                     .why = {},
                     .hint = "try again with a network"});
    }
    const auto machines = choose_targets(context, &project, targets);
    std::vector<KernelQuestion> questions;
    std::vector<const project::LockedKernel*> asked;
    for (const auto& kernel : lock.kernels) {
        if (!kernel.is_local()) {
            questions.push_back({kernel.name, kernel.pin, kernel.text()});
            asked.push_back(&kernel);
        }
    }
    const auto states = find_states(context, questions);
    std::vector<OutdatedKernel> found;
    std::vector<KernelHome> newest;
    for (std::size_t i = 0; i < states.size(); ++i) {
        const auto& state = states[i];
        OutdatedKernel kernel{asked[i]->text(),
                              state.home(),
                              asked[i]->ref,
                              asked[i]->commit,
                              state.commit,
                              {},
                              {},
                              false,
                              {}};
        const auto version = state.version();
        const bool newer =
            version && !state.versions.empty() && *version < state.versions.back().number;
        if (newer) {
            kernel.newest_version = state.versions.back().number;
            newest.push_back({state.home(), state.versions.back().commit});
        }
        if (newer || kernel.moved()) {
            found.push_back(std::move(kernel));
        }
    }
    const auto offers = read_offers(context, newest, WithMetadata::none);
    std::size_t next = 0;
    for (auto& kernel : found) {
        if (kernel.newest_version) {
            judge_newest(context, offers[next++], machines, kernel);
        }
    }
    return found;
}

}  // namespace twinkle::operations
