#pragma once
// Operating system errors in plain words.

#include <filesystem>
#include <string>
#include <string_view>

namespace twinkle::base {

// "the disk is full", "permission denied", …
std::string io_reason(int error_number);

// Throws Error(not_found) if the file does not exist, else Error(failed).
[[noreturn]] void throw_read_error(std::string_view what, const std::filesystem::path& path,
                                   int error_number);
// Throws Error(failed) with advice.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, int error_number);

}  // namespace twinkle::base
