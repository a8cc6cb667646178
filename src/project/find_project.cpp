#include "project/find_project.h"

#include "base/file.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

constexpr const char* own_manifest = "twinkle.toml";
constexpr const char* python_manifest = "pyproject.toml";

// Something else under the name of a manifest is not passed over: the manifest is missed then.
bool is_manifest(const fs::path& path) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
        throw Error(ErrorCode::malformed,
                    {.what = "the manifest is no file",
                     .where = base::display_path(path),
                     .why = fs::is_directory(status) ? "it is a folder"
                            : fs::is_fifo(status)    ? "it is a pipe"
                                                     : "it is neither a file nor a folder",
                     .hint = "take it away, or put a file in its place"});
    }
    return fs::is_regular_file(status);
}

// Most Python projects have nothing to do with kernels.
bool has_our_tables(const fs::path& pyproject) {
    std::error_code error;
    if (!fs::is_regular_file(pyproject, error)) {
        return false;
    }
    try {
        const std::string text = base::read_file(pyproject, "manifest", 4u << 20);
        return text.find("tool.twinkle") != std::string::npos ||
               text.find("tool.kernels") != std::string::npos;
    } catch (const Error&) {
        return false;
    }
}

ProjectFiles own(const fs::path& folder) {
    ProjectFiles found{folder, folder / own_manifest, ""};
    if (has_our_tables(folder / python_manifest)) {
        found.note = "both twinkle.toml and pyproject.toml ask for kernels; twinkle.toml is used";
    }
    return found;
}

ProjectFiles find_in(const fs::path& path) {
    std::error_code error;
    if (fs::exists(path, error) && !fs::is_directory(path, error) && is_manifest(path)) {
        return {path.parent_path(), path, ""};
    }
    if (is_manifest(path / own_manifest)) {
        return own(path);
    }
    if (is_manifest(path / python_manifest)) {
        return {path, path / python_manifest, ""};
    }
    throw Error(ErrorCode::not_found,
                {.what = "no manifest in the project folder",
                 .where = base::display_path(path),
                 .why = fs::is_directory(path, error) ? "there is no twinkle.toml or pyproject.toml"
                                                      : "there is no such folder",
                 .hint = fs::is_directory(path, error)
                             ? "twinkle init --project " + base::display_path(path) +
                                   " writes one; or leave --project out"
                             : "name a folder that is there, or leave --project out"});
}

}  // namespace

std::optional<ProjectFiles> find_project(const std::optional<fs::path>& project,
                                         const fs::path& start) {
    if (project) {
        return find_in(base::absolute_path(*project));
    }
    const fs::path first = base::absolute_path(start / ".").parent_path();
    const auto upwards = [&](auto&& fits) -> std::optional<fs::path> {
        for (fs::path folder = first;; folder = folder.parent_path()) {
            if (fits(folder)) {
                return folder;
            }
            if (folder == folder.parent_path()) {
                return std::nullopt;
            }
        }
    };
    if (const auto folder =
            upwards([](const fs::path& f) { return is_manifest(f / own_manifest); })) {
        return own(*folder);
    }
    if (const auto folder =
            upwards([](const fs::path& f) { return has_our_tables(f / python_manifest); })) {
        return ProjectFiles{*folder, *folder / python_manifest, ""};
    }
    return std::nullopt;
}

}  // namespace twinkle::project
