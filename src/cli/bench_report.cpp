#include "cli/bench_report.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Style;
using base::Table;

// "353 us ±2%": the median, and half the interquartile range.
std::string spread_text(const Json& times) {
    const auto median = number_of(times, "median");
    const auto lower = number_of(times, "lower_quartile");
    const auto upper = number_of(times, "upper_quartile");
    if (!median || !lower || !upper) {
        return {};
    }
    const double share = *median > 0 ? (*upper - *lower) / 2 / *median : 0;
    return time_text(median) + (share > 1 ? " ±>100%" : fmt::format(" ±{:.0f}%", 100 * share));
}

Table::Cell speedup_cell(const Json& speedup) {
    const auto difference = text_of(speedup, "difference");
    return {speedup_text(speedup), difference == "faster"   ? Style::green
                                   : difference == "slower" ? Style::red
                                                            : Style::plain};
}

Table site_times(const Json& report, Notes* notes, const std::string& implied) {
    const auto right = Table::Align::right;
    Table table({{"site", Table::Align::left, Table::Fit::tail},
                 {"status"},
                 {"kernel", Table::Align::left, Table::Fit::tail},
                 {"calls", right},
                 {"error", right},
                 {"allowed", right},
                 {"original", right},
                 {"kernelized", right},
                 {"speedup"},
                 {notes != nullptr ? "why" : "because"}});
    for (const auto& site : sites_of(report)) {
        if (!site.is_object()) {
            continue;
        }
        const auto status = shown_text(site, "status");
        const auto kernel = shown_text(site, "kernel");
        const auto calls = number_of(site, "calls").value_or(0);
        // A replaced site is explained by its kernel; only others need a reason.
        const auto because = status == "replaced" ? "" : shown_text(site, "because");
        table.add({{shown_site(site)},
                   {status, status_style(status)},
                   {kernel.substr(kernel.starts_with(implied) ? implied.size() : 0)},
                   {calls > 1 ? fmt::format("{:.0f}", calls) : ""},
                   {error_text(number_of(site, "max_error"))},
                   {error_text(number_of(site, "allowed_error"))},
                   {spread_text(object_of(site, "original_us"))},
                   {spread_text(object_of(site, "kernelized_us"))},
                   speedup_cell(object_of(site, "speedup")),
                   {notes != nullptr ? notes->number(because) : because}});
    }
    return table;
}

std::string models_text(const Json& report, std::size_t columns, bool color) {
    const auto right = Table::Align::right;
    Table table({{"whole model"},
                 {"error", right},
                 {"allowed", right},
                 {"time", right},
                 {"runs", right},
                 {"over the original"},
                 {"over the frozen original"},
                 {"because", Table::Align::left, Table::Fit::wrap}});
    for (const auto& model : list_of(report, "models")) {
        if (!model.is_object()) {
            continue;
        }
        const auto name = text_of(model, "name");
        const auto runs = number_of(model, "runs").value_or(0);
        table.add({{base::printable(name)},
                   {error_text(number_of(model, "max_error"))},
                   {error_text(number_of(model, "allowed_error"))},
                   {spread_text(object_of(model, "time_us"))},
                   {runs > 0 ? fmt::format("{:.0f}", runs) : ""},
                   speedup_cell(speedup_between(report, name, "original")),
                   speedup_cell(speedup_between(report, name, "frozen original")),
                   {shown_text(model, "because")}});
    }
    return table.empty() ? "" : "\n" + table.render(columns, color);
}

}  // namespace

const Json& object_of(const Json& object, const char* key) {
    static const Json none = Json::object();
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : none;
}

std::string speedup_text(const Json& speedup) {
    const auto difference = text_of(speedup, "difference");
    const auto median = number_of(speedup, "median");
    return !median                   ? ""
           : difference == "none"    ? "no difference"
           : difference == "unknown" ? "too few runs to tell"
           : *median < 1000          ? fmt::format("{:.2f}x", *median)
                                     : fmt::format("{:.3g}x", *median);
}

const Json& speedup_between(const Json& report, const std::string& of, const std::string& over) {
    static const Json none = Json::object();
    for (const auto& speedup : list_of(report, "speedups")) {
        if (speedup.is_object() && text_of(speedup, "of") == of &&
            text_of(speedup, "over") == over) {
            return speedup;
        }
    }
    return none;
}

std::string machine_text(const Json& report) {
    const auto& machine = object_of(report, "machine");
    std::vector<std::string> parts;
    if (const auto gpu = shown_text(object_of(machine, "gpu"), "name"); !gpu.empty()) {
        parts.push_back(gpu);
    }
    if (const auto cpu = shown_text(machine, "cpu"); !cpu.empty()) {
        parts.push_back(cpu);
    }
    const auto threads = number_of(machine, "threads");
    const auto cores = number_of(machine, "cores");
    if (threads && cores) {
        parts.push_back(fmt::format("{:.0f} thread{} on {:.0f} core{}", *threads,
                                    *threads == 1 ? "" : "s", *cores, *cores == 1 ? "" : "s"));
    }
    if (const auto torch = shown_text(machine, "torch"); !torch.empty()) {
        const auto capability = shown_text(machine, "torch_capability");
        parts.push_back("LibTorch " + torch + (capability.empty() ? "" : " (" + capability + ")"));
    }
    if (const auto step = shown_text(report, "step"); !step.empty()) {
        parts.push_back("a run is " + step);
    }
    return base::join(parts, "; ");
}

std::string bench_tables(const Json& report, std::size_t columns, bool color) {
    return sites_text(report, site_times, columns, color) + models_text(report, columns, color) +
           "\n" + machine_text(report) + "\n";
}

}  // namespace twinkle::cli
