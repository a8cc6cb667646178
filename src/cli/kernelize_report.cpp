#include "cli/kernelize_report.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

Table site_table(const Json& report, Notes* notes, const std::string& implied) {
    const auto right = Table::Align::right;
    Table table({{"site", Table::Align::left, Table::Fit::tail},
                 {"of", Table::Align::left, Table::Fit::tail},
                 {"status"},
                 {"kernel", Table::Align::left, Table::Fit::tail},
                 {"error", right},
                 {"allowed", right},
                 {"before", right},
                 {"after", right},
                 {notes != nullptr ? "why" : "because"}});
    for (const auto& site : sites_of(report)) {
        if (!site.is_object()) {
            continue;
        }
        const auto status = shown_text(site, "status");
        const auto because = shown_text(site, "because");
        const auto kernel = shown_text(site, "kernel");
        table.add({{shown_site(site)},
                   {short_name(shown_text(site, "of"))},
                   {status, status_style(status)},
                   {kernel.substr(kernel.starts_with(implied) ? implied.size() : 0)},
                   {error_text(number_of(site, "max_error"))},
                   {error_text(number_of(site, "allowed_error"))},
                   {time_text(number_of(site, "time_before_us"))},
                   {time_text(number_of(site, "time_after_us"))},
                   {notes != nullptr ? notes->number(because) : because}});
    }
    return table;
}

std::string whole_model(const Json& report) {
    const auto whole = report.find("whole");
    if (whole == report.end() || !whole->is_object()) {
        return {};
    }
    std::vector<std::string> parts;
    if (const auto error = number_of(*whole, "max_error")) {
        const auto allowed = error_text(number_of(*whole, "allowed_error"));
        parts.push_back("error " + error_text(error) +
                        (allowed.empty() ? "" : " (allowed " + allowed + ")"));
    }
    const auto before = number_of(*whole, "time_before_us");
    const auto after = number_of(*whole, "time_after_us");
    if (before && after) {
        parts.push_back(time_text(before) + " before, " + time_text(after) + " after" +
                        (*after > 0 ? fmt::format(" ({:.2f}x)", *before / *after) : ""));
    }
    const auto because = shown_text(*whole, "because");
    if (!because.empty()) {
        parts.push_back(because);
    }
    return parts.empty() ? "" : "whole model: " + base::join(parts, "; ") + "\n";
}

}  // namespace

std::string kernelize_table(const Json& report, std::size_t columns, bool color) {
    return sites_text(report, site_table, columns, color) + whole_model(report);
}

}  // namespace twinkle::cli
