#include "runtime/plan/named_in_vain.h"

#include "base/text.h"
#include "runtime/graph/format.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

void warn_of(Plan& plan, const std::string& option, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
        const bool matched =
            std::any_of(plan.sites.begin(), plan.sites.end(), [&](const Site& site) {
                return !site.outdone && base::glob_match(pattern, site.report.site);
            });
        if (!matched) {
            plan.warnings.push_back(
                fmt::format("no site matches {} '{}'", option, base::printable(pattern)));
        }
    }
}

}  // namespace

void report_nowhere(const Job& job, Plan& plan, std::string text) {
    if (job.options.strict && !mapping_disabled()) {
        throw Error(ErrorCode::refused, {.what = std::move(text),
                                         .where = "",
                                         .why = "",
                                         .hint = "leave out strict to go on without it"});
    }
    plan.warnings.push_back(std::move(text));
}

void report_uncalled(const Job& job, Plan& plan, const std::set<std::string>& called) {
    const std::vector<std::string> names(called.begin(), called.end());
    for (const MappedFunction& function : job.mapping.functions) {
        const std::string name = function.full_name();
        if (called.contains(name)) {
            continue;
        }
        std::string text = "no call of the function " + base::printable(name) + " is in this model";
        if (const auto near = base::nearest(name, names)) {
            text += "; the nearest is " + base::printable(*near);
        } else if (function.target_module.starts_with("torch")) {
            text += "; as an operator it is found by a pattern";
        }
        report_nowhere(job, plan, std::move(text));
    }
}

void warn_of_unmatched(const Job& job, Plan& plan) {
    warn_of(plan, "only", job.options.only);
    warn_of(plan, "exclude", job.options.exclude);
}

}  // namespace twinkle::runtime
