#include "worker/other_candidates.h"

#include "runtime/plan/replan.h"
#include "runtime/verify/site_module.h"

#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <vector>

namespace twinkle::worker {

namespace {

constexpr int most = 8;  // copies of the model, of whose sites some are kept

using Order = std::vector<runtime::Choice>;

Order order_of(const runtime::Site& site) {
    Order order;
    for (const runtime::Candidate& one : site.candidates) {
        order.push_back(one.choice);
    }
    return order;
}

void sort_as(const Order& order, runtime::Site& site) {
    const auto place = [&](const runtime::Candidate& one) {
        return std::find(order.begin(), order.end(), one.choice) - order.begin();
    };
    std::stable_sort(site.candidates.begin(), site.candidates.end(),
                     [&](const auto& one, const auto& other) { return place(one) < place(other); });
}

// A call's module has a copy of its graph; what that calls is taken into it, so that all of it
// moves to a GPU with the module.
void take_calls_in(const torch::jit::Module& module, const std::string& site) {
    if (site.find(':') != std::string::npos) {
        torch::jit::Inline(*module.get_method("forward").graph());
    }
}

void refuse(const runtime::Verdict& verdict, const runtime::Choice& choice, SiteReport entry,
            runtime::Site& site) {
    if (site.serves(choice)) {
        runtime::enter(verdict, entry);
        site.candidate(choice)->refused = entry.because;
    }
}

}  // namespace

OtherCandidates::OtherCandidates(Kernelizing& kernelizing, const Kernelized& made,
                                 SiteTuning& tuning) {
    std::map<std::string, std::pair<runtime::Choice, Order>> before;
    for (const runtime::Site& site : kernelizing.plan().sites) {
        if (site.choice) {
            before.try_emplace(site.report.site, *site.choice, order_of(site));
        }
    }
    for (int i = 0; i < most && tuning.offer(made.report, kernelizing.plan()); ++i) {
        Kernelized other = made;
        kernelizing.make_again(other);
        if (!add(other, tuning, kernelizing.plan())) {
            break;
        }
    }
    for (const auto& [name, as_it_was] : before) {
        runtime::Site* site = runtime::reported_site(kernelizing.plan(), name);
        if (site != nullptr && site->choice && *site->choice != as_it_was.first) {
            sort_as(as_it_was.second, *site);
            runtime::choose_candidate(kernelizing.plan(), *site, as_it_was.first);
        }
    }
}

bool OtherCandidates::add(const Kernelized& made, SiteTuning& tuning, runtime::Plan& plan) {
    const std::size_t known = all_.size();
    for (auto& [site, sizes] : tuning.to_measure(made.report, plan)) {
        const runtime::Choice& choice = *runtime::reported_site(plan, site)->choice;
        const auto module = runtime::module_at(made.model, site);
        if (!module) {
            continue;
        }
        tuning.hand_over(site, choice, sizes.timed);
        take_calls_in(*module, site);
        std::string name = site + " as " + choice.describe();
        while (all_.contains(name)) {  // candidates that differ in what is not told
            name += " again";
        }
        sizes.always = false;  // for a candidate in the model
        all_.emplace(std::move(name), Candidate{{site, *module},
                                                made.model._ivalue()->compilation_unit(),
                                                choice,
                                                std::move(sizes)});
    }
    return all_.size() > known;
}

void OtherCandidates::add_to(runtime::VerificationContext& context) const {
    for (const auto& [name, candidate] : all_) {
        if (context.by_size.emplace(name, candidate.sizes).second) {
            context.others.emplace(name, candidate.made);
        }
    }
}

void OtherCandidates::note(const std::map<std::string, runtime::Verdict>& verdicts,
                           const Report& report, runtime::Plan& plan, SiteTuning& tuning) const {
    for (const auto& [name, candidate] : all_) {
        const auto verdict = verdicts.find(name);
        if (verdict == verdicts.end()) {
            continue;
        }
        tuning.note(candidate.made.site, candidate.choice, verdict->second);
        const auto entry =
            std::find_if(report.sites.begin(), report.sites.end(),
                         [&](const SiteReport& one) { return one.site == candidate.made.site; });
        runtime::Site* site = runtime::reported_site(plan, candidate.made.site);
        if (!verdict->second.right && entry != report.sites.end() && site != nullptr) {
            refuse(verdict->second, candidate.choice, *entry, *site);
        }
    }
}

}  // namespace twinkle::worker
