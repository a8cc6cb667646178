#pragma once
// The rules for the Python of a Hub kernel: what it imports, and its layers.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/finding.h"
#include "kernel/layers.h"
#include "kernel/verdict.h"
#include "target/backend.h"

namespace twinkle::kernel {

struct PackageRules {
    std::string name;                         // of the package: "layer_norm"; empty: unknown
    std::vector<std::string> python_depends;  // as declared
    std::string folder;                       // in front of file names, for messages
};

void check_package(const PackageSources& sources, const PackageRules& rules, Findings& findings);

// The dependencies that are declared are ones that the Hub allows for the backend.
void check_dependencies(std::span<const std::string> declared,
                        std::optional<target::BackendKind> backend, const std::string& file,
                        Findings& findings);

// Layers that break the rules, and, as notes, those that only Python can use.
void check_layers(const PackageSources& sources, const PythonNeeds& needs,
                  const std::string& folder, Findings& findings);

bool in_python_library(std::string_view module);  // of 3.9 to 3.13

}  // namespace twinkle::kernel
