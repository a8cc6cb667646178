#include "runtime/plan/overlaps.h"

#include <algorithm>
#include <unordered_set>

namespace twinkle::runtime {

void settle_overlaps(Plan& plan) {
    std::vector<Site*> places;
    std::unordered_set<std::string> coarser;  // layers that stand for themselves
    for (Site& site : plan.sites) {
        if (site.is_layer() && site.choice && !site.choice->precision().empty()) {
            coarser.insert(site.instance.path);
        }
        if (site.as<PlaceSite>() != nullptr) {
            places.push_back(&site);
        }
    }
    const auto rank = [](const Site* site) { return site->as<PlaceSite>()->rank; };
    std::sort(places.begin(), places.end(),
              [&](const Site* a, const Site* b) { return rank(a) < rank(b); });
    std::unordered_set<std::int32_t> claimed;
    for (Site* site : places) {
        const auto& [nodes, taken] =
            std::tie(site->as<PlaceSite>()->claimed, site->as<PlaceSite>()->taken);
        site->outdone = std::any_of(nodes.begin(), nodes.end(),
                                    [&](std::int32_t node) { return claimed.contains(node); }) ||
                        std::any_of(taken.begin(), taken.end(), [&](const std::string& path) {
                            return coarser.contains(path);
                        });
        site->choice.reset();
        if (!site->outdone && site->may_be_replaced()) {
            site->choice = site->candidates.front().choice;
            claimed.insert(nodes.begin(), nodes.end());
        }
    }
}

}  // namespace twinkle::runtime
