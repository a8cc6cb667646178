#include "cli/sites_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/table.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"
#include "cli/site_groups.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Table;

// What a line begins with, and of which site or sites it tells.
struct Line {
    Table::Cell first;
    Table::Cell second;
    const Json* site;
    std::size_t sites = 1;  // of which it tells
    bool explained = true;  // whether its reason is shown
};

// What is common to the lines of a table. With notes, reasons are numbers in them, and the prefix
// `implied`, common to all kernels, is cut.
struct Look {
    bool each;
    Notes* notes = nullptr;
    std::string implied{};
    bool where = true;  // of which sites a group consists
    bool times = true;  // not only the speedup
};

constexpr std::size_t longest_title = 32;  // of a group

// How many of its calls were measured, if that says something.
std::string calls_text(const Json& site, const Line& line) {
    const auto calls = count_in(site, "calls");
    return calls > line.sites ? std::to_string(calls) : "";
}

Table table_of(const std::vector<Line>& lines, const Look& look) {
    const auto right = Table::Align::right;
    const auto tail = Table::Fit::tail;
    Table table(
        {{look.each ? "site" : "sites", Table::Align::left, look.each ? tail : Table::Fit::keep},
         {look.each ? "of" : "where", Table::Align::left, tail, 16},
         {"status"},
         {"kernel", Table::Align::left, tail, 12},
         {"calls", right},
         {"error", right},
         {"allowed", right},
         {"original", right},
         {"kernelized", right},
         {"speedup"},
         {look.notes != nullptr ? "why" : "because"}});
    for (const Line& line : lines) {
        const Json& site = *line.site;
        const auto status = shown_text(site, "status");
        const auto because = line.explained ? shown_text(site, "because") : "";
        const auto kernel = shown_text(site, "kernel");
        const auto& speedup = object_of(site, "speedup");
        table.add({line.first,
                   look.where ? line.second : Table::Cell(""),
                   {status_text(status), status_style(status)},
                   {kernel.substr(kernel.starts_with(look.implied) ? look.implied.size() : 0)},
                   {calls_text(site, line)},
                   {error_text(number_of(site, "max_error"))},
                   {error_text(number_of(site, "allowed_error"))},
                   {look.times ? spread_text(times_of(site, "original_us")) : ""},
                   {look.times ? spread_text(times_of(site, "kernelized_us")) : ""},
                   {speedup_text(speedup), speedup_style(speedup)},
                   {look.notes != nullptr ? look.notes->number(because) : because}});
    }
    return table;
}

std::vector<Line> lines_of_sites(const Json& report) {
    std::vector<Line> lines;
    for (const auto& site : sites_of(report)) {
        if (site.is_object()) {
            lines.push_back({shown_site(site), short_name(shown_text(site, "of")), &site});
        }
    }
    return lines;
}

// A group of replaced sites is explained by its kernel; only others need a reason.
std::vector<Line> lines_of_groups(const std::vector<SiteGroup>& groups) {
    std::size_t most = 0;
    for (const auto& group : groups) {
        most = std::max(most, group.sites.size());
    }
    std::vector<Line> lines;
    for (const auto& group : groups) {
        const Json& site = group.summary;
        const auto title = group_title(group.sites.size(), site, std::to_string(most).size());
        lines.push_back({base::keep_head(title, longest_title), shown_site(site), &site,
                         group.sites.size(), shown_text(site, "status") != "replaced"});
    }
    return lines;
}

// "twinkle-pack: " if every kernel begins with it: the lines need not repeat it.
std::string common_kernel(const Json& report) {
    std::string common;
    for (const auto& site : sites_of(report)) {
        const auto kernel = shown_text(site, "kernel");
        const auto end = kernel.find(": ");
        if (kernel.empty()) {
            continue;
        }
        const auto prefix = end == std::string::npos ? "" : kernel.substr(0, end + 2);
        if (prefix.empty() || (!common.empty() && prefix != common)) {
            return {};
        }
        common = prefix;
    }
    return common;
}

std::string totals_text(const Json& report, const std::string& implied) {
    const auto replaced = count_of(report, "replaced");
    const auto kept = count_of(report, "kept");
    const auto reverted = count_of(report, "reverted");
    std::string text =
        fmt::format("{}: {} replaced, {} kept, {} put back",
                    base::counted(replaced + kept + reverted, "site"), replaced, kept, reverted);
    if (!implied.empty()) {
        text += "; every kernel is from " + implied.substr(0, implied.size() - 2);
    }
    for (const char* key : {"mode", "device"}) {
        const auto value = shown_text(report, key);
        text += value.empty() ? "" : fmt::format("; {} {}", key, value);
    }
    return text;
}

}  // namespace

std::string sites_text(const Json& report, bool each, std::size_t columns, bool color) {
    const auto groups = each ? std::vector<SiteGroup>() : group_sites(report);
    const auto lines = each ? lines_of_sites(report) : lines_of_groups(groups);
    Notes notes;
    Look look{.each = each};
    auto table = table_of(lines, look);
    const bool narrow = columns > 0 && table.width() > columns;
    if (narrow) {
        look.implied = common_kernel(report);
        look.notes = &notes;
        table = table_of(lines, look);
    }
    // What is left out first is what matters least.
    for (const auto& [where, times] :
         {std::pair(each, true), std::pair(true, false), std::pair(each, false)}) {
        if (narrow && table.least_width() > columns) {
            look.where = where;
            look.times = times;
            table = table_of(lines, look);
        }
    }
    const std::string sites = table.empty()
                                  ? "no site: nothing that the mapping names is in this model\n"
                                  : table.render(columns, color);
    const auto totals = totals_text(report, look.implied);
    return sites + notes.render(columns) + "\n" +
           (columns == 0 ? totals : base::wrap(totals, columns)) + "\n";
}

}  // namespace twinkle::cli
