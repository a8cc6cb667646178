#pragma once
// Findings as SARIF 2.1.0, which code hosts show beside the source.

#include <filesystem>

#include "base/json.h"
#include "operations/check_kernel.h"

namespace twinkle::cli {

// Names files relative to the current folder if `checked` is below it: that is the root of the
// repository in CI.
base::Json sarif(const operations::CheckReport& report, const std::filesystem::path& checked);

}  // namespace twinkle::cli
