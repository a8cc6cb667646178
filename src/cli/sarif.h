#pragma once
// Findings as SARIF 2.1.0, which code hosts show beside the source.

#include "base/json.h"
#include "operations/check_kernel.h"

namespace twinkle::cli {

base::Json sarif(const operations::CheckReport& report);

}  // namespace twinkle::cli
