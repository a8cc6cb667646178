#pragma once
// The model's modules in a page, each site in the colour of what became of it.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

std::string module_tree_html(const base::Json& report);

}  // namespace twinkle::cli
