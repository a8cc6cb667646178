#pragma once
// The operators that a build's libraries register, as the worker hears them from a confined child.

#include "cli/console.h"
#include "project/ask_operators.h"

namespace twinkle::cli {

// Serves resolving. What the worker refuses, and the absence of a LibTorch, is a reason, no error:
// the build may be for another machine. `console` must outlive it.
project::AskOperators operators_by_loading(Console& console);

}  // namespace twinkle::cli
