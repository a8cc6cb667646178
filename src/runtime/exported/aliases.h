#pragma once
// Values that are other values: what a cast to the dtype gives that a tensor has already.

#include "runtime/exported/program.h"

#include <string>
#include <unordered_map>

namespace twinkle::runtime::exported {

// The value behind each such value, by what the archive says of dtypes, devices and strides.
std::unordered_map<std::string, std::string> aliases_in(const Graph& graph);

}  // namespace twinkle::runtime::exported
