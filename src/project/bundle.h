#pragma once
// A bundle: a mapping with its kernels beside it, for machines without network and cache.
//
//     DIR/twinkle.map.json                            paths relative to itself
//     DIR/kernels/org--name@1/build/<variant>/…       the builds that were chosen, nothing else

#include <atomic>
#include <filesystem>

#include "twinkle/mapping.h"

namespace twinkle::project {

// Copies, loads the copy again and checks every file of it; then it appears under its name, whole.
// An older bundle or an empty folder of that name is replaced, anything else is not:
// Error(refused). Throws Error(verification) where a file is not what the mapping says,
// Error(interrupted) when `stop` is set.
void write_bundle(const Mapping& mapping, const std::filesystem::path& folder,
                  const std::atomic<bool>* stop = nullptr);

}  // namespace twinkle::project
