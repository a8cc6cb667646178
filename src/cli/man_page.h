#pragma once
// Manual pages in roff, made from the declarations.

#include <string>
#include <vector>

#include "cli/command.h"

namespace twinkle::cli {

std::string general_man_page(const std::vector<Command>& commands);  // twinkle(1)
std::string command_man_page(const Command& command);                // twinkle-NAME(1)

}  // namespace twinkle::cli
