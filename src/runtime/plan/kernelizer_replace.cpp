// The part of a kernelize that replaces what was chosen, outer sites before those inside of them.

#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"

#include "runtime/graph/called_instances.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

bool is_inside(const std::string& inner, const std::string& outer) {
    return inner != outer && (outer.empty() || inner.starts_with(outer + "."));
}

// What a site is called in the instance under this path, which holds it.
std::string name_below(const std::string& path, const std::string& site) {
    return site.substr(path.empty() ? 0 : path.size() + 1);
}

}  // namespace

// What it computes now that had been a site of its own.
void Kernelizer::Site::add_part(const std::string& name) {
    constexpr std::size_t most_named = 32;
    if (parts < most_named) {
        report.because += ", with its " + name;
    } else if (parts == most_named) {
        report.because += ", …";
    }
    ++parts;
}

void Kernelizer::replace_sites() {
    replace_patterns(false);
    const bool patterns = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) {
        return site.is_call && site.report.status == SiteStatus::replaced;
    });
    Replacements done;
    const auto levels = chosen_by_depth();
    for (std::size_t depth = 0; depth < levels.size(); ++depth) {
        std::optional<CalledInstances> called;
        if (depth > 0 || patterns) {
            called.emplace(model_);
        }
        for (Site* site : levels[depth]) {
            const bool gone = called && !called->contains(site->instance.module);
            if (!gone || !absorb(*site)) {
                replace(*site, done);
            }
        }
    }
    absorb_uncalled();
    patterns_.reset();  // their graphs have changed
    replace_patterns(true);
    replace_calls();
}

// The sites of layers with a choice, by how many others of them hold each.
std::vector<std::vector<Kernelizer::Site*>> Kernelizer::chosen_by_depth() {
    std::vector<std::vector<Site*>> levels;
    std::vector<const Site*> above;  // those that hold the site that is looked at, outermost first
    for (Site& site : sites_) {
        if (!site.choice || site.is_call) {
            continue;
        }
        while (!above.empty() && !is_inside(site.instance.path, above.back()->instance.path)) {
            above.pop_back();
        }
        levels.resize(std::max(levels.size(), above.size() + 1));
        levels[above.size()].push_back(&site);
        above.push_back(&site);
    }
    return levels;
}

// The innermost layer or pattern of which this is true and that holds what is called so.
Kernelizer::Site* Kernelizer::holder_around(std::string name,
                                            const std::function<bool(const Site&)>& test) const {
    name.erase(std::min(name.find(':'), name.size()));
    while (!name.empty()) {
        name.erase(name.find('.') == std::string::npos ? 0 : name.rfind('.'));
        const auto here = holders_.find(name);
        if (here == holders_.end()) {
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

Kernelizer::Site* Kernelizer::replaced_around(const std::string& name) const {
    return holder_around(
        name, [](const Site& site) { return site.report.status == SiteStatus::replaced; });
}

// A module that only a replaced one has called is no site any more: the layer there computes it. So
// it is with a call of a function in what is replaced or called no more, and with what a pattern
// has taken in.
bool Kernelizer::absorb(Site& site) {
    const auto taker = takers_.find(site.instance.path);
    Site* holder = taker != takers_.end() ? taker->second : replaced_around(site.report.site);
    if (holder == nullptr) {
        return false;
    }
    if (holder->report.status == SiteStatus::replaced) {
        holder->add_part(name_below(holder->instance.path, site.report.site));
        site.absorbed = true;
    } else {
        keep(site, {std::nullopt, "it is part of " + holder->report.site + " now, which is kept"});
    }
    return true;
}

// Also what was to be kept: the original is not there any more.
void Kernelizer::absorb_uncalled() {
    std::set<std::string> replaced;  // paths
    for (const Site& site : sites_) {
        if (site.report.status == SiteStatus::replaced && !site.is_call) {
            replaced.insert(site.instance.path);
        }
    }
    const bool any = std::any_of(sites_.begin(), sites_.end(), [](const Site& site) {
        return site.report.status == SiteStatus::replaced;
    });
    if (!any) {
        return;
    }
    const CalledInstances called(model_);
    const auto is_called = [&](const Site& site) {
        const std::string& path = site.instance.path;
        if (!site.is_call) {
            return called.contains(site.instance.module);
        }
        const std::string name = name_below(path, site.report.site);
        return !(site.in_forward && replaced.contains(path)) &&
               called.contains(site.instance.module, name.substr(0, name.find(':')));
    };
    for (Site& site : sites_) {
        if (site.report.status != SiteStatus::replaced && !site.absorbed &&
            site.in_function == nullptr && !is_called(site)) {
            if (site.place.empty()) {
                absorb(site);
            } else {
                site.absorbed = true;  // in a pattern's place: never a site of its own
            }
        }
    }
}

void Kernelizer::replace(Site& site, Replacements& done) {
    const void* type = site.instance.module.type().get();
    auto result = done.find(type);
    if (result == done.end()) {
        result = done.emplace(type, replace_class(site)).first;
    }
    enter(site, result->second);
}

}  // namespace twinkle::runtime
