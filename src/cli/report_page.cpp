#include "cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/text.h"
#include "cli/bars.h"
#include "cli/html_page.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/module_tree_html.h"
#include "cli/report_parts.h"
#include "cli/site_details.h"
#include "cli/site_groups.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr std::size_t most_groups = 500;

std::string tile(const std::string& big, const std::string& bar, const std::string& small) {
    return element("div", "tile",
                   element("div", "big", big) + bar + element("div", "soft small", small));
}

std::string counts_tile(const Json& report) {
    const auto replaced = count_of(report, "replaced");
    const auto kept = count_of(report, "kept");
    const auto reverted = count_of(report, "reverted");
    return tile(fmt::format("{} of {} replaced", replaced,
                            base::counted(replaced + kept + reverted, "site")),
                share_bar(replaced, kept, reverted),
                fmt::format("{} kept, {} put back", kept, reverted));
}

std::string error_tile(const Json& report) {
    const auto& whole = object_of(report, "whole");
    const auto bar = error_bar(whole);
    if (bar.empty()) {
        return tile("not verified", "", "nothing was compared with the original");
    }
    return tile("error " + error_text(number_of(whole, "max_error")), bar,
                "of the whole model; " + error_text(number_of(whole, "allowed_error")) +
                    " is allowed (the mark)");
}

std::string speed_tile(const Json& report) {
    const auto& whole = object_of(report, "whole");
    const auto bars = time_bars(whole);
    if (bars.empty()) {
        const auto why = text_of(whole, "not_measured");
        return tile("not measured", "", xml_text(why.empty() ? "no run was timed" : why));
    }
    const auto difference = text_of(object_of(whole, "speedup"), "difference");
    const bool clear = difference == "faster" || difference == "slower";
    return tile(element("span", clear ? difference : "", xml_text(whole_speedup_text(whole))), bars,
                times_html(whole) + " a run");
}

std::string group_row(const SiteGroup& group) {
    const Json& site = group.summary;
    const auto kernel = shown_text(site, "kernel");
    const auto title =
        element("span", "name", xml_text(group_title(group.sites.size(), site))) +
        (kernel.empty() ? "" : " <span class=\"soft\">→</span> " + xml_text(kernel)) + " " +
        status_html(site) + element("div", "where soft small mono", xml_text(shown_site(site)));
    const bool replaced = status_look(site) == "replaced";
    const auto bar = error_bar(site);
    const auto error =
        bar + (bar.empty() ? "" : element("div", "soft small", "error " + error_html(site)));
    const auto times = time_bars(site) + element("div", "soft small", times_html(site, true));
    const auto why = element("div", "small", xml_text(text_of(site, "because")));
    return element("div", "row",
                   element("div", "", title) + element("div", "", error) +
                       element("div", "", replaced ? times : why));
}

bool any_measured(const Json& report) {
    return std::ranges::any_of(sites_of(report), [](const Json& site) {
        return site.is_object() && !time_bars(site).empty();
    });
}

// What the bars of times mean.
std::string legend(const Json& report) {
    return any_measured(report)
               ? element("p", "soft small",
                         "<span class=\"key before\"></span>the original"
                         "<span class=\"key after\"></span>with the kernel; the mark: quartiles")
               : "";
}

std::string groups_html(const Json& report) {
    const auto groups = group_sites(report);
    std::string html;
    for (std::size_t i = 0; i < std::min(groups.size(), most_groups); ++i) {
        html += disclosure("site " + status_look(groups[i].summary), group_row(groups[i]),
                           element("div", "inside", site_details(groups[i])));
    }
    if (groups.size() > most_groups) {
        html += element("p", "soft",
                        fmt::format("{} more are not shown; the report as JSON has all",
                                    groups.size() - most_groups));
    }
    return groups.empty()
               ? element("p", "soft", "No site: nothing that the mapping names is in this model.")
               : html;
}

std::string warnings_html(const Json& report) {
    std::string html;
    for (const auto& warning : list_of(report, "warnings")) {
        html += warning.is_string()
                    ? element("li", "", xml_text(warning.get_ref<const std::string&>()))
                    : "";
    }
    return html.empty() ? "" : element("h2", "", "Warnings") + element("ul", "warnings", html);
}

std::string facts_of(const Json& report) {
    std::vector<std::string> parts;
    for (const char* key : {"mode", "device", "dtype"}) {
        const auto value = shown_text(report, key);
        if (!value.empty()) {
            parts.push_back(std::string(key) + " " + value);
        }
    }
    return base::join(parts, " · ");
}

}  // namespace

std::string report_page(const Json& report, const std::string& model, const std::string& closing) {
    std::string body = element("h1", "", xml_text(model) + ", kernelized") +
                       element("p", "soft", xml_text(facts_of(report)));
    body += element("div", "tiles", counts_tile(report) + error_tile(report) + speed_tile(report));
    for (const auto& line : base::split(closing, '\n')) {
        body += line.empty() ? "" : element("p", "soft small", xml_text(line));
    }
    body += element("h2", "", "What became of the sites") + legend(report) + groups_html(report);
    body += element("h2", "", "The model") + module_tree_html(report);
    return html_page("twinkle kernelize " + model, body + warnings_html(report));
}

}  // namespace twinkle::cli
