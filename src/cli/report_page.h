#pragma once
// The report of kernelize as a page for a browser.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.kernelize/1, and its "modules" if it has any. `closing`: the lines with
// which the report on a terminal ends, on its verification.
std::string report_page(const base::Json& report, const std::string& model,
                        const std::string& closing);

}  // namespace twinkle::cli
