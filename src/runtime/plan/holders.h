#pragma once
// What can absorb a site: a replaced layer around it, or a pattern that took it in.

#include "runtime/plan/site.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

class Holders {
public:
    // Refers to the layers and places among these sites, which must outlive it and stay in place.
    explicit Holders(std::vector<Site>& sites);

    // The innermost replaced layer or place around the site of this name; or null.
    Site* replaced_around(const std::string& name) const;
    // Whether a site with a choice holds it.
    bool is_in_chosen(const Site& site) const;
    // `by` was tried, and takes in the module under this path.
    void take(const std::string& path, Site& by) { taken_in_by_[path] = &by; }

    // Absorbs a module that only a replaced one has called: the layer there computes it now.
    // Likewise a call of a function in a place that is replaced or called no more, and whatever a
    // pattern has taken in. Returns whether it did.
    bool absorb(const Job& job, Site& site) const;

private:
    Site* around(std::string name, const std::function<bool(const Site&)>& test) const;

    std::map<std::string, std::vector<Site*>> sites_;  // by path: its layer before places
    std::map<std::string, Site*> taken_in_by_;         // by the path of the module
};

// Absorbs the sites that a replaced one computes now and nothing else calls, even those to be kept,
// because the original is gone.
void absorb_uncalled(const Job& job, std::vector<Site>& sites, const Holders& holders);

}  // namespace twinkle::runtime
