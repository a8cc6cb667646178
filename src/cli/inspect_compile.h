#pragma once
// twinkle inspect calls a layer or function usable only if it compiles: the worker compiles each
// against the operators' schemas.

#include "cli/console.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// Completes the verdicts that a kernel's source alone has got. Without a runtime, or without the
// kernel's libraries, they say that nothing was compiled.
void compile_sources(operations::KernelView& view, Console& console);

}  // namespace twinkle::cli
