#pragma once
// Numbers for people.

#include <chrono>
#include <cstdint>
#include <string>

namespace twinkle::base {

// "512 B", "12.3 kB", "1.5 GB": powers of ten, three digits.
std::string human_bytes(std::uint64_t bytes);

// "0:07", "12:40", "3:05:00".
std::string human_duration(std::chrono::seconds duration);

// "1 file", "12 files".
std::string counted(std::uint64_t count, const std::string& thing);

}  // namespace twinkle::base
