#pragma once
// Locks on file systems without flock(2): a file that only one process can create, with its process
// and host in it, in the format of Python's filelock.

#include <filesystem>
#include <string>

#include "cache/layout.h"

namespace twinkle::cache {

// True: it is ours now. First removes the marker of a process that no longer exists.
bool create_marker(const Cache& cache, const std::filesystem::path& path);
void remove_own_marker(const base::Folder& folder, const std::filesystem::path& path);

// "process 4711", or "process 4711 on otherhost". Empty: nobody, or unknown.
std::string marker_holder(const base::Folder& folder, const std::filesystem::path& path);
std::string flock_holder(const base::Folder& folder, const std::filesystem::path& path);

}  // namespace twinkle::cache
