#include "worker/given_choices.h"

#include "base/text.h"
#include "runtime/graph/format.h"
#include "runtime/plan/replan.h"
#include "twinkle/device.h"
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

std::string named(const std::string& site) {
    return site.empty() ? "the model itself" : site;
}

// The operators' keyword arguments that the label adds to the candidate's own. None if the label
// means another candidate.
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

bool is_in_grid(const tuning::Tunable& tunable, const base::Json& cfg) {
    const auto items = cfg.items();
    return std::all_of(items.begin(), items.end(), [&](const auto& field) {
        return std::any_of(
            tunable.arguments.begin(), tunable.arguments.end(),
            [&](const tuning::TunableArgument& argument) {
                const auto& values = argument.values;
                return argument.name == field.key() && !field.value().is_number_float() &&
                       std::find(values.begin(), values.end(), field.value()) != values.end();
            });
    });
}

// Bounds that rise, with an end that is open; rows without a gap.
bool is_sound(const Label& label) {
    std::int64_t before = -1;
    std::int64_t rows = 0;
    for (const Label::Served& one : label.serves) {
        const bool last = &one == &label.serves.back();
        if (last == one.elements.has_value() || (!last && *one.elements <= before) ||
            last == one.up_to.has_value() || one.from != rows || one.up_to.value_or(rows) < rows) {
            return false;
        }
        before = one.elements.value_or(before);
        rows = one.up_to.value_or(rows - 1) + 1;
    }
    const bool any = std::any_of(label.serves.begin(), label.serves.end(),
                                 [](const auto& one) { return !one.kernel.empty(); });
    return any && (label.serves.size() == 1 || label.input.value_or(-1) >= 0);
}

void offer(Site& site, const Choice& choice) {
    runtime::Candidate* same = site.candidate(choice);
    same != nullptr ? same->refused.clear() : void(site.candidates.push_back({choice, ""}));
}

}  // namespace

GivenChoices::GivenChoices(const std::string& text, bool strict) : strict_(strict) {
    std::vector<Label> labels;
    try {
        labels = find_labels(text);
    } catch (const Error& error) {
        throw malformed("the choices cannot be read", error.details().why);
    }
    for (const Label& label : labels) {
        if (!labels_.emplace(label.site, label).second) {
            throw malformed("the choices name a site twice", named(label.site));
        }
    }
    if (labels_.empty()) {
        throw malformed("the choices have no labels", "no replaced site is named in them");
    }
}

std::string GivenChoices::undeclared(const MappedKernel& kernel, const CfgFields& cfg) {
    const std::string shown = twinkle::to_json(cfg);
    const base::Json fields = base::parse_json(shown, "configuration");
    std::string why = "has no configuration " + base::printable(shown) + " in its tuning.toml";
    for (const auto& one : declarations_.of(kernel).operators) {
        if (one.forward && is_in_grid(*one.forward, fields)) {
            const tuning::Constraint* broken = one.forward->broken_by(fields, known_);
            if (broken == nullptr) {
                return "";
            }
            why = fmt::format("does not take the configuration {}: by its tuning.toml, {}",
                              base::printable(shown), broken->text());
        }
    }
    return why;
}

std::string GivenChoices::absent(const Site& site, const Label::Served& served) {
    const std::string build = served.build.substr(0, 12);
    for (const runtime::Candidate& one : site.candidates) {
        const auto more = more_than(one.choice, served);
        if (more && one.serves()) {
            return fmt::format("{} of the build {} {}", served.kernel, build,
                               undeclared(*one.choice.kernel, *more));
        }
        if (more) {
            const bool exact = one.choice.precision().empty();
            return fmt::format("{} cannot serve it here: {}{}", served.kernel, one.refused,
                               exact ? "" : " (--choices takes nothing that --precision chose)");
        }
    }
    return fmt::format("{} of the build {} is no candidate of it here", served.kernel, build);
}

// The one that leaves the least to be configured.
std::optional<Choice> GivenChoices::candidate_for(const Site& site, const Label::Served& served) {
    std::optional<Choice> best;
    for (const runtime::Candidate& one : site.candidates) {
        const auto more = one.serves() ? more_than(one.choice, served) : std::nullopt;
        if (more && (!best || more->size() < best->cfg.size()) &&
            (more->empty() || undeclared(*one.choice.kernel, *more).empty())) {
            best = one.choice;
            best->cfg = *more;
        }
    }
    return best;
}

void GivenChoices::refuse(const std::string& site, const std::string& why) {
    if (strict_) {
        throw Error(ErrorCode::refused, {.what = "a site cannot be replaced as it was chosen",
                                         .where = site,
                                         .why = why,
                                         .hint = "leave out --strict to keep its original"});
    }
    refused_[why].push_back(named(site));
    refused_sites_.insert(site);
}

std::vector<std::string> GivenChoices::warnings(const Reasons& reasons) {
    std::vector<std::string> all;
    for (const auto& [why, sites] : reasons) {
        all.push_back(sites.size() == 1
                          ? fmt::format("{} is not as it was chosen: {}", sites.front(), why)
                          : fmt::format("{} sites are not as they were chosen: {} ({}, …, {})",
                                        sites.size(), why, sites.front(), sites.back()));
    }
    return all;
}

void GivenChoices::choose(runtime::Plan& plan, Site& site, const Label& label) {
    if (site.candidates.empty()) {
        refuse(label.site, site.report.because);
        return;
    }
    runtime::ChoiceBySize choices{static_cast<std::size_t>(label.input.value_or(0)), {}};
    std::string why = is_sound(label) ? "" : "its label does not say what calls of which size get";
    for (const Label::Served& served : label.serves) {
        const auto choice = served.kernel.empty() ? std::nullopt : candidate_for(site, served);
        if (!choice && !served.kernel.empty()) {
            why = why.empty() ? absent(site, served) : why;
        }
        choices.parts.push_back(
            {choice, served.elements.value_or(std::numeric_limits<std::int64_t>::max())});
    }
    if (!why.empty()) {
        runtime::keep_original(plan, site, why);
        refuse(label.site, why);
        return;
    }
    // If the labelled candidate does not fit, the site keeps its original; the other candidates
    // were not chosen.
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

void GivenChoices::apply(runtime::Plan& plan, const std::string& device) {
    known_["device"] = device == "cuda" ? get_device_platform(at::kCUDA) : device;
    std::set<std::string> met;
    std::map<std::string, std::string> others;  // by site: why it is not the one that is labelled
    for (Site& site : plan.sites) {
        const auto found = labels_.find(site.report.site);
        const Label* label = found != labels_.end() ? &found->second : nullptr;
        if (label != nullptr && (site.left_out || label->of == site.report.of)) {
            met.insert(label->site);
            if (!site.left_out) {
                choose(plan, site, *label);
            }
            continue;
        }
        std::string why = "it kept its original when it was chosen";
        if (label != nullptr) {
            why = fmt::format("it was {}, and is {} here", label->of, site.report.of);
            others.emplace(label->site, why);
        }
        if (site.may_be_replaced()) {
            runtime::keep_original(plan, site, why);
        }
    }
    if (met.empty()) {
        throw Error(
            ErrorCode::malformed,
            {.what = "the choices fit no site of this model",
             .where = "",
             .why = others.empty()
                        ? "nothing is bound to the sites that they name: " +
                              named(labels_.begin()->first) + (labels_.size() > 1 ? ", …" : "")
                        : named(others.begin()->first) + ": " + others.begin()->second,
             .hint = "they are of another model, or of another manifest: --project or --map names "
                     "the one that it was kernelized with"});
    }
    for (const auto& [site, label] : labels_) {
        if (!met.contains(site)) {
            const auto other = others.find(site);
            refuse(site, other != others.end() ? other->second : "there is no kernel for it here");
        }
    }
}

void GivenChoices::enter(Report& report, runtime::Plan& plan) const {
    Reasons reasons = refused_;
    for (SiteReport& entry : report.sites) {
        const auto label = labels_.find(entry.site);
        const Site* site = runtime::reported_site(plan, entry.site);
        if (label == labels_.end() || site == nullptr || site->left_out) {
            continue;
        }
        if (entry.status != SiteStatus::replaced) {
            if (!refused_sites_.contains(
                    entry.site)) {  // it failed only as it was applied or verified
                reasons[entry.because].push_back(named(entry.site));
            }
            continue;
        }
        if (!site->by_size) {
            continue;
        }
        for (const Label::Served& served : label->second.serves) {
            entry.by_size.push_back({served.from, served.up_to, served.kernel});
        }
    }
    const auto warned = warnings(reasons);
    report.warnings.insert(report.warnings.end(), warned.begin(), warned.end());
}

}  // namespace twinkle::worker
