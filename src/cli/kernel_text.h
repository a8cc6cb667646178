#pragma once
// A kernel as inspect shows it.

#include "cli/console.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// With `symbols`, prints those of its libraries, too.
void print_kernel(const operations::KernelView& view, bool symbols, Console& console);

}  // namespace twinkle::cli
