#pragma once
// Entries of [kernels] added and removed in the text of a manifest, by position: comments, order,
// spelling and line ends of everything else stay as they are.

#include <optional>
#include <string>
#include <string_view>

#include "project/pin.h"

namespace twinkle::project {

// twinkle: [kernels] of twinkle.toml. pyproject: [tool.kernels.dependencies] of pyproject.toml, and
// [tool.twinkle.kernels] for what the Python tool cannot read there: revisions, releases, folders.
enum class ManifestFormat { twinkle, pyproject };

struct KernelEntry {
    std::string name;  // "org/name"; for a folder any name
    Pin pin;
    std::string path;  // a folder, as seen from the manifest; then without a pin
};

// The new text. An entry of that name is changed in place; a list of versions gets one more.
// Throws Error(malformed) where the text is no valid manifest, or, with the line to write, where
// the edit would not mean exactly what it should.
std::string add_kernel(std::string_view text, ManifestFormat format, std::string_view origin,
                       const KernelEntry& entry);

// With a pin, removes only that one of a list. Throws Error(not_found), with the nearest name.
std::string remove_kernel(std::string_view text, ManifestFormat format, std::string_view origin,
                          const std::string& name, const std::optional<Pin>& pin = std::nullopt);

}  // namespace twinkle::project
