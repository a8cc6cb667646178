#pragma once
// Where libtwinkle itself lies, and what was installed with it.

#include <filesystem>

namespace twinkle::runtime {

// libexec/twinkle/torchX.Y-B; empty if it is unknown.
std::filesystem::path own_folder();
// … → ../../../lib/twinkle/kernels; empty if that folder is unknown.
std::filesystem::path bundled_kernels();
// … → ../../../share/twinkle/presets
std::filesystem::path presets_folder();

}  // namespace twinkle::runtime
