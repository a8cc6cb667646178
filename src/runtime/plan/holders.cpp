#include "runtime/plan/holders.h"

#include "runtime/graph/called_instances.h"

#include <algorithm>

namespace twinkle::runtime {

Holders::Holders(std::vector<Site>& sites) {
    for (Site& site : sites) {  // layers come first
        if (site.is_layer() || site.as<PlaceSite>() != nullptr) {
            sites_[site.instance.path].push_back(&site);
        }
    }
}

Site* Holders::around(std::string name, const std::function<bool(const Site&)>& test) const {
    name.erase(std::min(name.find(':'), name.size()));
    while (!name.empty()) {
        name.erase(name.find('.') == std::string::npos ? 0 : name.rfind('.'));
        const auto here = sites_.find(name);
        if (here == sites_.end()) {
            continue;
        }
        const auto& [path, sites] = *here;
        const auto holder =
            std::find_if(sites.begin(), sites.end(), [&](const Site* site) { return test(*site); });
        if (holder != sites.end()) {
            return *holder;
        }
    }
    return nullptr;
}

Site* Holders::replaced_around(const std::string& name) const {
    return around(name, [](const Site& site) { return site.is_replaced(); });
}

bool Holders::is_in_chosen(const Site& site) const {
    const auto is_chosen = [](const Site& holder) { return holder.choice.has_value(); };
    return around(site.report.site, is_chosen) != nullptr;
}

bool Holders::absorb(const Job& job, Site& site) const {
    const auto taker = taken_in_by_.find(site.instance.path);
    Site* holder = taker != taken_in_by_.end() ? taker->second : replaced_around(site.report.site);
    if (holder == nullptr) {
        return false;
    }
    if (holder->is_replaced()) {
        holder->add_part(name_below(holder->instance.path, site.report.site));
        site.absorbed = true;
    } else {
        keep(job, site,
             {std::nullopt, "it is part of " + holder->report.site + " now, which is kept"});
    }
    return true;
}

void absorb_uncalled(const Job& job, std::vector<Site>& sites, const Holders& holders) {
    std::set<std::string> replaced;  // paths of layers
    bool any = false;
    for (const Site& site : sites) {
        any = any || site.is_replaced();
        if (site.is_replaced() && site.is_layer()) {
            replaced.insert(site.instance.path);
        }
    }
    if (!any) {
        return;
    }
    const CalledInstances called(job.model);
    const auto is_called = [&](const Site& site) {
        const std::string& path = site.instance.path;
        if (site.is_layer()) {
            return called.contains(site.instance.module);
        }
        const std::string name = name_below(path, site.report.site);
        return !(site.is_in_forward() && replaced.contains(path)) &&
               called.contains(site.instance.module, name.substr(0, name.find(':')));
    };
    for (Site& site : sites) {
        if (site.is_replaced() || site.absorbed || site.function() != nullptr || is_called(site)) {
            continue;
        }
        if (site.as<PlaceSite>() != nullptr) {
            site.absorbed = true;  // in another's place: never a site of its own
        } else {
            holders.absorb(job, site);
        }
    }
}

}  // namespace twinkle::runtime
