#pragma once
// The completion scripts of three shells, from the declarations. They are complete in themselves:
// no shell package is needed, and twinkle is not run to complete a word.

#include <string>
#include <vector>

#include "cli/command.h"

namespace twinkle::cli {

std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

}  // namespace twinkle::cli
