#pragma once
// Bytes as hexadecimal digits, in lower case.

#include <optional>
#include <string>
#include <string_view>

namespace twinkle::base {

std::string to_hex(std::string_view bytes);
// None: an odd number of digits, or other characters than digits.
std::optional<std::string> from_hex(std::string_view text);
bool is_hex(std::string_view text, std::size_t digits);  // exactly so many

}  // namespace twinkle::base
