#include "cli/bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/report_parts.h"

namespace twinkle::cli {
namespace {

constexpr double part_width = 300;
constexpr double row_height = 12;
constexpr double bar_height = 16;

}  // namespace

void draw_whisker(Svg& svg, const TimeAxis& axis, const Times& times, double y) {
    const double left = axis.at(times.lower);
    const double right = axis.at(times.upper);
    svg.line(left, y, right, y, "whisker");
    svg.line(left, y - 4, left, y + 4, "whisker");
    svg.line(right, y - 4, right, y + 4, "whisker");
}

void draw_time(Svg& svg, const TimeAxis& axis, const Times& times, double y,
               std::string_view look) {
    svg.box(axis.left(), y - bar_height / 2, axis.at(times.median) - axis.left(), bar_height, look);
    draw_whisker(svg, axis, times, y);
}

std::string time_bars(const base::Json& measured) {
    const auto before = times_of(measured, "original_us");
    const auto after = times_of(measured, "kernelized_us");
    if (!before || !after) {
        return {};
    }
    const double most = std::max({before->median, before->upper, after->median, after->upper});
    const auto axis = TimeAxis::linear(most, 0, part_width);
    Svg svg(part_width);
    draw_time(svg, axis, *before, bar_height / 2, "original");
    draw_time(svg, axis, *after, bar_height * 1.5 + 3, "kernelized");
    return svg.part(2 * bar_height + 3,
                    fmt::format("original {}, kernelized {}", drawn_time(before->median),
                                drawn_time(after->median)));
}

std::string error_bar(const base::Json& compared) {
    const auto error = number_of(compared, "max_error");
    const auto allowed = number_of(compared, "allowed_error");
    if (!error || !allowed) {
        return {};
    }
    const double most = std::max({*error, *allowed, 1e-300}) * 1.02;
    const auto at = [&](double value) {
        return std::clamp(value / most * part_width, 0.0, part_width);
    };
    Svg svg(part_width);
    svg.box(0, 2, part_width, row_height - 4, "track");
    svg.box(0, 2, at(*error), row_height - 4, *error <= *allowed ? "good" : "bad");
    svg.line(at(*allowed), 0, at(*allowed), row_height, "bound");
    return svg.part(row_height, "error " + error_text(error) + ", allowed " + error_text(allowed));
}

std::string share_bar(std::size_t replaced, std::size_t kept, std::size_t reverted) {
    const auto whole = static_cast<double>(std::max<std::size_t>(replaced + kept + reverted, 1));
    Svg svg(part_width);
    svg.box(0, 2, part_width, row_height - 4, "track");
    double left = 0;
    for (const auto& [count, look] :
         {std::pair(replaced, "good"), std::pair(kept, "odd"), std::pair(reverted, "bad")}) {
        const double width = static_cast<double>(count) / whole * part_width;
        svg.box(left, 2, width, row_height - 4, look);
        left += width;
    }
    return svg.part(row_height,
                    fmt::format("{} replaced, {} kept, {} put back", replaced, kept, reverted));
}

}  // namespace twinkle::cli
