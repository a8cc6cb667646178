#pragma once
// The files of a kernel: a build, or a plain Python package.

#include <filesystem>
#include <string>
#include <vector>

namespace twinkle::kernel {

// base::list_files. Throws Error(malformed) for a folder that has the name of a Python file or of
// metadata: what it stands for would be missed without a word.
std::vector<std::string> package_files(const std::filesystem::path& folder);

}  // namespace twinkle::kernel
