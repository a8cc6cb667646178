#pragma once
// From the bindings of a manifest to the layers of a mapping.

#include <filesystem>
#include <string>

#include "project/build_chooser.h"
#include "project/kernel_locator.h"
#include "project/manifest.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

struct LayerRules {
    const target::Target& target;
    std::filesystem::path presets;  // where layers without classes look for them
    bool strict = false;
    std::string mode = {};  // that a model is kernelized for; empty: not known yet
};

// Adds the layers of every binding to the mapping, and a decision for each.
void add_layers(const Manifest& manifest, const LayerRules& rules, KernelLocator& locator,
                BuildChooser& chooser, Mapping& mapping);

}  // namespace twinkle::project
