#include "worker/tuned_sites.h"

#include "runtime/plan/replan.h"

namespace twinkle::worker {

std::vector<std::string> TunedSites::unknown(const Report& report) const {
    std::vector<std::string> sites;
    for (const SiteReport& entry : report.sites) {
        if (entry.status == SiteStatus::replaced && !sites_.contains(entry.site) &&
            !unreached_.contains(entry.site)) {
            sites.push_back(entry.site);
        }
    }
    return sites;
}

void TunedSites::add(const std::vector<std::string>& asked, const runtime::Survey& survey,
                     runtime::Plan& plan, Measurements& known) {
    if (sites_.empty() && unreached_.empty()) {
        facts_.cold = survey.cold;
    }
    for (const std::string& name : asked) {
        const auto surveyed = survey.sites.find(name);
        const runtime::Site* site = runtime::reported_site(plan, name);
        if (surveyed != survey.sites.end() && site != nullptr) {
            const SizedSite sized(*site, surveyed->second, facts_);
            if (sized.is_reached()) {
                sized.look_up(known);
                sites_.emplace(name, sized);
                continue;
            }
        }
        unreached_.insert(name);
    }
}

SizedSite* TunedSites::find(const std::string& site) {
    const auto found = sites_.find(site);
    return found != sites_.end() ? &found->second : nullptr;
}

const SizedSite* TunedSites::find(const std::string& site) const {
    const auto found = sites_.find(site);
    return found != sites_.end() ? &found->second : nullptr;
}

void TunedSites::look_up(Measurements& known) const {
    for (const auto& [name, sized] : sites_) {
        sized.look_up(known);
    }
}

}  // namespace twinkle::worker
