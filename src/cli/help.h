#pragma once
// The text of --help, from the declarations.

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command.h"

namespace twinkle::cli {

std::string general_help(const std::vector<Command>& commands, std::size_t columns, bool color);
std::string command_help(const Command& command, std::size_t columns, bool color);

}  // namespace twinkle::cli
