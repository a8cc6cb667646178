#include "cli/bench_report.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"
#include "cli/sites_table.h"

namespace twinkle::cli {
namespace {

using base::Json;
using base::Table;

Table::Cell speedup_cell(const Json& speedup) {
    return {speedup_text(speedup), speedup_style(speedup)};
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
                   {spread_text(times_of(model, "time_us"))},
                   {runs > 0 ? fmt::format("{:.0f}", runs) : ""},
                   speedup_cell(speedup_between(report, name, "original")),
                   speedup_cell(speedup_between(report, name, "frozen original")),
                   {shown_text(model, "because")}});
    }
    return table.empty() ? "" : "\n" + table.render(columns, color);
}

}  // namespace

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

std::string bench_tables(const Json& report, bool each, std::size_t columns, bool color) {
    return sites_text(report, each, columns, color) + models_text(report, columns, color) + "\n" +
           machine_text(report) + "\n";
}

}  // namespace twinkle::cli
