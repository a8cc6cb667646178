#pragma once
// inspect --load: loads a kernel's libraries in a child of the worker, for facts that only loading
// shows.

#include <filesystem>

#include "base/json.h"
#include "cli/console.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// Returns for a library or a build {"ok", "why", "operators": [{"name", "schema", "keys",
// "mutates", "declaration", "aliases", "found_statically"}], "problems", "output"}. The library's
// failures, crashes included, are in the result; throws Error only if there is no runtime or no
// such file.
base::Json load_kernel_apart(const std::filesystem::path& kernel, Console& console);

// If loading it has succeeded, the kernel's operators are those that it registered.
void note_registered(const base::Json& loaded, operations::KernelView& view);

// The same as text.
std::string load_report(const base::Json& loaded, std::size_t columns, bool color);

}  // namespace twinkle::cli
