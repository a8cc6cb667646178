#include "cli/tuning_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/quantity.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"

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

void add_rows(const Json& site, std::size_t sites, Table& table) {
    const auto name = short_name(shown_text(site, "of"));
    const auto label = sites == 1 ? name : fmt::format("{} ({} sites)", name, sites);
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
    std::vector<std::pair<const Json*, std::size_t>> groups;
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
            groups, [&](const auto& group) { return same(*group.first, site); });
        known == groups.end() ? void(groups.emplace_back(&site, 1)) : void(++known->second);
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
    for (const auto& [site, count] : groups) {
        add_rows(*site, count, table);
    }
    return table.render(columns, color) + told(report);
}

}  // namespace twinkle::cli
