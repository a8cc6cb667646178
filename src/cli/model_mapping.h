#pragma once
// The mapping that a model is kernelized with: that of --map, or of resolving now.

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/console.h"
#include "protocol/request.h"
#include "twinkle/mapping.h"

namespace twinkle::cli {

// Into a request: the mapping, the folders of its kernels, and what resolving warned of, for the
// report. With a target the mapping for that machine, and its device where none is named. Returns
// the mapping. Throws Error(out_of_date) where the project's lock does not fit its manifest.
Mapping add_mapping(protocol::Request& request, const Arguments& arguments, Console& console,
                    const std::optional<std::string>& target = std::nullopt);

}  // namespace twinkle::cli
