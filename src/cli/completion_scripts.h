#pragma once
// The completion scripts of three shells, made from the declarations. They are self-contained: they
// need no shell package, and do not run twinkle to complete a word.

#include <string>
#include <vector>

#include "cli/command.h"

namespace twinkle::cli {

std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

}  // namespace twinkle::cli
