#pragma once
// What a site may become part of: a layer around it that was replaced, a pattern that took it in.

#include "runtime/plan/site.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime {

class Holders {
public:
    // Layers and places among these sites, which must outlive it where they are.
    explicit Holders(std::vector<Site>& sites);

    // The innermost layer or place that is replaced and holds what is called so; or null.
    Site* replaced_around(const std::string& name) const;
    // Whether something that has a choice holds it.
    bool is_in_chosen(const Site& site) const;
    // `by` was tried, and takes in the module under this path.
    void take(const std::string& path, Site& by) { takers_[path] = &by; }

    // A module that only a replaced one has called is no site any more: the layer there computes
    // it. So it is with a call of a function in what is replaced or called no more, and with what a
    // pattern has taken in. Whether it was so.
    bool absorb(const Job& job, Site& site) const;

private:
    Site* around(std::string name, const std::function<bool(const Site&)>& test) const;

    std::map<std::string, std::vector<Site*>> sites_;  // by path: its layer before places
    std::map<std::string, Site*> takers_;              // by the path of what they took in
};

// What of the model a replaced site computes now and nothing else calls: also what was to be kept,
// as the original is not there any more.
void absorb_uncalled(const Job& job, std::vector<Site>& sites, const Holders& holders);

}  // namespace twinkle::runtime
