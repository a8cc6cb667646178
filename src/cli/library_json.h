#pragma once
// A shared library as inspect --json says it.

#include <string>

#include "base/json.h"
#include "binary/library.h"

namespace twinkle::cli {

// Lists symbols only on request: there may be a hundred thousand.
base::Json library_json(const std::string& path, const binary::Library& library, bool symbols);

}  // namespace twinkle::cli
