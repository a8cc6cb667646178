#include "worker/site_labels.h"

#include "base/text.h"
#include "runtime/model/labels.h"
#include "runtime/plan/replan.h"
#include "tuning/labels_schema.h"
#include "twinkle/error.h"
#include "worker/measurements.h"

#include <set>

namespace twinkle::worker {

using base::Json;

namespace {

using tuning::labels_schema;
constexpr base::JsonLimits limits{.bytes = 16u << 20, .depth = 8};

Json choice_json(const std::optional<runtime::Choice>& choice) {
    if (!choice) {
        return {{"kernel", nullptr}, {"build", nullptr}, {"cfg", nullptr}};
    }
    const tuning::Candidate candidate = candidate_of(*choice);
    return {{"kernel", choice->describe()}, {"build", candidate.build}, {"cfg", candidate.cfg}};
}

Json label_of(const SiteReport& entry, const runtime::Site& site) {
    Json serves = Json::array();
    Json input;
    if (site.by_size) {
        input = site.by_size->input;
        for (std::size_t i = 0; i < site.by_size->parts.size(); ++i) {
            Json one = choice_json(site.by_size->parts[i].choice);
            const bool known = i < entry.by_size.size();
            one["from"] = known ? Json(entry.by_size[i].from) : Json();
            one["up_to"] = known && entry.by_size[i].up_to ? Json(*entry.by_size[i].up_to) : Json();
            one["elements"] =
                i + 1 < site.by_size->parts.size() ? Json(site.by_size->parts[i].up_to) : Json();
            serves.push_back(std::move(one));
        }
    } else {
        serves.push_back(choice_json(site.choice));
    }
    return {{"site", entry.site},       {"kind", entry.kind},        {"of", entry.of},
            {"because", entry.because}, {"input", std::move(input)}, {"serves", std::move(serves)}};
}

// Every text as it may be shown; nothing else than what a label has.
Json checked(const Json& value, int depth = 0) {
    if (value.is_string()) {
        return base::printable(value.get<std::string>());
    }
    if (!value.is_structured()) {
        return value;
    }
    Json copy = value.is_array() ? Json::array() : Json::object();
    for (const auto& [key, one] : value.items()) {
        if (depth > 5) {
            break;
        }
        if (value.is_array()) {
            copy.push_back(checked(one, depth + 1));
        } else {
            copy[base::printable(key)] = checked(one, depth + 1);
        }
    }
    return copy;
}

}  // namespace

void label_sites(torch::jit::Module& root, const Report& report, runtime::Plan& plan) {
    Json labels = Json::array();
    std::set<std::string> now;
    for (const SiteReport& entry : report.sites) {
        const runtime::Site* site = runtime::reported_site(plan, entry.site);
        if (entry.status == SiteStatus::replaced && site != nullptr) {
            labels.push_back(label_of(entry, *site));
            now.insert(entry.site);
        }
    }
    if (labels.empty()) {
        return;
    }
    for (const Json& before : read_labels(root)) {
        if (!now.contains(before.value("site", ""))) {
            labels.push_back(before);
        }
    }
    runtime::set_labels(root,
                        base::json_line({{"schema", labels_schema}, {"sites", std::move(labels)}}));
}

Json read_labels(const torch::jit::Module& root) {
    const auto text = runtime::labels_of(root);
    Json labels = Json::array();
    if (!text) {
        return labels;
    }
    try {
        const Json json = base::parse_json(*text, "labels of the model", limits);
        if (!json.is_object() || json.value("schema", Json()) != labels_schema ||
            !json.contains("sites") || !json["sites"].is_array()) {
            return labels;
        }
        for (const Json& one : json["sites"]) {
            const bool named = one.is_object() && one.contains("site") && one["site"].is_string();
            if (named) {
                labels.push_back(checked(one));
            }
        }
    } catch (const Error&) {  // another program's, or damaged: none that could be shown
        return Json::array();
    }
    return labels;
}

}  // namespace twinkle::worker
