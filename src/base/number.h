#pragma once
// Numbers in text from outside.

#include <charconv>
#include <optional>
#include <string_view>

namespace twinkle::base {

// None: the text is anything but a number that fits, as std::from_chars reads it.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace twinkle::base
