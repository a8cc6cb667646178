#pragma once
// Where twinkle keeps what it can make again.

#include <filesystem>

#include "target/machine.h"

namespace twinkle::target {

// $XDG_CACHE_HOME/twinkle, else below ~/.cache.
std::filesystem::path user_cache(const Machine& machine);

}  // namespace twinkle::target
