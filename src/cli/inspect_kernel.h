#pragma once
// twinkle inspect, for a kernel or one of its libraries.

#include <string>

#include "base/json.h"
#include "binary/library.h"
#include "cli/console.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// Lists symbols only on request: there may be a hundred thousand.
base::Json kernel_json(const operations::KernelView& view, bool symbols);
base::Json library_json(const std::string& path, const binary::Library& library, bool symbols);

void print_kernel(const operations::KernelView& view, bool symbols, Console& console);
void print_library(const std::string& path, const binary::Library& library, bool symbols,
                   Console& console);

}  // namespace twinkle::cli
