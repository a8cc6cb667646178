#pragma once
// From the functions and patterns of a manifest to those of a mapping.

#include <string>

#include "project/layer_candidates.h"

namespace twinkle::project {

// Whether "op:SPACE::name" means an operator of this kernel: "org/activation-cpu@1" is written as
// activation_cpu, since the namespace of a build changes with it.
bool names_kernel(const std::string& space, const std::string& kernel);

// Adds every binding to the mapping, and a decision for each. Python files are read, and become
// part of the mapping. Throws Error: not_found (a file, kernel, function or operator), malformed.
void add_functions(const Manifest& manifest, const LayerRules& rules, KernelLocator& locator,
                   BuildChooser& chooser, Mapping& mapping);

}  // namespace twinkle::project
