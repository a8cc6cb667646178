#pragma once
// The worker's findings in a model, as text.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// With `details`, shows attributes and methods of every class, too.
std::string model_report(const base::Json& inspection, std::size_t columns, bool color,
                         bool details);

}  // namespace twinkle::cli
