#include "twinkle/report.h"

#include <algorithm>

#include "base/json.h"

namespace twinkle {
namespace {

using base::Json;

Json optional_json(const std::optional<double>& value) {
    return value ? Json(*value) : Json();
}

Json measured_json(const SiteReport& site) {
    Json json = {{"max_error", optional_json(site.max_error)},
                 {"original_error", optional_json(site.original_error)},
                 {"allowed_error", optional_json(site.allowed_error)}};
    if (site.agreement) {
        json["agreement"] = *site.agreement;
    }
    return json;
}

Json candidates_json(const SiteReport& site) {
    Json list = Json::array();
    for (const CandidateReport& one : site.candidates) {
        list.push_back({{"kernel", one.kernel},
                        {"variant", one.variant.empty() ? Json() : Json(one.variant)},
                        {"because", one.because.empty() ? Json() : Json(one.because)}});
    }
    return list;
}

// Adds only what was measured or chosen by size: other reports stay as they are.
void add_tuning(const SiteReport& site, Json& object) {
    const auto name = [](const std::string& kernel) {
        return kernel.empty() ? Json() : Json(kernel);
    };
    if (site.measured.empty() && site.by_size.empty()) {
        return;
    }
    Json& choices = object["by_size"] = Json::array();
    for (const SizeChoiceReport& one : site.by_size) {
        choices.push_back({{"from", one.from},
                           {"up_to", one.up_to ? Json(*one.up_to) : Json()},
                           {"kernel", name(one.kernel)}});
    }
    Json& measured = object["measured"] = Json::array();
    for (const SizeTimeReport& one : site.measured) {
        measured.push_back({{"rows", one.rows},
                            {"kernel", name(one.kernel)},
                            {"us", optional_json(one.us)},
                            {"problem", one.problem.empty() ? Json() : Json(one.problem)},
                            {"from_store", one.from_store}});
    }
}

Json site_json(const SiteReport& site) {
    Json object = measured_json(site);
    object.update({{"site", site.site},
                   {"kind", site.kind},
                   {"of", site.of},
                   {"status", site_status_name(site.status)},
                   {"kernel", site.kernel.empty() ? Json() : Json(site.kernel)},
                   {"variant", site.variant.empty() ? Json() : Json(site.variant)},
                   {"because", site.because},
                   {"candidates", candidates_json(site)}});
    if (!site.precision.empty()) {
        object["precision"] = site.precision;
    }
    add_tuning(site, object);
    return object;
}

Json constants_json(const ConstantReport& constants) {
    return {{"found", constants.found},       {"rewritten", constants.rewritten},
            {"inserted", constants.inserted}, {"named", constants.named},
            {"methods", constants.methods},   {"weights_converted", constants.converted},
            {"kept_float32", constants.kept}};
}

}  // namespace

const char* site_status_name(SiteStatus status) {
    switch (status) {
        case SiteStatus::replaced: return "replaced";
        case SiteStatus::kept: return "kept";
        case SiteStatus::reverted: return "reverted";
    }
    return "kept";
}

std::size_t Report::count(SiteStatus status) const {
    return static_cast<std::size_t>(std::count_if(
        sites.begin(), sites.end(), [&](const SiteReport& site) { return site.status == status; }));
}

std::string Report::to_json() const {
    Json list = Json::array();
    for (const SiteReport& site : sites) {
        list.push_back(site_json(site));
    }
    Json model = measured_json(whole);
    model["because"] = whole.because;
    Json converted;
    if (conversion) {
        converted = measured_json(*conversion);
    }
    Json json = {{"schema", "twinkle.kernelize/1"},
                 {"dtype", dtype ? Json(*dtype) : Json()},
                 {"device_constants", constants_json(device_constants)},
                 {"dtype_constants", constants_json(dtype_constants)},
                 {"conversion", std::move(converted)},
                 {"mode", mode},
                 {"device", device},
                 {"sites", std::move(list)},
                 {"replaced", count(SiteStatus::replaced)},
                 {"kept", count(SiteStatus::kept)},
                 {"reverted", count(SiteStatus::reverted)},
                 {"warnings", warnings},
                 {"whole", std::move(model)},
                 {"verified", verified}};
    if (tuning) {
        json["tuning"] = {{"measured", tuning->measured}, {"known", tuning->known}};
    }
    return base::dump_json(json);
}

}  // namespace twinkle
