// The part of a kernelize that replaces what was chosen, outer sites before those inside of them.

#include "runtime/format.h"
#include "runtime/kernelizer.h"

#include "runtime/rewrite/called_instances.h"

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
            if (called && !called->contains(site->instance.module)) {
                absorb(*site);
            }
            if (!site->absorbed) {
                replace(*site, done);
            }
        }
    }
    absorb_calls();
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

// A module that only a replaced one has called is no site any more: the layer there computes it. So
// it is with a call of a function in what is replaced or called no more.
void Kernelizer::absorb(Site& site) {
    Site* holder = nullptr;
    for (Site& other : sites_) {
        const bool layer_or_pattern =
            !other.is_call || (other.choice && other.choice->pattern != nullptr);
        if (other.report.status == SiteStatus::replaced && layer_or_pattern && !other.in_function &&
            is_inside(site.report.site, other.instance.path)) {
            // The innermost; of a layer and a pattern in one instance the layer.
            if (holder == nullptr || other.instance.path.size() > holder->instance.path.size()) {
                holder = &other;
            }
        }
    }
    if (holder != nullptr) {
        holder->report.because +=
            ", with its " + name_below(holder->instance.path, site.report.site);
        site.absorbed = true;
    }
}

void Kernelizer::absorb_calls() {
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
    for (Site& site : sites_) {
        // What was found in a pattern's place has been claimed by it.
        const bool kept_pattern = !site.choice && !site.place.empty();
        if ((!site.choice && !kept_pattern) || !site.is_call || site.in_function ||
            site.report.status == SiteStatus::replaced) {
            continue;
        }
        const std::string& path = site.instance.path;
        const std::string name = name_below(path, site.report.site);
        if ((site.in_forward && replaced.contains(path)) ||
            !called.contains(site.instance.module, name.substr(0, name.find(':')))) {
            if (site.place.empty()) {
                absorb(site);
            } else {
                site.absorbed = true;  // never a site of its own
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
