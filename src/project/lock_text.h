#pragma once
// What the reader and the writer of twinkle.lock share.

#include <cstdint>
#include <string>

#include "project/lock.h"

namespace twinkle::project {

inline constexpr std::size_t checksum_digits = 16;
inline constexpr std::uint64_t largest_lock = 16u << 20;  // about 100,000 files

// Covers everything that the lock says of one kernel. No protection against anybody: it tells a
// merge that took lines of two different states.
std::string checksum_of(const LockedKernel& kernel);

}  // namespace twinkle::project
