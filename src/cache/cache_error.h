#pragma once
// Errors for a cache that cannot be written to.

#include <filesystem>

#include "cache/layout.h"

namespace twinkle::cache {

// `reason` is an errno. Throws Error(failed) that names the cache and how to choose another one, or
// Error(refused) that names a symbolic link in the way.
[[noreturn]] void throw_cache_error(const Cache& cache, const std::filesystem::path& path,
                                    int reason);

}  // namespace twinkle::cache
