#pragma once
// The report of bench as a drawing.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.bench/1. Bars for the whole models, from zero; for each site two dots on
// a logarithmic axis, so that equal distances are equal ratios. An SVG document.
std::string bench_drawing(const base::Json& report, const std::string& model);

}  // namespace twinkle::cli
