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

}  // namespace

void Kernelizer::replace_sites() {
    Replacements done;
    const auto levels = chosen_by_depth();
    for (std::size_t depth = 0; depth < levels.size(); ++depth) {
        std::optional<CalledInstances> called;
        if (depth > 0) {
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
}

// The sites with a choice, by how many others of them hold each.
std::vector<std::vector<Kernelizer::Site*>> Kernelizer::chosen_by_depth() {
    std::vector<std::vector<Site*>> levels;
    std::vector<const Site*> above;  // those that hold the site that is looked at, outermost first
    for (Site& site : sites_) {
        if (!site.choice) {
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

// A module that only a replaced one has called is no site any more: the layer there computes it.
void Kernelizer::absorb(Site& site) {
    Site* holder = nullptr;
    for (Site& other : sites_) {
        if (other.report.status == SiteStatus::replaced &&
            is_inside(site.instance.path, other.instance.path)) {
            holder = &other;  // the innermost comes last
        }
    }
    if (holder != nullptr) {
        const std::string& path = holder->instance.path;
        const auto name = site.instance.path.substr(path.empty() ? 0 : path.size() + 1);
        holder->report.because += ", with its " + name;
        site.absorbed = true;
    }
}

void Kernelizer::replace(Site& site, Replacements& done) {
    const void* type = site.instance.module.type().get();
    auto result = done.find(type);
    if (result == done.end()) {
        result = done.emplace(type, replace_class(site)).first;
    }
    site.report.kernel = site.choice->kernel->name + ": " + site.choice->candidate->layer;
    site.report.variant = site.choice->kernel->variant;
    if (!result->second) {
        keep(site, result->second.error());
        return;
    }
    site.report.status = SiteStatus::replaced;
    site.report.because = fmt::format("{}, {} on {}", site.choice->layer->kernel_name,
                                      site.choice->candidate->mode, context_.device);
}

}  // namespace twinkle::runtime
