#pragma once
// What is said where the cache cannot be written to.

#include <filesystem>

#include "cache/layout.h"

namespace twinkle::cache {

// `reason` is an errno. Error(failed) that names the cache and how to choose another one;
// Error(refused) that names the link where one is in the way.
[[noreturn]] void throw_cache_error(const Cache& cache, const std::filesystem::path& path,
                                    int reason);

}  // namespace twinkle::cache
