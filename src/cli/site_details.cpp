#include "cli/site_details.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/html_page.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"
#include "cli/svg.h"
#include "cli/time_axis.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr std::size_t most_listed = 200;

std::string cell(const std::string& text, bool number = false) {
    return element("td", number ? "number" : "mono", xml_text(text));
}

std::string candidates_html(const Json& site) {
    std::string rows;
    for (const auto& one : list_of(site, "candidates")) {
        const auto because = shown_text(one, "because");
        rows += element("tr", "",
                        cell(shown_text(one, "kernel")) +
                            element("td", "", because.empty() ? "taken" : xml_text(because)));
    }
    return list_of(site, "candidates").size() < 2
               ? ""
               : element("div", "scroll",
                         element("table", "", "<tr><th>candidate</th><th>was</th></tr>" + rows));
}

// Columns that no site fills are left out.
std::string sites_html(const std::vector<const Json*>& sites) {
    const auto any = [&](const char* key) {
        return std::ranges::any_of(sites, [&](const Json* site) {
            return site->contains(key) && !(*site)[key].is_null();
        });
    };
    const bool compared = any("max_error");
    const bool measured = any("original_us");
    const auto first = text_of(*sites.front(), "because");
    const bool reasons = std::ranges::any_of(
        sites, [&](const Json* site) { return text_of(*site, "because") != first; });
    std::string rows = "<tr><th>site</th>";
    rows += compared ? "<th class=\"number\">error</th><th class=\"number\">allowed</th>" : "";
    rows +=
        measured ? "<th class=\"number\">original</th><th class=\"number\">kernelized</th>" : "";
    rows += reasons ? "<th>why</th></tr>" : "</tr>";
    for (std::size_t i = 0; i < std::min(sites.size(), most_listed); ++i) {
        const Json& site = *sites[i];
        std::string row = cell(shown_site(site));
        if (compared) {
            row += cell(error_text(number_of(site, "max_error")), true) +
                   cell(error_text(number_of(site, "allowed_error")), true);
        }
        if (measured) {
            row += cell(spread_text(times_of(site, "original_us")), true) +
                   cell(spread_text(times_of(site, "kernelized_us")), true);
        }
        row += reasons ? element("td", "", xml_text(text_of(site, "because"))) : "";
        rows += element("tr", "", row);
    }
    const auto more = sites.size() > most_listed
                          ? element("p", "soft small",
                                    fmt::format("{} more; the report as JSON has all",
                                                sites.size() - most_listed))
                          : "";
    return element("div", "scroll", element("table", "", rows)) + more;
}

}  // namespace

std::string status_look(const Json& site) {
    const auto status = text_of(site, "status");
    return status == "replaced" || status == "reverted" ? status : "kept";
}

std::string status_html(const Json& site) {
    const auto look = status_look(site);
    return element("span", "status " + look, look == "reverted" ? "put back" : look);
}

std::string error_html(const Json& compared) {
    const auto error = number_of(compared, "max_error");
    return !error ? ""
                  : fmt::format("{} of {} allowed", error_text(error),
                                error_text(number_of(compared, "allowed_error")));
}

std::string times_html(const Json& measured, bool speedup) {
    const auto before = times_of(measured, "original_us");
    const auto after = times_of(measured, "kernelized_us");
    if (!before || !after) {
        return {};
    }
    const auto& ratio = object_of(measured, "speedup");
    const auto look = text_of(ratio, "difference");
    return xml_text(drawn_time(before->median) + " → " + drawn_time(after->median)) +
           (!speedup ? ""
                     : " " + element("span", look == "faster" || look == "slower" ? look : "",
                                     xml_text(speedup_text(ratio))));
}

std::string site_details(const SiteGroup& group) {
    const Json& site = group.summary;
    return facts_list(
               {{"why", text_of(site, "because")},
                {"is", text_of(site, "of")},
                {"kernel", text_of(site, "kernel")},
                {"build", text_of(site, "variant")},
                {group.sites.size() > 1 ? "" : "site",
                 group.sites.size() > 1 ? "" : shown_site(site)},
                {group.sites.size() > 1 ? "error nearest to its bound" : "error", error_html(site)},
                {"time", group.sites.size() > 1 ? ""
                         : times_of(site, "original_us")
                             ? spread_text(times_of(site, "original_us")) + " → " +
                                   spread_text(times_of(site, "kernelized_us"))
                             : ""}}) +
           candidates_html(site) + (group.sites.size() > 1 ? sites_html(group.sites) : "");
}

}  // namespace twinkle::cli
