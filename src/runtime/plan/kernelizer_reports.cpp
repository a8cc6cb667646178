// What is told of a model and its mapping, and what is refused.
#include "base/text.h"
#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"
#include "twinkle/error.h"

#include <torch/version.h>

#include <algorithm>
#include <map>
#include <set>

namespace twinkle::runtime {

namespace {

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

}  // namespace

void report_nothing_replaced(Report& report, const Mapping& mapping) {
    if (report.count(SiteStatus::replaced) != 0) {
        return;
    }
    const bool rewritten = report.device_constants.rewritten + report.dtype_constants.rewritten +
                               report.dtype_constants.converted >
                           0;
    if (!rewritten) {
        report.warnings.emplace_back("nothing was replaced: the model computes as before");
    } else if (!mapping.layers.empty() || !mapping.functions.empty() ||
               !mapping.patterns.empty()) {  // else it was to be converted, no more
        report.warnings.emplace_back(
            "nothing was replaced: only the model's device or dtype is another");
    }
}

void Kernelizer::report_unmatched(const std::string& option,
                                  const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        const bool matched = std::any_of(sites_.begin(), sites_.end(), [&](const Site& site) {
            return base::glob_match(pattern, site.report.site);
        });
        if (!matched) {
            report_.warnings.push_back(
                fmt::format("no site matches {} '{}'", option, base::printable(pattern)));
        }
    }
}

// Of what was asked for by name.
void Kernelizer::report_nowhere(std::string text) {
    if (options_.strict && !mapping_disabled()) {
        throw Error(ErrorCode::refused, {.what = std::move(text),
                                         .where = "",
                                         .why = "",
                                         .hint = "leave out strict to go on without it"});
    }
    report_.warnings.push_back(std::move(text));
}

// A mapping may well be for another machine; but then it is said.
void Kernelizer::report_other_machine() {
    const auto torch = mapping_.target.find("torch");
    const std::string here = fmt::format("{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR);
    if (torch != mapping_.target.end() && torch->second != here) {
        report_.warnings.push_back(
            options_.load_kernels ? fmt::format("the mapping was made for LibTorch {}, this is {}",
                                                torch->second, here)
                                  : fmt::format("the model is for LibTorch {} and written by {}",
                                                torch->second, here));
    }
}

void Kernelizer::refuse_forbidden(const Site& site) const {
    if (site.forbidden && !site.absorbed) {
        throw Error(
            ErrorCode::refused,
            {.what = fmt::format("{} cannot be replaced, and the fallback {} is not allowed",
                                 site.report.of, fallback_name(*site.forbidden)),
             .where = site.report.site,
             .why = site.report.because,
             .hint = "allow the fallback, or exclude the site"});
    }
}

// Strict: whoever excludes a site wants it kept.
void Kernelizer::refuse_kept() const {
    for (const Site& site : sites_) {
        if (site.report.status == SiteStatus::kept && !site.absorbed && !site.left_out) {
            throw Error(ErrorCode::refused,
                        {.what = site.report.of + " was not replaced",
                         .where = site.report.site,
                         .why = site.report.because,
                         .hint = "leave out strict to keep its original, or exclude the site"});
        }
    }
}

// What may become part of something that is replaced is no site then, and judged later.
void Kernelizer::refuse_forbidden_outside() {
    const bool any = std::any_of(sites_.begin(), sites_.end(),
                                 [](const Site& site) { return site.choice.has_value(); });
    for (const Site& site : sites_) {
        const auto is_chosen = [](const Site& holder) { return holder.choice.has_value(); };
        const bool inside = site.in_function != nullptr
                                ? any
                                : holder_around(site.report.site, is_chosen) != nullptr;
        if (!inside) {
            refuse_forbidden(site);
        }
    }
}

// A name that binds nothing is most often a typing error: show the class that was meant. Of a
// preset it is nothing to tell, but where the model has a class of that very name.
void Kernelizer::report_unbound(const std::vector<Instance>& instances) {
    std::map<std::string, std::string> classes;  // full names by short ones
    std::set<std::string> unbound;               // short names
    std::set<std::string> bound;
    std::set<std::string> all;
    for (const Instance& instance : instances) {
        all.insert(instance.class_name);
    }
    for (const std::string& full : all) {
        bool free = true;
        for (const MappedLayer& layer : mapping_.layers) {
            if (binds(layer, full)) {
                bound.insert(layer.kernel_name);
                free = false;
            }
        }
        const std::string name = last_part(full);
        classes.emplace(name, full);
        if (free) {
            unbound.insert(name);
        }
    }
    std::vector<std::string> names;
    for (const auto& [name, full] : classes) {
        names.push_back(name);
    }
    for (const MappedLayer& layer : mapping_.layers) {
        if (!bound.insert(layer.kernel_name).second ||
            (layer.preset && !unbound.contains(layer.kernel_name))) {
            continue;
        }
        std::string text = layer.kernel_name + " binds no class of this model";
        if (const auto near = base::nearest(layer.kernel_name, names)) {
            text +=
                fmt::format("; this would bind the nearest: classes = [\"{}\"]", classes.at(*near));
        }
        report_.warnings.push_back(std::move(text));
    }
}

}  // namespace twinkle::runtime
