#pragma once
// Locks on file systems without flock(2): a file that only one process can create, with its process
// and host in it, as Python's filelock writes and reads them.

#include <filesystem>
#include <string>

#include "cache/layout.h"

namespace twinkle::cache {

// True: it is ours now. What a process left that is gone is taken away first.
bool create_marker(const Cache& cache, const std::filesystem::path& path);
void remove_own_marker(const base::Folder& folder, const std::filesystem::path& path);

// "process 4711", or "process 4711 on otherhost". Empty: nobody, or not known.
std::string marker_holder(const base::Folder& folder, const std::filesystem::path& path);
std::string flock_holder(const base::Folder& folder, const std::filesystem::path& path);

}  // namespace twinkle::cache
