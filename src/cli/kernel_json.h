#pragma once
// A kernel as inspect --json says it.

#include "base/json.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// With `symbols`, has those of its libraries, too.
base::Json kernel_json(const operations::KernelView& view, bool symbols);

}  // namespace twinkle::cli
