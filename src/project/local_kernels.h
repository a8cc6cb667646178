#pragma once
// LOCAL_KERNELS=org/name=path:…: folders that take the place of kernels of the Hub.

#include <filesystem>
#include <map>
#include <string>

#include "target/machine.h"

namespace twinkle::project {

// Folder by repository. Throws Error(malformed).
std::map<std::string, std::filesystem::path> local_kernels(const target::Machine& machine);

// A person has to be told: the variable may have been set long ago.
std::string local_kernel_warning(const std::string& repo_id, const std::filesystem::path& folder);

}  // namespace twinkle::project
