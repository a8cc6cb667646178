#pragma once
// twinkle inspect, for a model: the worker reads it, and the project's mapping says which of its
// classes kernels can replace.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/console.h"

namespace twinkle::cli {

struct ModelInspection {
    std::filesystem::path model;           // a file that is there
    std::optional<std::string> name{};     // in an archive of several models
    std::optional<std::string> graph{};    // only the graph of this class, instance or function
    std::optional<std::string> choices{};  // only to write this file of what serves its sites
    std::vector<std::string> kernels{};    // folders with kernels, before TWINKLE_KERNELS
    // Where to look for a project, which need not exist; none: as --project says.
    std::optional<std::filesystem::path> start{};
};

// The result of `inspect --json`, without printing it.
base::Json inspection_of(const ModelInspection& inspection, Console& console);

void inspect_model(const ModelInspection& inspection, Console& console);

}  // namespace twinkle::cli
