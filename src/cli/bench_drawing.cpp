#include "cli/bench_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/bars.h"
#include "cli/bench_report.h"
#include "cli/json_fields.h"
#include "cli/measured_text.h"
#include "cli/report_parts.h"
#include "cli/svg.h"
#include "cli/time_axis.h"

namespace twinkle::cli {
namespace {

using base::Json;
using Anchor = Svg::Anchor;

constexpr double width = 960;
constexpr double margin = 20;
constexpr double plot_left = 330;   // names are left of it
constexpr double plot_right = 760;  // times and speedups right
constexpr std::size_t name_length = 48;
constexpr std::size_t most_sites = 60;

struct Site {
    std::string name;
    Times original;
    Times kernelized;
    const Json* speedup;
};

std::string look_of(const Json& speedup) {
    const auto difference = text_of(speedup, "difference");
    return difference == "faster" || difference == "slower" ? difference : "soft";
}

void draw_axis(Svg& svg, const TimeAxis& axis, double top, double bottom, std::string_view label) {
    for (const auto& tick : axis.ticks()) {
        const double x = axis.at(tick.us);
        svg.line(x, top, x, bottom, "grid");
        svg.text(x, bottom + 15, tick.label, "soft", Anchor::middle);
    }
    svg.line(axis.left(), bottom, axis.right(), bottom, "axis");
    svg.text((axis.left() + axis.right()) / 2, bottom + 33, label, "soft", Anchor::middle);
}

double draw_models(Svg& svg, const Json& report, double y) {
    double most = 0;
    for (const auto& model : list_of(report, "models")) {
        const auto times = model.is_object() ? times_of(model, "time_us") : std::nullopt;
        most = std::max(most, times ? std::max(times->median, times->upper) : 0);
    }
    if (most == 0) {
        return y;
    }
    constexpr double row = 28;
    const auto axis = TimeAxis::linear(most, plot_left, plot_right);
    const auto count = static_cast<double>(list_of(report, "models").size());
    svg.text(margin, y, "Whole model", "part");
    svg.text(plot_right + 12, y, "median, speedup", "soft");
    const double top = y + 12;
    draw_axis(svg, axis, top, top + count * row,
              "time of a run (the mark: its quartiles), speedup over the original");
    double middle = top + row / 2;
    for (const auto& model : list_of(report, "models")) {
        const auto name = model.is_object() ? text_of(model, "name") : "";
        svg.text(plot_left - 12, middle + 4, name, "", Anchor::end);
        if (const auto times = model.is_object() ? times_of(model, "time_us") : std::nullopt) {
            const auto& speedup = speedup_between(report, name, "original");
            draw_time(svg, axis, *times, middle,
                      name.ends_with("kernelized") ? "kernelized" : "original");
            svg.text(plot_right + 12, middle + 4, drawn_time(times->median));
            svg.text(plot_right + 80, middle + 4, speedup_text(speedup), look_of(speedup));
        } else {
            svg.text(plot_left + 6, middle + 4, "not measured", "soft");
        }
        middle += row;
    }
    return top + count * row + 70;
}

// The measured sites, only the slowest if there are too many; `left_out` of them are not
// drawn.
std::vector<Site> sites_to_draw(const Json& report, std::size_t& left_out) {
    std::vector<Site> sites;
    for (const auto& site : sites_of(report)) {
        const auto original = site.is_object() ? times_of(site, "original_us") : std::nullopt;
        const auto kernelized = site.is_object() ? times_of(site, "kernelized_us") : std::nullopt;
        if (original && kernelized) {
            sites.push_back(
                {shown_site(site), *original, *kernelized, &object_of(site, "speedup")});
        }
    }
    left_out = sites.size() > most_sites ? sites.size() - most_sites : 0;
    if (left_out > 0) {
        std::stable_sort(sites.begin(), sites.end(), [](const Site& one, const Site& other) {
            return one.original.median > other.original.median;
        });
        sites.resize(most_sites);
    }
    return sites;
}

void draw_legend(Svg& svg, double y) {
    svg.dot(plot_left + 6, y - 4, 5, "from");
    svg.text(plot_left + 16, y, "original");
    svg.dot(plot_left + 86, y - 4, 5, "kernelized");
    svg.text(plot_left + 96, y, "kernelized");
}

void draw_site(Svg& svg, const TimeAxis& axis, const Site& site, double y) {
    svg.begin_group(fmt::format("{}: original {}, kernelized {}", site.name,
                                drawn_time(site.original.median),
                                drawn_time(site.kernelized.median)));
    svg.text(plot_left - 12, y + 4, base::keep_tail(site.name, name_length), "", Anchor::end);
    // One is slightly above the other, so that both are visible if they are equal.
    const double above = y - 4;
    const double below = y + 4;
    svg.line(axis.at(site.original.median), above, axis.at(site.kernelized.median), below, "link");
    draw_whisker(svg, axis, site.original, above);
    draw_whisker(svg, axis, site.kernelized, below);
    svg.dot(axis.at(site.original.median), above, 4, "from");
    svg.dot(axis.at(site.kernelized.median), below, 4.5, "kernelized");
    svg.text(plot_right + 12, y + 4, drawn_time(site.kernelized.median));
    svg.text(plot_right + 80, y + 4, speedup_text(*site.speedup), look_of(*site.speedup));
    svg.end_group();
}

double draw_sites(Svg& svg, const Json& report, double y) {
    std::size_t left_out = 0;
    const auto sites = sites_to_draw(report, left_out);
    if (sites.empty()) {
        return y;
    }
    double least = sites.front().original.median;
    double most = least;
    for (const auto& site : sites) {
        least = std::min({least, site.original.lower, site.kernelized.lower});
        most = std::max({most, site.original.upper, site.kernelized.upper});
    }
    constexpr double row = 26;
    const auto axis = TimeAxis::logarithmic(least, most, plot_left, plot_right);
    svg.text(margin, y, "Sites", "part");
    draw_legend(svg, y);
    svg.text(plot_right + 12, y, "kernelized, speedup", "soft");
    const double top = y + 12;
    const double bottom = top + static_cast<double>(sites.size()) * row;
    draw_axis(svg, axis, top, bottom,
              "time of the site alone on its inputs, logarithmic (the mark: its quartiles)");
    double middle = top + row / 2;
    for (const auto& site : sites) {
        draw_site(svg, axis, site, middle);
        middle += row;
    }
    if (left_out > 0) {
        svg.text(margin, bottom + 33, fmt::format("{} faster sites are not drawn", left_out),
                 "soft");
    }
    return bottom + 70;
}

}  // namespace

std::string bench_drawing(const Json& report, const std::string& model) {
    Svg svg(width);
    const auto title = "twinkle bench " + base::printable(model);
    svg.text(margin, 32, base::keep_head(title, 90), "head");
    svg.text(margin, 52, base::keep_head(machine_text(report), 150), "soft");
    const double y = draw_sites(svg, report, draw_models(svg, report, 88));
    return svg.document(y - 20, title,
                        "How long the original and the kernelized model take, whole and site by "
                        "site. " +
                            machine_text(report));
}

}  // namespace twinkle::cli
