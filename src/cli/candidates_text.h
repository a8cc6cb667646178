#pragma once
// The mapping's other candidates for the sites of a report, and why they were not taken: with -v.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// One line for sites of one class or function with equal candidates; omits sites with only one.
// "RMSNorm (17 sites): not acme/norm: RMSNorm (it is for cuda)".
std::string candidates_text(const base::Json& report, std::size_t columns);

}  // namespace twinkle::cli
