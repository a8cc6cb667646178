#pragma once
// Chooses one build per kernel and device, reads it once, and writes down why.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/build.h"
#include "kernel/versions.h"
#include "project/kernel_locator.h"
#include "target/target.h"
#include "twinkle/mapping.h"

namespace twinkle::project {

struct ChosenBuild {
    MappedKernel kernel;
    kernel::LayerList layers;
    std::string package;  // for messages: the folder of layers.py
};

class BuildChooser {
public:
    BuildChooser(const target::Target& target, Mapping& mapping)
        : target_(target), mapping_(mapping) {}

    // None: no build for this device; the decision says why. The first answer for a kernel and
    // device is added to the mapping.
    const ChosenBuild* choose(const KernelSource& source, const std::string& device);

    // Why nothing fits on any of these devices, with every build that there is.
    [[noreturn]] void fail(const KernelSource& source, const std::vector<std::string>& devices,
                           const std::string& where) const;

    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    struct Loaded {
        kernel::Build build;
        kernel::LayerList layers;
    };
    const Loaded& load(const std::filesystem::path& folder, const std::string& name);
    std::filesystem::path folder_of(const KernelSource& source,
                                    const kernel::VariantChoice& choice) const;

    const target::Target& target_;
    Mapping& mapping_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<ChosenBuild>> chosen_;
    std::map<std::filesystem::path, Loaded> loaded_;
    std::vector<std::string> warnings_;
};

}  // namespace twinkle::project
