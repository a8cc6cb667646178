#include "cli/tuning_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/quantity.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"
#include "cli/site_groups.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

// Says who serves calls with so many rows; "" for the original.
std::string taken_at(const Json& site, double rows) {
    const auto& parts = list_of(site, "by_size");
    for (const auto& part : parts) {
        const auto up_to = number_of(part, "up_to");
        if (!up_to || rows <= *up_to) {
            return shown_text(part, "kernel");
        }
    }
    return shown_text(site, "status") == "replaced" ? shown_text(site, "kernel") : std::string();
}

// Sites whose rows are the same.
using Sites = std::vector<const Json*>;

// "Linear (2 sites)"; where others have the name, too, "Linear *.mlp.down_proj (2 sites)".
std::string label_of(const Sites& sites, bool is_alone) {
    std::string label = short_name(shown_text(*sites.front(), "of"));
    if (!is_alone) {
        std::vector<std::string> names;
        for (const Json* site : sites) {
            names.push_back(shown_text(*site, "site"));
        }
        label += " " + common_glob(names);
    }
    return sites.size() == 1 ? label : fmt::format("{} ({} sites)", label, sites.size());
}

void add_rows(const std::string& label, const Json& site, Table& table) {
    for (const auto& one : list_of(site, "measured")) {
        const auto rows = number_of(one, "rows").value_or(0);
        const auto us = number_of(one, "us");
        const auto problem = shown_text(one, "problem");
        const auto kernel = shown_text(one, "kernel");
        const bool taken = problem.empty() && taken_at(site, rows) == kernel;
        table.add({{label},
                   {fmt::format("{:.0f}", rows)},
                   {kernel.empty() ? "original" : kernel},
                   {time_text(us)},
                   {is_true(one, "from_store") ? "store" : "this run"},
                   {taken ? "chosen" : problem, taken              ? Style::green
                                                : !problem.empty() ? Style::yellow
                                                                   : Style::plain}});
    }
}

// "12 measurements of this run, 30 known from the store"
std::string told(const Json& report) {
    const auto& tuning = object_of(report, "tuning");
    return tuning.empty() ? ""
                          : fmt::format("{} of this run, {} known from the store\n",
                                        base::counted(count_in(tuning, "measured"), "measurement"),
                                        count_in(tuning, "known"));
}

}  // namespace

std::string tuning_text(const Json& report, std::size_t columns, bool color) {
    std::vector<Sites> groups;
    const auto same = [](const Json& one, const Json& other) {
        return std::ranges::all_of(std::vector{"of", "status", "kernel"},
                                   [&](const char* key) {
                                       return shown_text(one, key) == shown_text(other, key);
                                   }) &&
               list_of(one, "by_size") == list_of(other, "by_size") &&
               list_of(one, "measured") == list_of(other, "measured");
    };
    for (const auto& site : sites_of(report)) {
        if (!site.is_object() || list_of(site, "measured").empty()) {
            continue;
        }
        const auto known = std::ranges::find_if(
            groups, [&](const Sites& group) { return same(*group.front(), site); });
        known == groups.end() ? void(groups.push_back({&site})) : known->push_back(&site);
    }
    if (groups.empty()) {
        return "";
    }
    Table table({{"of", Table::Align::left, Table::Fit::tail},
                 {"rows up to", Table::Align::right},
                 {"kernel", Table::Align::left, Table::Fit::tail},
                 {"time", Table::Align::right},
                 {"from"},
                 {"is", Table::Align::left, Table::Fit::wrap}});
    for (const Sites& group : groups) {
        const auto is_alike = [&](const Sites& other) {
            return shown_text(*other.front(), "of") == shown_text(*group.front(), "of");
        };
        const bool is_alone = std::ranges::count_if(groups, is_alike) == 1;
        add_rows(label_of(group, is_alone), *group.front(), table);
    }
    return table.render(columns, color) + told(report);
}

}  // namespace twinkle::cli
