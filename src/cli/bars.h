#pragma once
// Bars of times and errors: in the drawing of bench and in the page of kernelize.

#include <string>

#include "base/json.h"
#include "cli/measured_text.h"
#include "cli/svg.h"
#include "cli/time_axis.h"

namespace twinkle::cli {

// A line from quartile to quartile.
void draw_whisker(Svg& svg, const TimeAxis& axis, const Times& times, double y);
// A bar from zero to the median, and its whisker.
void draw_time(Svg& svg, const TimeAxis& axis, const Times& times, double y, std::string_view look);

// Draws for a page the times of a site, or of the whole model, before and after, from zero; empty
// where nothing was measured.
std::string time_bars(const base::Json& measured);
// Its error, with a mark where its bound is; empty where nothing was compared.
std::string error_bar(const base::Json& compared);
// Shares of a whole, as one bar: what was replaced, kept and put back.
std::string share_bar(std::size_t replaced, std::size_t kept, std::size_t reverted);

}  // namespace twinkle::cli
