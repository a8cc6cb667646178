#pragma once
// The mapping for kernelizing a model: the one of --map, or one resolved now.

#include <optional>
#include <string>

#include "base/json.h"
#include "cli/command.h"
#include "cli/console.h"
#include "protocol/request.h"
#include "twinkle/mapping.h"

namespace twinkle::cli {

// Adds to a request: the mapping, the folders of its kernels, and the warnings of resolving, for
// the report. With a target it is the mapping for that machine, and the device is the target's if
// none is named. Returns the mapping. Throws Error(out_of_date) if the project's lock does not fit
// its manifest.
Mapping add_mapping(protocol::Request& request, const Arguments& arguments, Console& console,
                    const std::optional<std::string>& target = std::nullopt);

// Adds to a request the folders of the kernels that the project's manifest names, if there is one:
// where the operators of an exported model are looked for. Without them it may work, too; why they
// are not there is shown with -v.
void add_project_kernels(protocol::Request& request, Console& console);

}  // namespace twinkle::cli
