#include "runtime/plan/left_out.h"

#include "base/text.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& path) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const std::string& pattern) { return base::glob_match(pattern, path); });
}

}  // namespace

bool leave_out(const Job& job, Site& site) {
    if (mapping_disabled()) {
        keep(job, site, {std::nullopt, "DISABLE_KERNEL_MAPPING is set"});
    } else if (!job.options.only.empty() && !matches_any(job.options.only, site.report.site)) {
        keep(job, site, {std::nullopt, "not among the sites asked for (only)"});
        site.left_out = true;
    } else if (matches_any(job.options.exclude, site.report.site)) {
        keep(job, site, {std::nullopt, "excluded"});
        site.left_out = true;
    } else {
        return false;
    }
    return true;
}

}  // namespace twinkle::runtime
