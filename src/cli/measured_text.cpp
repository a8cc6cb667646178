#include "cli/measured_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/json_fields.h"
#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

using base::Json;

constexpr double least_difference = 0.02;  // less is noise on any machine

Json to_json(const Times& times) {
    return {
        {"median", times.median}, {"lower_quartile", times.lower}, {"upper_quartile", times.upper}};
}

void add(Times& sum, const Times& one) {
    sum.median += one.median;
    sum.lower += one.lower;
    sum.upper += one.upper;
}

bool is_near_one(double ratio) {
    return std::abs(ratio - 1) < least_difference;
}

// The rule of single sites: quartiles that overlap, or medians that are nearly equal, are no
// difference.
const char* difference_between(const Times& original, const Times& kernelized, double ratio) {
    return is_near_one(ratio)                  ? "none"
           : kernelized.upper < original.lower ? "faster"
           : kernelized.lower > original.upper ? "slower"
                                               : "none";
}

}  // namespace

std::optional<Times> times_of(const Json& object, const char* key) {
    const auto& times = object_of(object, key);
    const auto median = number_of(times, "median");
    const auto lower = number_of(times, "lower_quartile");
    const auto upper = number_of(times, "upper_quartile");
    return median && lower && upper ? std::optional(Times{*median, *lower, *upper}) : std::nullopt;
}

std::string time_text(const std::optional<double>& microseconds) {
    if (!microseconds) {
        return {};
    }
    const double us = *microseconds;
    return us < 10    ? fmt::format("{:.1f} us", us)
           : us < 1e3 ? fmt::format("{:.0f} us", us)
           : us < 1e6 ? fmt::format("{:.3g} ms", us / 1e3)
                      : fmt::format("{:.3g} s", us / 1e6);
}

std::string spread_text(const std::optional<Times>& times) {
    if (!times) {
        return {};
    }
    const auto [median, lower, upper] = *times;
    const double share = median > 0 ? (upper - lower) / 2 / median : 0;
    return time_text(median) + (share > 1 ? " ±>100%" : fmt::format(" ±{:.0f}%", 100 * share));
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

base::Style speedup_style(const Json& speedup) {
    const auto difference = text_of(speedup, "difference");
    return difference == "faster"   ? base::Style::green
           : difference == "slower" ? base::Style::red
                                    : base::Style::plain;
}

std::string whole_speedup_text(const Json& whole) {
    const auto& speedup = object_of(whole, "speedup");
    const auto difference = text_of(speedup, "difference");
    if (difference == "none" && !is_near_one(number_of(speedup, "median").value_or(1))) {
        return "no sure difference";
    }
    if (difference != "faster" && difference != "slower") {
        return speedup_text(speedup);
    }
    const auto busy = whole.find("busy");
    return (busy != whole.end() && *busy == true ? "perhaps " : "") + speedup_text(speedup) +
           " the original";
}

void add_times_together(const std::vector<const Json*>& sites, Json& summary) {
    Times originals;
    Times kernelized;
    bool any = false;
    bool unknown = false;
    for (const Json* site : sites) {
        const auto before = times_of(*site, "original_us");
        const auto after = times_of(*site, "kernelized_us");
        if (before && after) {
            any = true;
            add(originals, *before);
            add(kernelized, *after);
            unknown = unknown || text_of(object_of(*site, "speedup"), "difference") == "unknown";
        }
    }
    if (!any) {
        return;
    }
    const double ratio = std::min(originals.median / std::max(kernelized.median, 1e-3), 1e300);
    summary["original_us"] = to_json(originals);
    summary["kernelized_us"] = to_json(kernelized);
    summary["speedup"] = {
        {"median", ratio},
        {"difference", unknown ? "unknown" : difference_between(originals, kernelized, ratio)}};
}

}  // namespace twinkle::cli
