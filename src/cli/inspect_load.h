#pragma once
// inspect --load: a kernel's libraries loaded in a child of the worker, for what only loading
// tells.

#include <filesystem>

#include "base/json.h"
#include "cli/console.h"
#include "operations/inspect_kernel.h"

namespace twinkle::cli {

// Of a library or a build: {"ok", "why", "operators": [{"name", "schema", "keys", "mutates",
// "declaration", "aliases", "found_statically"}], "problems", "output"}. What the library does
// wrong, a crash too, is in the result; Error only where there is no runtime or no such file.
base::Json load_kernel_apart(const std::filesystem::path& kernel, Console& console);

// The kernel's operators are those that were registered, if loading it has succeeded.
void note_registered(const base::Json& loaded, operations::KernelView& view);

// The same for a person.
std::string load_report(const base::Json& loaded, std::size_t columns, bool color);

}  // namespace twinkle::cli
