#include "worker/other_candidates.h"

#include "runtime/plan/replan.h"
#include "runtime/verify/site_module.h"

namespace twinkle::worker {

namespace {

constexpr int most = 8;  // copies of the model, of whose sites some are kept

}  // namespace

OtherCandidates::OtherCandidates(Kernelizing& kernelizing, const Kernelized& made,
                                 SiteTuning& tuning) {
    std::map<std::string, runtime::Choice> before;
    for (const runtime::Site& site : kernelizing.plan().sites) {
        if (site.choice) {
            before.emplace(site.report.site, *site.choice);
        }
    }
    for (int i = 0; i < most && tuning.offer(made.report, kernelizing.plan()); ++i) {
        Kernelized other = made;
        kernelizing.make_again(other);
        if (!add(other, tuning, kernelizing.plan())) {
            break;
        }
    }
    for (const auto& [name, choice] : before) {
        runtime::Site* site = runtime::reported_site(kernelizing.plan(), name);
        if (site != nullptr && site->choice && *site->choice != choice) {
            runtime::choose_candidate(kernelizing.plan(), *site, choice);
        }
    }
}

bool OtherCandidates::add(const Kernelized& made, SiteTuning& tuning, runtime::Plan& plan) {
    const std::size_t known = all_.size();
    for (auto& [name, sizes] : tuning.to_measure(made.report, plan)) {
        const runtime::Choice& choice = *runtime::reported_site(plan, name)->choice;
        const auto module = runtime::module_at(made.model, name);
        if (module) {
            all_.emplace(name + " as " + choice.describe(),
                         Candidate{{name, *module}, choice, std::move(sizes)});
        }
    }
    return all_.size() > known;
}

void OtherCandidates::add_to(runtime::VerificationContext& context) const {
    context.others.clear();
    for (const auto& [name, candidate] : all_) {
        context.others.emplace(name, candidate.made);
        context.by_size.emplace(name, candidate.sizes);
    }
}

void OtherCandidates::note(const std::map<std::string, runtime::Verdict>& verdicts,
                           SiteTuning& tuning) const {
    for (const auto& [name, candidate] : all_) {
        if (const auto verdict = verdicts.find(name); verdict != verdicts.end()) {
            tuning.note(candidate.made.site, candidate.choice, verdict->second);
        }
    }
}

}  // namespace twinkle::worker
