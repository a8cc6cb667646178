#include "worker/given_choices.h"

#include "base/text.h"
#include "runtime/graph/format.h"
#include "runtime/plan/replan.h"
#include "twinkle/error.h"
#include "worker/measurements.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace twinkle::worker {

using runtime::Choice;
using runtime::Site;

namespace {

constexpr const char* how_to_make = "twinkle inspect KERNELIZED --choices FILE writes such a file";

Error malformed(const std::string& what, const std::string& why) {
    return {ErrorCode::malformed, {.what = what, .where = "", .why = why, .hint = how_to_make}};
}

// What of the label's configuration the candidate has not by itself: keyword arguments of its
// operators. None: it is another candidate.
std::optional<CfgFields> more_than(const Choice& choice, const Label::Served& served) {
    const tuning::Candidate candidate = candidate_of(choice);
    CfgFields more = served.cfg;
    for (const auto& [name, value] : fields_from_json(base::json_line(candidate.cfg))) {
        const auto found = more.find(name);
        if (found == more.end() || found->second != value) {
            return std::nullopt;
        }
        more.erase(found);
    }
    const bool fits = candidate.build == served.build && (more.empty() || choice.kernel != nullptr);
    return fits ? std::optional(std::move(more)) : std::nullopt;
}

// The candidate that leaves the least to be configured.
std::optional<Choice> candidate_for(const Site& site, const Label::Served& served) {
    std::optional<Choice> best;
    for (const runtime::Candidate& one : site.candidates) {
        const auto more = one.serves() ? more_than(one.choice, served) : std::nullopt;
        if (more && (!best || more->size() < best->cfg.size())) {
            best = one.choice;
            best->cfg = *more;
        }
    }
    return best;
}

std::string absent(const Label::Served& served) {
    return fmt::format("{} of the build {} is no candidate of it here", served.kernel,
                       served.build.substr(0, 12));
}

// Bounds that rise, with an end that is open.
bool is_sound(const Label& label) {
    std::int64_t before = -1;
    for (const Label::Served& one : label.serves) {
        const bool last = &one == &label.serves.back();
        if (last == one.elements.has_value() || (!last && *one.elements <= before)) {
            return false;
        }
        before = one.elements.value_or(before);
    }
    const bool any = std::any_of(label.serves.begin(), label.serves.end(),
                                 [](const auto& one) { return !one.kernel.empty(); });
    return any && (label.serves.size() == 1 || label.input.value_or(-1) >= 0);
}

void offer(Site& site, const Choice& choice) {
    const auto same = std::find_if(site.candidates.begin(), site.candidates.end(),
                                   [&](const auto& one) { return one.choice == choice; });
    same != site.candidates.end() ? same->refused.clear()
                                  : void(site.candidates.push_back({choice, ""}));
}

}  // namespace

GivenChoices::GivenChoices(const std::string& text, bool strict) : strict_(strict) {
    try {
        for (Label& label : find_labels(text)) {
            const std::string site = label.site;
            labels_.emplace(site, std::move(label));
        }
    } catch (const Error& error) {
        throw malformed("the choices cannot be read", error.details().why);
    }
    if (labels_.empty()) {
        throw malformed("the choices have no labels", "no replaced site is named in them");
    }
}

void GivenChoices::refuse(const std::string& site, const std::string& why) {
    if (strict_) {
        throw Error(ErrorCode::refused, {.what = "a site cannot be replaced as it was chosen",
                                         .where = site,
                                         .why = why,
                                         .hint = "leave out --strict to keep its original"});
    }
    warnings_.push_back(fmt::format("{} is not as it was chosen: {}",
                                    site.empty() ? "the model itself" : site, why));
}

void GivenChoices::choose(runtime::Plan& plan, Site& site, const Label& label) {
    runtime::ChoiceBySize choices{static_cast<std::size_t>(label.input.value_or(0)), {}};
    std::string why = is_sound(label) ? "" : "its label does not say what calls of which size get";
    for (const Label::Served& served : label.serves) {
        const auto choice = served.kernel.empty() ? std::nullopt : candidate_for(site, served);
        if (!choice && !served.kernel.empty()) {
            why = why.empty() ? absent(served) : why;
        }
        choices.parts.push_back(
            {choice, served.elements.value_or(std::numeric_limits<std::int64_t>::max())});
    }
    if (!why.empty()) {
        runtime::keep_original(plan, site, why);
        refuse(label.site, why);
        return;
    }
    // What does not fit here gives way to the original: nobody has chosen the others.
    for (runtime::Candidate& one : site.candidates) {
        one.refused = one.serves() ? "another one was chosen before" : one.refused;
    }
    for (const auto& part : choices.parts) {
        if (part.choice) {
            offer(site, *part.choice);
        }
    }
    choices.parts.size() == 1 ? runtime::choose_candidate(plan, site, *choices.parts[0].choice)
                              : runtime::choose_by_size(plan, site, choices);
}

void GivenChoices::apply(runtime::Plan& plan) {
    std::set<std::string> named;
    for (Site& site : plan.sites) {
        const auto label = labels_.find(site.report.site);
        if (!site.may_be_replaced()) {
            continue;
        }
        if (label == labels_.end() || label->second.of != site.report.of) {
            runtime::keep_original(plan, site, "it kept its original when it was chosen");
            continue;
        }
        named.insert(label->first);
        choose(plan, site, label->second);
    }
    if (named.empty()) {
        throw malformed("the choices are of another model",
                        "it has none of the sites that they name: " + labels_.begin()->first +
                            (labels_.size() > 1 ? ", …" : ""));
    }
    for (const auto& [site, label] : labels_) {
        if (!named.contains(site)) {
            refuse(site, "there is no kernel for it here");
        }
    }
}

void GivenChoices::enter(Report& report, runtime::Plan& plan) const {
    for (SiteReport& entry : report.sites) {
        const auto label = labels_.find(entry.site);
        const Site* site = runtime::reported_site(plan, entry.site);
        if (label == labels_.end() || site == nullptr || !site->by_size ||
            entry.status != SiteStatus::replaced) {
            continue;
        }
        for (const Label::Served& served : label->second.serves) {
            entry.by_size.push_back({served.from, served.up_to, served.kernel});
        }
    }
    report.warnings.insert(report.warnings.end(), warnings_.begin(), warnings_.end());
}

}  // namespace twinkle::worker
