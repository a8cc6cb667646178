#include "runtime/plan/site.h"

#include "runtime/graph/format.h"
#include "twinkle/error.h"

#include <algorithm>
#include <utility>

namespace twinkle::runtime {

bool Site::is_in_forward() const {
    return std::visit(
        [](const auto& kind) {
            if constexpr (requires { kind.in_forward; }) {
                return kind.in_forward;
            }
            return false;
        },
        what);
}

const torch::jit::Function* Site::function() const {
    const auto* call = as<CallSite>();
    return call != nullptr ? call->in_function : nullptr;
}

Candidate* Site::candidate(const Choice& choice) {
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const Candidate& one) { return one.choice == choice; });
    return found != candidates.end() ? &*found : nullptr;
}

bool Site::serves(const Choice& choice) const {
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const Candidate& one) { return one.serves() && one.choice == choice; });
}

std::vector<Choice> Site::choices() const {
    std::vector<Choice> all;
    if (!by_size && choice) {
        all.push_back(*choice);
    }
    for (const ChoiceBySize::Part& part : by_size ? by_size->parts : decltype(by_size->parts)()) {
        if (part.choice && std::find(all.begin(), all.end(), *part.choice) == all.end()) {
            all.push_back(*part.choice);
        }
    }
    return all;
}

void Site::add_part(const std::string& name) {
    constexpr std::size_t most_named = 32;
    if (parts < most_named) {
        report.because += ", with its " + name;
    } else if (parts == most_named) {
        report.because += ", …";
    }
    ++parts;
}

SiteReport reported(std::string site, std::string kind, std::string of) {
    SiteReport report;
    report.site = std::move(site);
    report.kind = std::move(kind);
    report.of = std::move(of);
    return report;
}

void refuse(Site& site, const std::string& because) {
    for (const Choice& choice : site.choices()) {
        for (Candidate& one : site.candidates) {
            one.refused = one.choice == choice ? because : one.refused;
        }
    }
    site.choice.reset();
    site.by_size.reset();
}

void keep(const Job& job, Site& site, const KeepReason& reason) {
    if (reason.fallback && !job.options.fallback.contains(*reason.fallback)) {
        site.forbidden = reason.fallback;
    }
    refuse(site, reason.because);
    site.report.status = SiteStatus::kept;
    site.report.because = reason.because;
    site.report.as_asked = !reason.fallback;
}

void choose_from(const Job& job, Site& site, Candidates candidates) {
    if (const auto choice = candidates.first()) {
        site.choice = *choice;
    } else {
        keep(job, site, choice.error());
    }
    site.candidates = std::move(candidates.all);
}

void enter(const Job& job, Site& site, const tl::expected<void, KeepReason>& result) {
    const Choice choice = *site.choice;
    site.report.kernel = choice.describe();
    site.report.variant = choice.kernel != nullptr ? choice.kernel->variant : "";
    site.report.precision = choice.precision();
    if (!result) {
        site.failed = result.error().fallback.has_value();
        keep(job, site, result.error());
        return refuse_forbidden(site);
    }
    site.report.status = SiteStatus::replaced;
    site.report.because =
        fmt::format("{}, {} on {}", choice.bound_name(), choice.mode(), job.context.device);
}

void refuse_forbidden(const Site& site) {
    if (site.forbidden && site.is_reported()) {
        throw Error(
            ErrorCode::refused,
            {.what = fmt::format("{} cannot be replaced, and the fallback {} is not allowed",
                                 site.report.of, fallback_name(*site.forbidden)),
             .where = site.report.site,
             .why = site.report.because,
             .hint = "allow the fallback, or exclude the site"});
    }
}

SiteReport report_of(const Site& site) {
    SiteReport report = site.put_back ? *site.put_back : site.report;
    report.candidates.clear();
    bool first = true;
    const std::vector<Choice> taken = site.choices();
    for (const Candidate& one : site.candidates) {
        const bool waiting = std::find(taken.begin(), taken.end(), one.choice) == taken.end();
        const std::string waits =
            first     ? (report.status == SiteStatus::reverted ? report.because : "")
            : waiting ? "it comes after " + site.candidates.front().choice.describe()
                      : "";
        report.candidates.push_back({one.choice.describe(),
                                     one.choice.kernel != nullptr ? one.choice.kernel->variant : "",
                                     one.serves() ? waits : one.refused});
        first = false;
    }
    return report;
}

bool is_inside(const std::string& inner, const std::string& outer) {
    return inner != outer && (outer.empty() || inner.starts_with(outer + "."));
}

std::string name_below(const std::string& path, const std::string& site) {
    return site.substr(path.empty() ? 0 : path.size() + 1);
}

}  // namespace twinkle::runtime
