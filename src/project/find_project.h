#pragma once
// Where a project's manifest is.

#include <filesystem>
#include <optional>
#include <string>

namespace twinkle::project {

struct ProjectFiles {
    std::filesystem::path folder;
    std::filesystem::path manifest;  // twinkle.toml or pyproject.toml
    std::string note;                // to be said: both are there
};

// With `project`, finds that folder (or manifest file), which must have a manifest
// (Error(not_found)). Without, finds the nearest folder from `start` upwards that has twinkle.toml,
// else the nearest with a pyproject.toml that has tables for twinkle or kernels; none if there is
// none.
std::optional<ProjectFiles> find_project(const std::optional<std::filesystem::path>& project,
                                         const std::filesystem::path& start);

}  // namespace twinkle::project
